"""Plans as a whole: what fits, what is best, what is refused; a run played through."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from memograd.cli.app import app
from memograd.errors import BadInput
from memograd.planning import Workload, make_plan, parse_cluster, shape_of
from memograd.planning.costs import learner_memory, room
from memograd.planning.placement import Placement, micro_batch_tokens
from memograd.planning.simulation import play

SEVEN = shape_of("Qwen2.5-7B")


def test_seven_billion_weights_are_trained_whole_on_eight_and_not_on_one() -> None:
    work = Workload(train="full")
    plan = make_plan(SEVEN, parse_cluster("8xH200"), work)
    assert plan.best.memory.total <= room(plan.cluster)
    with pytest.raises(BadInput, match=r"learning needs 1\d\d GiB .* Try tuning=lora"):
        make_plan(SEVEN, parse_cluster("1xH100"), work)


def test_the_best_placement_is_the_fastest() -> None:
    plan = make_plan(SEVEN, parse_cluster("8xH100"), Workload())
    seconds = [placement.step.seconds for placement in plan.placements]
    assert seconds == sorted(seconds)
    assert len({placement.name for placement in plan.placements}) == len(seconds) == 8


@given(st.integers(0, 4096), st.integers(1, 64), st.sampled_from(["lora", "full"]), st.booleans())
def test_memory_grows_with_tokens_and_shrinks_with_ranks(
    tokens: int, ranks: int, train: str, checkpointing: bool
) -> None:
    work = Workload(train=train, checkpointing=checkpointing)
    held = learner_memory(SEVEN, work, ranks=ranks, tokens=tokens)
    assert learner_memory(SEVEN, work, ranks=ranks, tokens=tokens + 1).total > held.total
    assert learner_memory(SEVEN, work, ranks=2 * ranks + 2, tokens=tokens).total < held.total
    assert sum(held.parts().values()) == held.total


def test_the_micro_batch_is_the_largest_that_fits() -> None:
    cluster, work = parse_cluster("4xA100"), Workload()
    tokens = micro_batch_tokens(SEVEN, work, cluster, ranks=4)
    assert learner_memory(SEVEN, work, ranks=4, tokens=tokens).total <= room(cluster)
    assert learner_memory(SEVEN, work, ranks=4, tokens=tokens + 1).total > room(cluster)


def placed(staleness: int, count: str = "8xH100") -> Placement:
    work = Workload(train="full", answer=512)
    plan = make_plan(SEVEN, parse_cluster(count), work, max_staleness=staleness)
    return next(one for one in plan.placements if not one.colocated and one.sampling == 4)


@given(st.integers(0, 4), st.integers(0, 3), st.floats(0, 1.5))
def test_no_group_is_older_than_allowed(staleness: int, seed: int, spread: float) -> None:
    work = Workload(train="full", answer=512, prompts=4, group=4, spread=spread)
    played = play(placed(staleness), work, steps=6, max_staleness=staleness, seed=seed)
    assert 0 <= played.staleness_mean <= played.staleness_max <= staleness
    assert 0 <= played.learner_idle < 1
    assert 0 <= played.sampler_idle < 1
    assert played == play(placed(staleness), work, steps=6, max_staleness=staleness, seed=seed)


def test_running_ahead_takes_less_time_than_waiting() -> None:
    work = Workload(train="full", answer=512, spread=1.0)
    waits = play(placed(0), work, max_staleness=0)
    ahead = play(placed(2), work, max_staleness=2)
    assert ahead.seconds_a_step < waits.seconds_a_step
    assert ahead.learner_idle < waits.learner_idle


def test_answers_of_one_length_take_what_the_formula_says() -> None:
    work = Workload(train="full", answer=512, spread=0)
    placement = placed(0)
    step = dataclasses.replace(placement.step, prefill=0.0)
    one = dataclasses.replace(placement, step=step, at_once=work.rollouts)
    token_seconds = step.decode / work.answer
    played = play(one, work, steps=4)
    expected = work.answer * token_seconds + step.learn + step.sync
    assert played.seconds_a_step == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("gpus", "says"),
    [
        ("0xH100", "a count and a device"),
        ("8", "a count and a device"),
        ("eight H100", "a count and a device"),
        ("8xH1000", "did you mean H100"),
    ],
)
def test_a_cluster_that_cannot_be_read_is_refused(gpus: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parse_cluster(gpus)


@pytest.mark.parametrize(
    "wrong", [{"prompts": 0}, {"spread": -1}, {"answer": 0}, {"train": "both"}]
)
def test_a_workload_that_makes_no_sense_is_refused(wrong: dict) -> None:
    with pytest.raises(BadInput, match=next(iter(wrong))):
        Workload(**wrong)


def test_the_command_says_it_in_words_and_as_data() -> None:
    asked = ["plan", "--model", "Qwen/Qwen2.5-7B-Instruct", "--gpus", "8xH200"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert "a learner's device needs about" in shown.output
    data = json.loads(CliRunner().invoke(app, [*asked, "--json", "--staleness", "1"]).output)
    assert data["model"]["weights"] == 7_615_616_512
    best = data["placements"][0]
    assert best["learner_bytes"]["total"] == pytest.approx(
        sum(size for part, size in best["learner_bytes"].items() if part != "total")
    )
    assert list(data["simulated"]) == ["1"]
