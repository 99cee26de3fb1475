"""Built-in rewards by name: settings, columns, rows to which they do not apply."""

from __future__ import annotations

from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.rewards import SCORES, WeightedReward, compute_rewards, get_reward
from memograd.rewards.spec import prompt_text

COLUMNS = {"answer": "7", "keywords": ["seven"]}


def scored(name: str, completions: list[str], prompts: list[Any], **columns: list[Any]) -> Any:
    return compute_rewards(
        [WeightedReward("one", get_reward(name)), WeightedReward("rest", lambda **_: [0.0] * 2)],
        rollout_ids=["r0", "r1"],
        prompts=prompts,
        completions=completions,
        columns=columns,
    ).by_name["one"]


@pytest.mark.parametrize("name", SCORES)
def test_every_score_reads_its_row_and_skips_where_it_has_no_entry(name: str) -> None:
    columns = {column: [value, value] for column, value in COLUMNS.items()}
    full = scored(name, ["seven 7", "x"], ["how many?", "why?"], **columns)
    assert all(isinstance(value, float) for value in full)
    gaps = {column: [None, value] for column, value in COLUMNS.items()}
    first, second = scored(name, ["seven 7", "x"], ["how many?", "why?"], **gaps)
    reads = name in (
        *("exact_match", "memory_r1_exact_match"),
        *("numeric_match", "keyword_coverage"),
    )
    assert first == (None if reads else full[0])
    assert second == full[1]


def test_settings_are_bound() -> None:
    reward = get_reward("length", {"low": 1, "high": 2})
    assert reward(prompts=["q"] * 3, completions=["a", "a b", "a b c"]) == [1.0, 1.0, 0.5]
    assert "falling linearly" in str(reward.__doc__)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("length", {"hi": 3}, 'Reward "length" has no setting hi; it has low, high'),
        ("length", {"low": "x"}, "low of reward \"length\" must be int, not 'x'"),
        ("length", {"low": True}, "must be int, not True"),
        ("length", {"low": 9, "high": 2}, "1 <= low <= high"),
        ("exact_match", {"answer": "x"}, "no setting answer; it has none"),
        ("format_match", {"pattern": "("}, "is no regular expression"),
        ("coherence", {"connectives": [1]}, "must be"),
        ("language_consistency", {"language": "klingon"}, "knows no language"),
        ("locomo_f1", {"k": 1}, '"locomo_f1" has no settings, but k is given'),
        ("exact", {}, 'There is no reward "exact"; did you mean exact_match'),
    ],
)
def test_what_does_not_fit_is_refused_at_once(
    name: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput) as caught:
        get_reward(name, settings)
    assert message in str(caught.value)


def test_a_whole_number_is_a_number_and_a_list_is_a_list() -> None:
    assert get_reward("numeric_match", {"tolerance": 1})
    assert get_reward("coherence", {"connectives": ["因为"], "each": 1})


def test_the_text_of_a_prompt() -> None:
    system, user = {"role": "system", "content": "s"}, {"role": "user", "content": "u"}
    assert prompt_text("p") == "p"
    assert prompt_text([system, user]) == "u"
    assert prompt_text([system]) == "s"
