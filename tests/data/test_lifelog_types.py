"""A life log and its settings refuse what does not fit, and files lose nothing of a log."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memograd.data.conversation import Question
from memograd.data.lifelog import (
    GoldOp,
    Lifelog,
    LifelogSettings,
    Probe,
    ToldStatement,
    generate_lifelogs,
    read_lifelogs,
    write_lifelogs,
)
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


SMALL = LifelogSettings(sessions=3, statements_per_session=6)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    chinese = replace(SMALL, language="zh")
    logs = [*generate_lifelogs(3, 0, SMALL), *generate_lifelogs(2, 0, chinese)]
    first = logs[0]
    turn = replace(first.turns[0], text="odd \u2028 line\nbreak", time=None, caption="a photo")
    asked = first.probes[0]
    chosen = replace(asked, question=replace(asked.question, choices=("a", "b")))
    plain = replace(first.statements[0], gold=None)
    logs[0] = replace(
        first,
        turns=(turn, *first.turns[1:]),
        statements=(plain, *first.statements[1:]),
        probes=(chosen, *first.probes[1:]),
    )
    write_lifelogs(logs, tmp_path / "logs.jsonl")
    assert read_lifelogs(tmp_path / "logs.jsonl") == logs


def _swap(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        for step in path[:-1]:
            record = record[step]
        record[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (_swap("language", to="fr"), "language 'fr'"),
        (_swap("speakers", to=["Ann"]), "1 speakers"),
        (_swap("turns", 0, "text", to=7), "turn 0 is int"),
        (_swap("statements", 0, "told_at", to="noon"), "'told_at' 'noon'"),
        (_swap("statements", 0, "gold", "kind", to="KEEP"), "gold operation 'KEEP'"),
        (_swap("statements", 0, "turn_id", to="D9:9"), "'D9:9', which is missing"),
        (_swap("probes", 0, "needed", to=["s99"]), "'s99', which is no statement"),
        (_swap("probes", 0, "needed", to="s1"), "'needed' in .* is str"),
        (_swap("probes", to=None), "'probes' in .* is NoneType"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    change: Callable[[dict[str, Any]], None], complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "logs.jsonl"
    write_lifelogs(generate_lifelogs(2, 0, SMALL), path)
    lines = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[1])
    change(record)
    path.write_text(f"{lines[0]}\n{json.dumps(record)}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=complaint) as caught:
        read_lifelogs(path)
    assert "logs.jsonl:2" in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "logs.jsonl"
    with pytest.raises(BadInput, match="There is no file"):
        read_lifelogs(path)
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(BadInput, match="holds no life log"):
        read_lifelogs(path)
    path.write_text('{"id": ', encoding="utf-8")
    with pytest.raises(BadInput, match=r"logs\.jsonl:1: not valid JSON"):
        read_lifelogs(path)
    path.write_bytes("日".encode("gb18030"))
    with pytest.raises(BadInput, match="not UTF-8"):
        read_lifelogs(path)
    with pytest.raises(BadInput, match="cannot be written"):
        write_lifelogs(generate_lifelogs(1, 0, SMALL), tmp_path / "no" / "logs.jsonl")
    log = generate_lifelogs(1, 0, SMALL)[0]
    write_lifelogs([log, log], path)
    with pytest.raises(BadInput, match=r"logs\.jsonl:2 has the id"):
        read_lifelogs(path)


def test_pairs_win_over_defaults() -> None:
    made = LifelogSettings().with_pairs(["language=zh", "sessions=3", "hearsay=0.2"])
    assert made == LifelogSettings(language="zh", sessions=3, hearsay=0.2)


@pytest.mark.parametrize(
    ("pair", "complaint"),
    [
        ("language=fr", "language is 'fr'"),
        ("split=dev", "split is 'dev'"),
        ("sessions=1", "sessions is 1: it must be from 2"),
        ("statements_per_session=99", "statements_per_session is 99"),
        ("people=0", "people is 0"),
        ("questions=0", "questions is 0.0: it must be above 0"),
        ("questions=nan", "questions is nan"),
        ("hearsay=-0.1", "hearsay is -0.1: a share"),
        ("small_talk=0.8", "add up to 1.20"),
        ("repeats=nan", "repeats is nan"),
        ("sessions=many", "sessions must be a number"),
        ("sessions", "no setting of a life log"),
        ("colour=red", "no setting of a life log"),
    ],
)
def test_what_cannot_be_is_refused(pair: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        LifelogSettings().with_pairs([pair])
