"""Plans never cost more than their budget, and come near to it."""

from __future__ import annotations

import pytest

from memograd.config.load import load_settings
from memograd.config.unread import refuse_unread
from memograd.errors import BadInput
from memograd.optimize.optimizers import plan
from memograd.optimize.settings import PROPOSING, OptimizeConfig

OPTIMIZERS = ("bootstrap", "simba", "miprov2", "gepa")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("budget", [60, 100, 200, 1000])
def test_a_plan_fits_its_budget_and_its_questions(optimizer: str, budget: int) -> None:
    made = plan(optimizer, budget, 400)
    assert 0.8 * budget <= made.calls <= budget
    assert made.needed <= 400


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_few_questions_bound_a_plan(optimizer: str) -> None:
    assert plan(optimizer, 1000, 8).needed <= 8


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_least_budget_is_the_one_that_the_refusal_names(optimizer: str) -> None:
    with pytest.raises(BadInput, match=r"at least (\d+) calls and 8 questions") as refused:
        plan(optimizer, 3, 50)
    least = int(str(refused.value).split("at least ")[1].split()[0])
    assert plan(optimizer, least, 8).calls <= least
    with pytest.raises(BadInput):
        plan(optimizer, least - 1, 50)


WRITER = "prompt.model=writer"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ("program=a.json budget=9", "budget"),
        ("program=a.json demos=1", "demos"),
        (f"optimizer=gepa {WRITER} prompt.url=http://a/v1 demos=1", "demos"),
        ("program=a.json memory.keep=items memory.retrieval=dense", "memory.retrieval"),
        ("optimizer=simba prompt.url=http://a/v1", "url"),
        ("optimizer=simba evaluation.url=http://a/v1", "url"),
        (f"optimizer=bootstrap {WRITER}", "prompt.model"),
        ("run=a,b seeds=1,2 budget=9", "budget"),
    ],
)
def test_what_nothing_would_read_is_refused(settings: str, name: str) -> None:
    with pytest.raises(BadInput, match=rf"\b{name}=\S+ would be ignored"):
        refuse_unread(load_settings(OptimizeConfig, None, settings.split()))
    told = [one for one in settings.split() if f"{name}=" not in one]
    refuse_unread(load_settings(OptimizeConfig, None, told))


def test_only_those_that_write_are_refused_without_a_writer() -> None:
    for name in OPTIMIZERS:
        if name in PROPOSING:
            with pytest.raises(ValueError, match=r"prompt\.model"):
                OptimizeConfig.model_validate({"optimizer": [name]})
        else:
            OptimizeConfig.model_validate({"optimizer": [name]})
