"""Learning from feedback: what is learnt, what the guard refuses, and that it can be taken back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memograd.data.conversation import Question
from memograd.data.lifelog.from_journal import lifelog_of_journal
from memograd.data.lifelog.types import GoldOp, Lifelog, Probe, ToldStatement
from memograd.errors import BadInput
from memograd.memory import Memory, RawTurn, Scope
from memograd.memory.manager.trained.files import PolicyVersions
from memograd.memory.records.operations import OpKind
from memograd.memory.write.answers import Answered, write_answer
from memograd.tasks.memory_ops import online as learn_online
from memograd.tasks.memory_ops.online import (
    Scores,
    is_not_worse,
    learn_from_feedback,
    split_probes,
)
from memograd.tasks.memory_ops.settings import OnlineConfig

QUICK = OnlineConfig(steps=3, logs=1, eval_logs=1, logs_per_step=2, learning_rate=0.01)
PLACES = ("Boston", "Denver", "Rome", "Paris", "Oslo", "Lima")


class WordEmbedder:
    """Words hashed into a unit vector."""

    name, dimension = "words", 32

    def embed(self, texts: Any) -> np.ndarray:
        vectors = np.full((len(texts), self.dimension), 0.01, np.float32)
        for row, text in enumerate(texts):
            for word in text.casefold().replace("?", "").replace(".", "").split():
                vectors[row, hashlib.md5(word.encode()).digest()[0] % self.dimension] += 1
        units: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return units

    def embed_queries(self, texts: Any) -> np.ndarray:
        return self.embed(texts)


@pytest.fixture
def policies(tmp_path: Path, make_head: Callable[..., Any]) -> PolicyVersions:
    """A policy that ignores everything, but not by far: what it ignores, it may try."""
    versions = PolicyVersions(tmp_path / "policies")
    lazy = make_head("words", 32, none=0.5, add=0.0, update=-3.0, delete=-3.0)
    versions.adopt(versions.save(lazy))
    return versions


@pytest.fixture
def memory(tmp_path: Path, policies: PolicyVersions) -> Iterator[Memory]:
    with Memory.open(
        tmp_path / "m", embedder=WordEmbedder(), env_file=None, policy=policies.folder
    ) as opened:
        yield opened


def told(memory: Memory, user: str = "alice", day: int = 1) -> None:
    """Facts that the lazy policy declined, and answers that would have needed them.

    What is held out is told by the questions, so it is the same in every run.
    """
    for place in PLACES:
        memory.add(f"My office in {place} has a garden.", user_id=user)
    for place in PLACES:
        answer = Answered(f"What is at the office in {place}?", "No idea.", id=f"{place} {day}")
        write_answer(memory.store, answer, Scope(user))
        memory.feedback(answer.id, f"The office in {place} has a garden.", user_id=user)


def decided_by(memory: Memory) -> str:
    return memory.store.journal.tail("user:alice")[-1].actor


def test_a_lazy_policy_learns_to_remember_repeatably_and_can_be_rolled_back(
    memory: Memory, policies: PolicyVersions
) -> None:
    told(memory)
    first = policies.current
    assert memory.get_all(user_id="alice")["results"] == []
    report = learn_from_feedback(memory, "user:alice", policies.folder, QUICK)
    assert report.adopted and report.before_version == first
    assert report.after_version == policies.current != first
    assert report.trained_on + report.held_out == len(PLACES)
    assert report.held_out > 0 and report.left_out == {}
    assert report.before.feedback == 0.0
    assert report.after.generated > report.before.generated
    # Learning is repeatable.
    assert policies.rollback() == first
    again = learn_from_feedback(memory, "user:alice", policies.folder, QUICK)
    assert (again.after_version, again.after) == (report.after_version, report.after)
    memory.add("My office in Cairo has a pool.", user_id="alice")
    assert decided_by(memory) == f"policy:{report.after_version}"
    assert policies.rollback() == first
    assert memory.add("My office in Quito has a pool.", user_id="alice") == {"results": []}
    assert decided_by(memory) == f"policy:{first}"
    log = (policies.folder / "log.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["event"] for line in log.splitlines()] == [
        "adopted",
        *("learned", "adopted", "rolled back") * 2,
    ]
    assert "garden" not in log


def test_the_guard_refuses_a_version_that_is_worse(
    memory: Memory,
    policies: PolicyVersions,
    make_head: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told(memory)
    keen = policies.save(make_head("words", 32, add=5.0))
    policies.adopt(keen)
    forgetful = make_head("words", 32, none=5.0)
    monkeypatch.setattr(learn_online, "train_on", lambda *_: forgetful)
    report = learn_from_feedback(memory, "user:alice", policies.folder, QUICK)
    assert not report.adopted
    assert report.after.generated < report.before.generated
    assert (report.before.feedback, report.after.feedback) == (1.0, 0.0)
    assert policies.current == keen
    assert report.after_version in policies.versions()  # kept to look at
    last = (policies.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert (json.loads(last)["event"], json.loads(last)["adopted"]) == ("refused", False)


@pytest.mark.parametrize(
    ("before", "after", "adopted"),
    [
        (Scores(0.5, 0.5), Scores(0.5, 0.5), True),
        (Scores(0.5, 0.5), Scores(0.4, 0.9), False),
        (Scores(0.5, 0.5), Scores(0.9, 0.496), True),
        (Scores(0.5, 0.5), Scores(0.9, 0.49), False),
        (Scores(None, 0.5), Scores(None, 0.6), True),
        (Scores(None, 0.5), Scores(None, 0.4), False),
    ],
)
def test_what_counts_as_worse(before: Scores, after: Scores, adopted: bool) -> None:
    assert is_not_worse(before, after, 0.005) is adopted


def test_an_answer_stays_on_its_side(memory: Memory) -> None:
    def sides() -> tuple[set[str], set[str]]:
        log = lifelog_of_journal(memory.store.journal.tail("user:alice"), "user:alice").log
        assert log is not None
        train, judge = split_probes(log, 0.25)
        assert train.statements == judge.statements == log.statements
        return (
            {probe.question.id for probe in train.probes},
            {probe.question.id for probe in judge.probes},
        )

    told(memory)
    train, judge = sides()
    told(memory, day=2)
    more_train, more_judge = sides()
    assert train <= more_train and judge <= more_judge
    assert not more_train & more_judge
    assert len(more_train | more_judge) == 2 * len(PLACES)


def test_held_out_corrections_do_not_reach_the_log_to_train_on() -> None:
    """Which statement replaced which is known from corrections: from the log's own alone."""
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    turn = RawTurn("t", "alice", "Said.", moment, 0)

    def correction(number: int) -> Probe:
        name = f"answer {number}"
        text = f"Where is {number}?"
        question = Question(name, text, "There.", "correction", (), asked_at=moment)
        return Probe(question, (f"new {number}",), (f"old {number}",))

    numbers = range(12)
    told = [ToldStatement(f"old {n}", "t", f"Old {n}.", moment) for n in numbers]
    told += [
        ToldStatement(f"new {n}", "t", f"New {n}.", moment, gold=GoldOp(OpKind.UPDATE, f"old {n}"))
        for n in numbers
    ]
    probes = tuple(correction(n) for n in numbers)
    log = Lifelog("journal", "en", ("alice", "assistant"), (turn,), tuple(told), probes)
    train, judge = split_probes(log, 0.5)
    assert train.probes and judge.probes
    known = {one.gold.target for one in train.statements if one.gold}
    assert known == {name for probe in train.probes for name in probe.misleading}
    assert judge.statements == log.statements


