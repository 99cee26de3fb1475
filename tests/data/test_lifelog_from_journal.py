"""A journal becomes a life log: statements in order, probes from feedback, the rest counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.data.lifelog import Lifelog, read_lifelogs, write_lifelogs
from memograd.data.lifelog.from_journal import JournalLog, lifelog_of_journal
from memograd.memory import Memory
from memograd.memory.embedders import Embedder
from memograd.memory.records.operations import OpKind


class LetterEmbedder:
    """How often each letter is there: enough to look items up by."""

    name, dimension = "letters", 16

    def embed(self, texts: Any) -> np.ndarray:
        counts = np.ones((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            for letter in text:
                counts[row, ord(letter) % self.dimension] += 1
        units: np.ndarray = counts / np.linalg.norm(counts, axis=1, keepdims=True)
        return units

    def embed_queries(self, texts: Any) -> np.ndarray:
        return self.embed(texts)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    embedder: Embedder = LetterEmbedder()
    with Memory.open(tmp_path / "m", embedder=embedder, env_file=None) as opened:
        yield opened


def add(memory: Memory, text: str, user: str = "alice") -> str:
    [added] = memory.add(text, user_id=user, infer=False)["results"]
    return str(added["id"])


def judged(memory: Memory, asked: str, said: str, shown: list[str], *verdicts: str) -> None:
    answer_id = memory.answered(asked, said, shown=shown, user_id="alice")
    for verdict in verdicts:
        memory.feedback(answer_id, verdict)


def of(memory: Memory, owner: str = "user:alice") -> JournalLog:
    return lifelog_of_journal(memory.store.journal.tail(owner), owner)


def log_of(memory: Memory) -> Lifelog:
    log = of(memory).log
    assert log is not None
    return log


def texts(log: Lifelog, ids: tuple[str, ...]) -> list[str]:
    by_id = {statement.id: statement.text for statement in log.statements}
    return [by_id[one] for one in ids]


def test_every_decision_is_a_statement(memory: Memory, tmp_path: Path) -> None:
    memory.add("I live in Boston.", user_id="alice", timestamp="2020-01-02")
    memory.add("I live in Boston.", user_id="alice")
    memory.add("I live in Denver now.", user_id="alice")
    cat = add(memory, "I have a cat.")
    memory.update(cat, metadata={"colour": "red"})
    memory.update(cat, "I have two cats.")
    memory.delete(cat)
    memory.add("Bob's own.", user_id="bob", infer=False)
    log = log_of(memory)
    said = [(statement.text, statement.retracts) for statement in log.statements]
    assert len(said) == 6
    assert ["Boston" in text for text, _ in said] == [True, True, False, False, False, False]
    assert "Denver" in said[2][0]
    assert said[3:] == [
        ("I have a cat.", False),
        ("I have two cats.", False),
        ("I have two cats.", True),
    ]
    turns = {turn.id: turn.text for turn in log.turns}
    assert turns[log.statements[0].turn_id] == "I live in Boston."
    assert (log.language, log.speakers) == ("en", ("alice", "assistant"))
    write_lifelogs([log], tmp_path / "log.jsonl")
    assert read_lifelogs(tmp_path / "log.jsonl") == [log]


def test_a_good_answer_needs_what_it_repeats(memory: Memory) -> None:
    home, cat = add(memory, "I live in Boston."), add(memory, "My cat is called Tom.")
    judged(memory, "Where do I live?", "You live in Boston.", [cat, home], "good")
    judged(memory, "And what else?", "Quite a lot!", [cat, home], "good")
    judged(memory, "Where do I live?", "No idea.", [], "good")
    judged(memory, "Where do I live?", "In Rome.", [home])
    found = of(memory)
    assert found.log is not None
    first, second = found.log.probes
    assert texts(found.log, first.needed) == ["I live in Boston."]
    assert (first.question.answer, first.misleading) == ("You live in Boston.", ())
    assert texts(found.log, second.needed) == ["My cat is called Tom.", "I live in Boston."]
    assert found.left_out == {"good, but no memory was shown": 1}


def test_a_correction_needs_what_agrees_and_is_misled_by_what_was_repeated(memory: Memory) -> None:
    add(memory, "I lived in Denver as a child.")
    old, new = add(memory, "I live in Boston."), add(memory, "I moved to Denver.")
    judged(memory, "Where do I live?", "In Boston.", [old], "bad", "In Denver.")
    judged(memory, "Where do I live?", "In Boston.", [old], "In Paris, France.")
    judged(memory, "Where do I live?", "In Boston.", [old], "bad")
    add(memory, "I live in Paris, France.")
    found = of(memory)
    assert found.log is not None
    [probe] = found.log.probes
    assert texts(found.log, probe.needed) == ["I moved to Denver."]
    assert texts(found.log, probe.misleading) == ["I live in Boston."]
    assert found.left_out == {
        "corrected to what nobody told before": 1,
        "bad without a correction": 1,
    }
    gold = {statement.text: statement.gold for statement in found.log.statements if statement.gold}
    assert list(gold) == ["I moved to Denver."]
    change = gold["I moved to Denver."]
    assert (change.kind, texts(found.log, (change.target or "",))) == (
        OpKind.UPDATE,
        ["I live in Boston."],
    )
    assert new != old


def test_it_reads_chinese(memory: Memory) -> None:
    old, new = add(memory, "我住在上海。"), add(memory, "我搬到北京了。")
    judged(memory, "我住在哪里?", "你住在上海。", [old], "北京")
    judged(memory, "我住在哪里?", "北京。", [old, new], "good")
    log = log_of(memory)
    assert log.language == "zh"
    first, second = log.probes
    assert (texts(log, first.needed), texts(log, first.misleading)) == (
        ["我搬到北京了。"],
        ["我住在上海。"],
    )
    assert texts(log, second.needed) == ["我搬到北京了。"]


def test_compacting_tells_nothing_new(memory: Memory) -> None:
    home = add(memory, "I live in Boston.")
    add(memory, "I live in Boston")
    before = log_of(memory)
    batch = memory.compact(0, user_id="alice")["batch_id"]
    assert log_of(memory) == before
    memory.undo_compact(batch)
    judged(memory, "Where do I live?", "In Boston.", [home], "good")
    assert texts(log_of(memory), log_of(memory).probes[0].needed) == ["I live in Boston."]


def test_what_was_purged_is_not_learnt_from(memory: Memory) -> None:
    home = add(memory, "I live in Boston.")
    judged(memory, "Where do I live?", "In Boston.", [home], "good")
    cat = add(memory, "I have a cat.")
    judged(memory, "A pet?", "A cat.", [cat], "good")
    memory.purge(home)
    log = log_of(memory)
    assert [statement.text for statement in log.statements] == ["I have a cat."]
    assert [probe.question.text for probe in log.probes] == ["A pet?"]
    memory.purge(user_id="alice")
    assert of(memory) == JournalLog(None, {})


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "update", "delete", "ask", "purge"]),
        st.integers(0, 4),
        st.sampled_from(["Boston", "Denver", "Rome", "good", "bad"]),
    ),
    max_size=14,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
def test_all_feedback_is_used_or_counted(memory: Memory, steps: list[tuple[str, int, str]]) -> None:
    memory.reset()
    feedback = 0
    for step, place, word in steps:
        items = [item["id"] for item in memory.get_all(user_id="alice")["results"]]
        chosen = items[place % len(items)] if items else None
        if step == "ask":
            judged(memory, "Where?", f"In {word}.", items[:place], "In Rome.", word)
            feedback += 1
        elif step == "add" or chosen is None:
            add(memory, f"I live in {word}.")
        elif step == "update":
            memory.update(chosen, f"I work in {word}.")
        elif step == "delete":
            memory.delete(chosen)
        else:
            memory.purge(chosen)
    kept = [
        event
        for event in memory.store.journal.tail("user:alice")
        if event.kind == "ANSWER" and not event.erased
    ]
    found = of(memory)  # a log refuses probes that name what was told later
    used = len(found.log.probes) if found.log else 0
    assert used + sum(found.left_out.values()) == len(kept) <= feedback
