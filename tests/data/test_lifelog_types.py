"""A life log refuses parts that do not fit each other."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from memograd.data.conversation import Question
from memograd.data.lifelog import GoldOp, Lifelog, Probe, ToldStatement
from memograd.errors import BadInput
from memograd.memory import OpKind, RawTurn

NOON = datetime(2024, 5, 7, 12)
TURNS = (RawTurn("D1:1", "Ann", "I moved.", NOON, 1), RawTurn("D1:2", "Ann", "Again.", NOON, 1))


def statement(
    name: str, minutes: int = 0, turn: str = "D1:1", gold: GoldOp | None = None
) -> ToldStatement:
    return ToldStatement(name, turn, f"Ann said {name}.", NOON + timedelta(minutes=minutes), gold)


def probe(
    needed: tuple[str, ...] = (), misleading: tuple[str, ...] = (), minutes: int | None = 60
) -> Probe:
    asked_at = None if minutes is None else NOON + timedelta(minutes=minutes)
    return Probe(Question("q0", "Where?", "There", "x", (), asked_at=asked_at), needed, misleading)


def log(statements: tuple[ToldStatement, ...], probes: tuple[Probe, ...] = ()) -> Lifelog:
    return Lifelog("life", "en", ("Ann", "Bob"), TURNS, statements, probes)


def test_parts_that_fit() -> None:
    update = GoldOp(OpKind.UPDATE, "s1")
    made = log((statement("s1"), statement("s2", 1, "D1:2", update)), (probe(("s2",), ("s1",)),))
    assert made.probes[0].asked_at == NOON + timedelta(hours=1)


@pytest.mark.parametrize(
    ("statements", "probes", "complaint"),
    [
        ((statement("s1"), statement("s1", 1)), (), "is there twice"),
        ((statement("s1", turn="D9:9"),), (), "'D9:9', which is missing"),
        ((statement("s1", 5), statement("s2", 1)), (), "before the one above it"),
        ((statement("s1", gold=GoldOp(OpKind.DELETE, "s1")),), (), "no earlier statement"),
        ((statement("s1", gold=GoldOp(OpKind.NONE, "s9")),), (), "no earlier statement"),
        ((statement("s1"),), (probe(minutes=None),), "has no time"),
        ((statement("s1"),), (probe(("s2",)),), "no statement told before it"),
        ((statement("s1"),), (probe((), ("s2",)),), "no statement told before it"),
        ((statement("s1", 61),), (probe(("s1",)),), "no statement told before it"),
    ],
)
def test_parts_that_do_not_fit_are_named(
    statements: tuple[ToldStatement, ...], probes: tuple[Probe, ...], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        log(statements, probes)


def test_as_a_conversation_adversarial_questions_stand_apart() -> None:
    asked = [
        Question(f"q{n}", "Where?", "There", "x", (), adversarial=n == 1, asked_at=NOON)
        for n in range(2)
    ]
    made = log((statement("s1"),), tuple(Probe(question, ()) for question in asked)).conversation()
    assert made.questions == (asked[0],)
    assert made.adversarial_questions == (asked[1],)
    assert (made.id, made.speakers, made.turns) == ("life", ("Ann", "Bob"), TURNS)
