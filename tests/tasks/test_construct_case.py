"""Cases out of life logs and public data, and cases cut short."""

from __future__ import annotations

import pytest
from construct_cases import question
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.data import Conversation
from memograd.data.conversation import ConstructionCase
from memograd.data.lifelog import Lifelog, LifelogSettings, generate_lifelogs
from memograd.errors import BadInput
from memograd.memory.analysis import analyse
from memograd.tasks.memory_construct.case import case_of_construction, case_of_log

LOGS = {
    language: generate_lifelogs(3, 11, LifelogSettings(language=language, split="test"))
    for language in ("en", "zh")
}


@pytest.mark.parametrize("log", [*LOGS["en"], *LOGS["zh"]], ids=lambda log: log.id)
def test_chunks_never_cross_a_session_and_hold_every_turn(log: Lifelog) -> None:
    case = case_of_log(log, turns_per_chunk=5)
    assert "\n".join(chunk.text for chunk in case.chunks) == "\n".join(
        turn.render() for turn in log.turns
    )
    session_of = {turn.render(): turn.session for turn in log.turns}
    for chunk in case.chunks:
        lines = chunk.text.splitlines()
        assert 1 <= len(lines) <= 5 and len({session_of[line] for line in lines}) == 1
    assert [s.id for chunk in case.chunks for s in chunk.statements] == [
        s.id for s in log.statements
    ]


@pytest.mark.parametrize("log", [*LOGS["en"], *LOGS["zh"]], ids=lambda log: log.id)
def test_questions_ask_for_what_was_told_before(log: Lifelog) -> None:
    case = case_of_log(log, turns_per_chunk=4)
    assert case.gold and len(case.asked) + case.unjudged == len(log.probes)
    told = {probe.question.id: probe for probe in log.probes}
    place = {s.id: n for n, chunk in enumerate(case.chunks) for s in chunk.statements}
    texts = {s.id: s.text for s in log.statements}
    for one in case.asked:
        probe = told[one.question.id]
        assert max((place[name] for name in probe.needed), default=0) <= one.after
        for part in one.parts:
            assert any(
                part.since == place[name] and part.stands_in(texts[name]) for name in probe.needed
            )
        for misleading in one.misleading:
            carriers = [n for n in probe.misleading if misleading.stands_in(analyse(texts[n]))]
            assert carriers and misleading.since <= one.after
            assert not any(misleading.stands_in(analyse(texts[n])) for n in probe.needed)


def test_most_questions_can_be_judged_by_words() -> None:
    for logs in LOGS.values():
        cases = [case_of_log(log, turns_per_chunk=4) for log in logs]
        unjudged = sum(case.unjudged for case in cases)
        assert 0 < unjudged < 0.2 * sum(len(case.asked) for case in cases)


@settings(max_examples=30, deadline=None)
@given(number=st.integers(0, 2), count=st.integers(1, 40), language=st.sampled_from(["en", "zh"]))
def test_a_cut_case_asks_about_its_chunks_alone(number: int, count: int, language: str) -> None:
    whole = case_of_log(LOGS[language][number], turns_per_chunk=4)
    cut = whole.first_chunks(count)
    assert cut.chunks == whole.chunks[:count]
    known = {one.question.id: one for one in whole.asked}
    for one in cut.asked:
        assert one.parts == known[one.question.id].parts
        assert all(part.since < count for part in one.parts)
        assert all(misleading.since < count for misleading in one.misleading)
        assert one.after <= len(cut.chunks) - 1 and one.open_at(one.after)
    if count >= len(whole.chunks):
        assert cut == whole
    again = cut.first_chunks(max(1, count // 2))
    assert again == whole.first_chunks(max(1, count // 2))


def test_public_cases_are_asked_after_the_last_chunk() -> None:
    case = case_of_construction(
        ConstructionCase(
            "c1",
            "set",
            ("Ann lives in Bonn.", "Ann has a cat."),
            (question("a", "Where?", "Bonn"), question("b", "Pet?", "cat"), question("c", "?")),
            ((0,), (), ()),
        )
    )
    assert [(one.after, one.parts[0].since) for one in case.asked] == [(1, 0), (1, 0)]
    assert (case.unjudged, case.gold, case.language) == (1, False, "en")


def test_a_chunk_has_at_least_one_turn() -> None:
    assert isinstance(LOGS["en"][0].conversation(), Conversation)
    with pytest.raises(BadInput, match="turns_per_chunk is 0"):
        case_of_log(LOGS["en"][0], turns_per_chunk=0)
