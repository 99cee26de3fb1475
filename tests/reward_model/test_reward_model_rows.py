"""Pairs split by conversation, leaks and contradictions; presets, and what wins over them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.config.load import load_settings, stored_settings
from memograd.errors import BadInput
from memograd.warm_start.reward_model_rows import (
    LEAKING,
    OPPOSITE,
    TRAINED_FILE,
    conversation,
    note_trained,
    read_pairs,
    read_split,
    split_pairs,
    without_trained,
)
from memograd.warm_start.rows import PreferenceRow, Rows
from memograd.warm_start.settings import DpoSettings, RewardModelSettings

PROMPTS = st.lists(st.sampled_from("abcdefghij"), min_size=4, max_size=40)


def rows_of(prompts: list[str]) -> Rows[PreferenceRow]:
    used = [PreferenceRow(str(n), prompt, f"good {n}", "bad") for n, prompt in enumerate(prompts)]
    return Rows("pairs.jsonl", used)


def write(path: Path, *records: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def pair(prompt: object, chosen: str = "good", rejected: str = "bad") -> dict[str, object]:
    return {"prompt": prompt, "chosen": chosen, "rejected": rejected}


@settings(deadline=None, max_examples=50)
@given(PROMPTS, st.floats(0.05, 0.6), st.randoms())
def test_no_conversation_is_on_both_sides(prompts, fraction, draw: random.Random) -> None:
    different = len(set(prompts))
    if max(1, round(fraction * different)) == different:
        with pytest.raises(BadInput, match="leaves none to train on"):
            split_pairs(rows_of(prompts), fraction)
        return
    split = split_pairs(rows_of(prompts), fraction)
    sides = [{row.prompt for row in part.used} for part in (split.train, split.held_out)]
    assert not sides[0] & sides[1] and sides[0] | sides[1] == set(prompts)
    assert len(sides[1]) == max(1, round(fraction * different))
    shuffled = draw.sample(prompts, len(prompts))
    assert {row.prompt for row in split_pairs(rows_of(shuffled), fraction).held_out.used} == sides[
        1
    ]


def test_a_chat_and_how_it_goes_on_are_one_conversation(tmp_path) -> None:
    begun = [{"role": "user", "content": "How do I  take ＡＳＡ?"}]
    on = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "how do i take asa?"},
        {"role": "assistant", "content": "Why?"},
        {"role": "user", "content": "A headache."},
    ]
    rows = read_pairs(write(tmp_path / "a.jsonl", pair(begun), pair(on)), "chat")
    assert len({conversation(row) for row in rows.used}) == 1


def test_leaks_are_left_out_by_line(tmp_path) -> None:
    train = write(tmp_path / "train.jsonl", pair("one"), pair("Two "), pair("three"), pair("two"))
    test = write(tmp_path / "test.jsonl", pair("two", "other", "answers"))
    split = read_split(train, test, 0.1, "chat")
    assert [row.place for row in split.train.used] == ["1", "3"]
    assert split.train.left_out == {LEAKING: ["2", "4"]}
    with pytest.raises(BadInput, match="Every conversation of"):
        read_split(test, test, 0.1, "chat")


def test_opposite_pairs_are_left_out(tmp_path) -> None:
    data = write(
        tmp_path / "a.jsonl", pair("q"), pair("q", "bad", "good"), pair("r", "bad", "good")
    )
    rows = read_pairs(data, "chat")
    assert [row.place for row in rows.used] == ["1", "3"] and rows.left_out == {OPPOSITE: ["2"]}


def test_what_was_trained_on_is_known_of_a_run_of_its_checkpoints_and_of_what_began_with_it(
    tmp_path,
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for run in (first, second):
        (run / "final").mkdir(parents=True)
        (run / "run.json").write_text("{}")
    note_trained(rows_of(["one", "two"]), first)
    note_trained(rows_of(["three"]), second, first / "final")

    def left(model: Path) -> list[object]:
        rows = without_trained(rows_of(["one", "two", "three", "four"]), model)
        return [row.prompt for row in rows.used]

    assert left(first) == left(first / "final") == ["three", "four"]
    assert left(second) == left(second / "final") == ["four"]
    assert left(tmp_path / "elsewhere") == ["one", "two", "three", "four"]
    (first / TRAINED_FILE).write_text("{")
    with pytest.raises(BadInput, match="is damaged"):
        left(first / "final")


def test_the_defaults_are_the_documented_adapter() -> None:
    settings = load_settings(RewardModelSettings, None, ["data=pairs.jsonl"])
    assert (settings.lora.r, settings.lora.alpha) == (32, 16)
    assert settings.learning_rate == 2e-4


def test_another_rank_keeps_the_alpha_of_reward_models() -> None:
    settings = load_settings(RewardModelSettings, None, ["data=pairs.jsonl", "lora.r=8"])
    assert (settings.lora.r, settings.lora.alpha) == (8, 16)


@pytest.mark.parametrize(
    "given, rate", [([], 1e-5), (["learning_rate=3e-6"], 3e-6), (["learning_rate=2e-4"], 2e-4)]
)
def test_full_tuning_learns_slower_unless_told(given, rate) -> None:
    settings = load_settings(RewardModelSettings, None, ["data=a.jsonl", "tuning=full", *given])
    assert settings.learning_rate == rate


def test_a_run_gives_its_settings_back() -> None:
    settings = RewardModelSettings(data="pairs.jsonl", tuning="full", lora={"r": 4})
    assert stored_settings(settings.run_json(), RewardModelSettings) == settings
    dpo = DpoSettings(data="pairs.jsonl")
    assert stored_settings(dpo.run_json(), DpoSettings) == dpo


@pytest.mark.parametrize(
    "given, sentence",
    [
        ([], "data= is missing"),
        (["data=a", "tuning=full", "adapter=b"], "tuning=full does not train"),
        (["data=a", "eval_fraction=0"], "eval_fraction must be a number"),
        (["data=a", "tuning=half"], "tuning must be one of lora, full"),
        (["data=a", "batch_size=8", "micro_batch_size=3"], "not a multiple"),
    ],
)
def test_what_does_not_fit_is_one_sentence(given, sentence) -> None:
    with pytest.raises(BadInput, match=sentence):
        load_settings(RewardModelSettings, None, given)
