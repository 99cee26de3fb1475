"""Real conversations as life logs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from memograd.data import load_locomo, load_longmemeval, load_memdaily
from memograd.data.conversation import Conversation, Question
from memograd.data.lifelog import Lifelog, lifelog_of
from memograd.memory import RawTurn

NOON = datetime(2024, 5, 7, 12)
LATER = NOON + timedelta(days=1)


def turn(name: str, time: datetime | None) -> RawTurn:
    return RawTurn(name, "Ann", f"This is {name}.", time, 1)


def ask(name: str, *evidence: str, at: datetime | None = None) -> Question:
    return Question(name, "What?", "This", "x", evidence, asked_at=at)


def test_clocks_that_are_missing_or_run_backwards() -> None:
    turns = (turn("t1", None), turn("t2", LATER), turn("t3", NOON), turn("t4", None))
    asked = (ask("q0", "t1"), ask("q1"), ask("q2", "t3", at=NOON), ask("q3", "t2", at=LATER))
    log = lifelog_of(Conversation("c", ("Ann", "Bob"), turns, asked, (ask("q4", "t1"),)), "en")
    assert [one.told_at for one in log.statements] == [LATER] * 4
    assert [one.text for one in log.statements] == [one.index_text() for one in turns]
    assert [probe.question.id for probe in log.probes] == ["q0", "q2", "q3"]
    assert [probe.asked_at for probe in log.probes] == [LATER] * 3


def test_a_conversation_without_any_time() -> None:
    turns = (turn("t1", None), turn("t2", None))
    log = lifelog_of(Conversation("c", ("Ann", "Bob"), turns, (ask("q0", "t2"),), ()), "en")
    assert log.probes[0].asked_at == log.statements[0].told_at


def check(conversation: Conversation, language: str) -> Lifelog:
    log = lifelog_of(conversation, language)
    assert [one.id for one in log.statements] == [turn.id for turn in conversation.turns]
    assert all(one.gold is None for one in log.statements)
    by_id = {question.id: question for question in conversation.questions}
    for probe in log.probes:
        original = by_id[probe.question.id]
        assert replace(probe.question, asked_at=original.asked_at) == original
        assert probe.needed == original.evidence and probe.misleading == ()
    assert len(log.probes) == sum(bool(one.evidence) for one in conversation.questions)
    return log


def test_locomo(locomo_file: Path) -> None:
    for conversation in load_locomo(locomo_file):
        assert len(check(conversation, "en").probes) > 80


def test_longmemeval(shared_data: Path) -> None:
    path = shared_data / "longmemeval" / "longmemeval_oracle_sample.json"
    if not path.is_file():
        pytest.skip("the LongMemEval sample is not beside this checkout")
    assert sum(len(check(one, "en").probes) for one in load_longmemeval(path)) > 0


def test_memdaily(shared_data: Path) -> None:
    path = shared_data / "memdaily" / "01_simple_hybrid.json.gz"
    if not path.is_file():
        pytest.skip("MemDaily is not beside this checkout")
    assert sum(len(check(one, "zh").probes) for one in load_memdaily(path)) == 200
