"""benchmarks/write_path.py: what is told, what is measured, and one run from files to lines."""

from __future__ import annotations

import gzip
import importlib
import json
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memograd.data import Conversation, Question
from memograd.memory import RawTurn

START = datetime(2023, 5, 1, 9)
UPDATE = "knowledge-update"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("write_path")


def talk(
    name: str, evidence: tuple[str, ...] = ("1.1",), *, kind: str = UPDATE, answer: str = "Fiat",
    first_day: int = 0,
) -> Conversation:  # fmt: skip
    """Three sittings, a week apart, of a message and an answer each."""
    turns = tuple(
        RawTurn(f"{name}-{sitting}.{place}", speaker, f"{name}, {sitting}, {place}.",
                START + timedelta(days=first_day + 7 * sitting), sitting)
        for sitting in (1, 2, 3)
        for place, speaker in ((1, "user"), (2, "assistant"))
    )  # fmt: skip
    ids = tuple(f"{name}-{one}" for one in evidence)
    asked = START + timedelta(days=first_day + 25)
    question = Question(f"{name}/q0", "Which car?", answer, kind, ids, asked_at=asked)
    return Conversation(name, ("user", "assistant"), turns, (question,), ())


def ids(*names: str) -> frozenset[str]:
    return frozenset(f"a-{name}" for name in names)


def test_others_are_strange_and_earlier_than_the_question(bench: ModuleType) -> None:
    own, later = talk("a", ("1.1", "3.1")), talk("later", first_day=18)
    known = [own, talk("b"), later]
    for seed in range(5):
        told = bench.with_others(own, known, 3, seed)
        assert told == bench.with_others(own, known, 3, seed)
        sittings = [[turn.id for turn in turns] for turns in bench.sittings(told)]
        # The second sitting of its own holds no evidence; the later talk begins on the 25th day.
        assert ["a-1.1", "a-1.2"] in sittings and ["a-3.1", "a-3.2"] in sittings
        assert len(sittings) == 5 and not any("a-2.1" in one for one in sittings)
        assert {one[0] for one in sittings} <= {
            "a-1.1", "a-3.1", "b-1.1", "b-2.1", "b-3.1", "later-1.1"
        }  # fmt: skip
        assert [turn.time for turn in told.turns] == sorted(turn.time for turn in told.turns)
    drawn = {str(bench.with_others(own, known, 1, seed)) for seed in range(8)}
    assert len(drawn) > 1
    assert len(bench.with_others(own, known, 99, 0).turns) == 2 * (2 + 4)


def test_kinds_are_drawn_by_themselves(bench: ModuleType) -> None:
    talks = [talk(f"u{n}") for n in range(6)] + [talk(f"s{n}", kind="single") for n in range(6)]
    talks.append(talk("nothing", ()))
    everything = bench.drawn(talks, [], 4, 1)
    assert len(everything) == 8 and "nothing" not in {one.id for one in everything}
    assert bench.drawn(talks, ["single"], 4, 1) == everything[4:]
    assert len(bench.drawn(talks, [], 99, 1)) == 12


@pytest.mark.parametrize(
    ("found", "right"),
    [
        ([("User drives a Fiat.", ids("3.1")), ("User drives a Honda.", ids("1.1"))], (1, 1, 1)),
        ([("User drives a Honda.", ids("1.1")), ("User drives a Fiat.", ids("3.1"))], (1, 0, 1)),
        (
            [
                ("User drives a Honda (perhaps no longer, since 7 May 2023).", ids("1.1")),
                ("User drives a Fiat.", ids("3.1")),
            ],
            (1, 1, 0),
        ),
        (
            [("User drives a Fiat (formerly: User drives a Honda, until 7 May 2023).",
              ids("1.1", "3.1"))],
            (1, 1, 0),
        ),
        ([("用户开本田（至2023年5月7日为止，现已不再）。", ids("1.1"))], (0, 0, 0)),
        ([("User drives a Honda.", ids("1.1"))], (0, 0, 1)),
        ([], (0, 0, 0)),
    ],
)  # fmt: skip
def test_the_newest_is_found_and_the_old_is_told_apart(
    bench: ModuleType, found: list[tuple[str, frozenset[str]]], right: tuple[int, ...]
) -> None:
    told = bench.measures(talk("a", ("1.1", "3.1")), found, frozenset())
    names = ("newest found", "newest current", "old unmarked")
    assert tuple(told[name] for name in names) == tuple(100 * one for one in right)


def test_evidence_counts_by_depth_and_raw_turns_are_shown_beside(bench: ModuleType) -> None:
    found = [("Something else.", ids(f"2.{n}")) for n in range(3)]
    found.append(("User drives a Fiat.", ids("3.1")))
    told = bench.measures(talk("a", ("1.1", "3.1"), kind="multi"), found, ids("1.1", "2.2"))
    assert (told["evidence@10"], told["evidence@3"], told["shown"]) == (50, 0, 100)
    assert told["answer"] == 100 and "newest found" not in told
    assert told["tokens"] == sum(bench.estimate_tokens(text) for text, _ in found)