def test_without_feedback_nothing_is_learnt(memory: Memory, policies: PolicyVersions) -> None:
    before = policies.current
    with pytest.raises(BadInput, match="none was given"):
        learn_from_feedback(memory, "user:alice", policies.folder, QUICK)
    memory.add("I live in Boston.", user_id="alice")
    memory.feedback(memory.answered("Where?", "In Rome.", user_id="alice"), "bad")
    with pytest.raises(BadInput, match="1 bad without a correction"):
        learn_from_feedback(memory, "user:alice", policies.folder, QUICK)
    assert policies.current == before


def test_a_user_is_not_learnt_from_for_another(memory: Memory, policies: PolicyVersions) -> None:
    told(memory, "bob")
    with pytest.raises(BadInput, match="no feedback of user:alice"):
        learn_from_feedback(memory, "user:alice", policies.folder, QUICK)


def test_what_cannot_be_learnt_on_is_refused(
    memory: Memory, policies: PolicyVersions, tmp_path: Path, make_head: Callable[..., Any]
) -> None:
    told(memory)
    with pytest.raises(BadInput, match="memograd policy adopt"):
        learn_from_feedback(memory, "user:alice", tmp_path / "absent", QUICK)
    assert not (tmp_path / "absent").exists()
    other = PolicyVersions(tmp_path / "other")
    other.adopt(other.save(make_head("others", 32, add=1.0)))
    with pytest.raises(BadInput, match="trained with the embedder 'others'"):
        learn_from_feedback(memory, "user:alice", other.folder, QUICK)
    with policies.held(), pytest.raises(BadInput, match="Somebody else is learning"):
        learn_from_feedback(memory, "user:alice", policies.folder, QUICK)


@pytest.mark.parametrize(
    "asked",
    [
        ("Where does Ann live?", "where does ann live", "Where  does Ann live ?!"),
        ("小红住在哪里？", "小红住在哪里", "小红 住在哪里?"),
    ],
)
def test_a_question_asked_again_is_on_the_same_side(asked: tuple[str, ...]) -> None:
    now = datetime(2024, 5, 1, tzinfo=UTC)
    turn = RawTurn("t0", "ann", "It was said.", now, 1)
    statement = ToldStatement("s0", "t0", "It was said.", now, GoldOp(OpKind.ADD))
    probes = tuple(
        Probe(
            Question(f"a{number}/{way}", f"{number}: {text}", "yes", "feedback", (), asked_at=now),
            ("s0",),
        )
        for number in range(60)
        for way, text in enumerate(asked)
    )
    log = Lifelog("own", "en", ("ann", "assistant"), (turn,), (statement,), probes)
    rest, held = split_probes(log, 0.3)
    sides = [{probe.question.id.split("/")[0] for probe in side.probes} for side in (rest, held)]
    assert not sides[0] & sides[1] and all(sides)
    assert len(rest.probes) + len(held.probes) == len(probes)
    assert all(len(side.probes) % len(asked) == 0 for side in (rest, held))
