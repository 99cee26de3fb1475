"""The gold operations keep what the questions need and let go of what misleads them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.data.lifelog import Lifelog, LifelogSettings, generate_lifelogs
from memograd.data.lifelog.forms import language_tables
from memograd.memory import OpKind

seeds = st.integers(0, 2**32)
languages = st.sampled_from(["en", "zh"])
splits = st.sampled_from(["train", "test"])


def made(seed: int, language: str, split: str) -> Lifelog:
    chosen = LifelogSettings().with_pairs([f"language={language}", f"split={split}"])
    return generate_lifelogs(1, seed, chosen)[0]


def kept_at_probes(log: Lifelog) -> list[set[str]]:
    """What a careful keeper holds when each probe is asked: ids of the items' statements."""
    kept: set[str] = set()
    told = list(log.statements)
    states = []
    for probe in log.probes:  # in the order of asking
        while told and told[0].told_at <= probe.asked_at:
            statement = told.pop(0)
            gold = statement.gold
            assert gold is not None
            if gold.kind in (OpKind.UPDATE, OpKind.DELETE):
                assert gold.target in kept, f"{statement.id} aims at what is not held"
                kept.remove(gold.target)
            if gold.kind in (OpKind.ADD, OpKind.UPDATE):
                kept.add(statement.id)
            if gold.kind is OpKind.NONE and gold.target is not None:
                assert gold.target in kept, f"{statement.id} repeats what is not held"
        states.append(set(kept))
    return states


@settings(max_examples=25, deadline=None)
@given(seeds, languages, splits)
def test_a_careful_keeper_can_answer(seed: int, language: str, split: str) -> None:
    log = made(seed, language, split)
    for probe, kept in zip(log.probes, kept_at_probes(log), strict=True):
        assert set(probe.needed) <= kept, probe
        assert not set(probe.misleading) & kept, probe


@settings(max_examples=25, deadline=None)
@given(seeds, languages, splits)
def test_the_answer_stands_in_what_is_needed(seed: int, language: str, split: str) -> None:
    log = made(seed, language, split)
    texts = {one.id: one.text.casefold() for one in log.statements}
    for probe in log.probes:
        answer = probe.question.answer.casefold()
        if not probe.needed:
            assert answer in (language_tables("en").unknown.casefold(), "不知道")
            assert probe.question.category in ("abstention", "deletion")
            assert probe.question.adversarial
        elif len(probe.needed) == 1:
            assert answer in texts[probe.needed[0]], probe
        elif probe.question.category == "multi-hop":
            found = " ".join(texts[name] for name in probe.needed)
            parts = answer.split("、" if language == "zh" else ", ")
            assert all(part in found for part in parts), probe


@settings(max_examples=15, deadline=None)
@given(seeds, languages)
def test_what_spoiled_an_answer_says_something_else(seed: int, language: str) -> None:
    log = made(seed, language, "train")
    for probe in log.probes:
        assert not set(probe.needed) & set(probe.misleading)
        assert len(set(probe.misleading)) == len(probe.misleading)
        assert probe.question.evidence == tuple(
            one.turn_id for name in probe.needed for one in log.statements if one.id == name
        )


def test_the_same_is_asked_early_and_late() -> None:
    """Somewhere a needed statement misleads later: the value changed between two questions."""
    logs = [made(seed, "en", "train") for seed in range(5)]
    turned = [
        set(early.needed) & set(late.misleading)
        for log in logs
        for early in log.probes
        for late in log.probes
        if early.asked_at < late.asked_at
    ]
    assert sum(map(bool, turned)) > 10


def test_every_sort_of_statement_and_question_occurs() -> None:
    for language in ("en", "zh"):
        for split in ("train", "test"):
            logs = [made(seed, language, split) for seed in range(8)]
            golds = [one.gold for log in logs for one in log.statements if one.gold]
            assert {gold.kind for gold in golds} == set(OpKind)
            assert any(gold.kind is OpKind.NONE and gold.target for gold in golds)
            assert any(one.retracts for log in logs for one in log.statements)
            assert {probe.question.category for log in logs for probe in log.probes} == {
                *("single-hop", "multi-hop", "temporal"),
                *("knowledge-update", "abstention", "deletion"),
            }