@pytest.mark.parametrize(
    ("answer", "text", "right"),
    [
        ("a Fiat", "User drives a fiat now.", 100),
        ("Fiat Panda", "User drives a Fiat.", 0),
        ("江苏南京", "用户的爸爸在江苏南京工作。", 100),
        ("江苏南京", "用户的爸爸在南京工作。", 0),
        ("Yes", "Yes.", None),
        ("The user would like short answers, with a source of each.", "User likes it.", None),
    ],
)
def test_the_words_of_short_answers(
    bench: ModuleType, answer: str, text: str, right: float | None
) -> None:
    one = talk("a", answer=answer, kind="single")
    assert bench.measures(one, [(text, ids("1.1"))], frozenset()).get("answer") == right
    assert bench.measures(one, [(text, ids("2.1"))], frozenset()).get("answer") != 100


def test_the_answer_of_a_change_is_what_the_last_sitting_told(bench: ModuleType) -> None:
    one = talk("a", ("1.1", "3.1"))
    assert bench.measures(one, [("A Fiat.", ids("1.1"))], frozenset())["answer"] == 0
    assert bench.measures(one, [("A Fiat.", ids("3.1"))], frozenset())["answer"] == 100


def test_lines_pair_the_ways_question_by_question(bench: ModuleType) -> None:
    sets = {"LongMemEval": [talk(f"u{n}", kind=("one", "two")[n % 2]) for n in range(4)]}
    by_way: dict[str, dict[str, dict[str, float]]] = {
        "default": {f"u{n}/q0": {"answer": 100.0} if n else {} for n in range(4)},
        "rules": {f"u{n}/q0": {"answer": 50.0 * (n % 2)} if n else {} for n in range(4)},
    }
    lines = {line["kind"]: line for line in bench.lines(sets, by_way)}
    assert [lines[kind]["questions"] for kind in ("all", "one", "two")] == [3, 1, 2]
    assert lines["two"]["default - rules"] == [50, 50, 50] and lines["one"]["rules"][0] == 0
    assert lines["all"]["default"] == [100, 100, 100] and lines["all"]["rules"][0] == 33.33


def written(folder: Path) -> Path:
    """A question of each set, in their formats."""
    said = {"role": "user", "content": "I drive a red Honda Civic to work every day."}
    later = {"role": "user", "content": "I sold the Honda and I drive a Fiat Panda now."}
    reply = {"role": "assistant", "content": "Thank you for telling me."}
    question = {
        "question_id": "q1", "question_type": UPDATE, "question": "Which car do I drive?",
        "answer": "Fiat Panda", "question_date": "2023/06/30 (Fri) 10:00",
        "haystack_dates": ["2023/05/02 (Tue) 10:00", "2023/06/06 (Tue) 10:00"],
        "haystack_session_ids": ["one", "two"],
        "haystack_sessions": [
            [said | {"has_answer": True}, reply],
            [later | {"has_answer": True}, reply],
        ],
    }  # fmt: skip
    stream = {
        "tid": 1,
        "message_list": [
            {"mid": 0, "message": "我的上司是银行行长。", "time": "2024年04月02日 周二 08:04"},
            {"mid": 1, "message": "我上司名叫赵雅琳。", "time": "2024年04月02日 周二 09:21"},
        ],
        "question_list": [{
            "question": "我的上司叫什么？", "answer": "赵雅琳", "target_step_id": [1],
            "choices": {"A": "李娜", "B": "赵雅琳"}, "ground_truth": "B",
            "time": "2024年04月05日 周五 11:59",
        }],
    }  # fmt: skip
    for name, payload in (
        ("longmemeval/longmemeval_oracle_dev180.json.gz", question),
        ("memdaily/01_simple_roles.json.gz", stream),
    ):
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(gzip.compress(json.dumps([payload]).encode()))
    return folder


def ran(bench: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["write_path.py", *arguments])
    bench.main()


def test_from_files_to_lines(
    bench: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MEMOGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MEMOGRAD_READER")
    monkeypatch.delenv("MEMOGRAD_MANAGER")
    ran(bench, monkeypatch, "--data", str(written(tmp_path)), "--failures", "9")
    told: list[dict[str, Any]] = list(map(json.loads, capsys.readouterr().out.splitlines()))
    lines = {(one["kind"], one["measure"]): one for one in told if "bench" in one}
    assert {kind for kind, _ in lines} == {"all", UPDATE, "simple"}
    for kind in (UPDATE, "simple"):
        for way in bench.WAYS:
            assert lines[kind, "evidence@10"][way][0] == lines[kind, "answer"][way][0] == 100
        assert lines[kind, "items a turn"]["every"] == [1, 1, 1]
    # Word for word, the older message stands unmarked beside the newer one; the default closes it.
    assert lines[UPDATE, "old unmarked"]["default - every"] == [-100, -100, -100]
    current = lines[UPDATE, "newest current"]
    failures = {one["way"]: one["failure"]["id"] for one in told if "failure" in one}
    assert failures == {way: "q1/q0" for way in bench.WAYS if not current[way][0]}


def test_a_kind_that_nothing_has(
    bench: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="2"):
        ran(
            bench,
            monkeypatch,
            "--data",
            str(written(tmp_path)),
            "--kinds",
            "simple",
            "--kinds",
            "x",
        )
    assert "is of the kind x" in capsys.readouterr().err
