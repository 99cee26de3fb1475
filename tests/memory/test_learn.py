from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from memograd.errors import MemogradError
from memograd.memory import Decision, Memory, MemoryOp
from memograd.memory.reader import Fact
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.search import Hit

ALICE = Scope("alice")


@pytest.fixture
def memory(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as opened:
        yield opened


class Scripted:
    """A manager that takes its decisions from a function."""

    actor = "scripted"

    def __init__(self, decide: Callable[[Fact, Sequence[MemoryItem]], Decision]) -> None:
        self._decide = decide

    def decide(
        self, state: Any, fact: Fact, query: Any, related: Sequence[Hit[MemoryItem]]
    ) -> Decision:
        return self._decide(fact, [hit.record for hit in related])


def kinds(memory: Memory, text: str) -> list[str]:
    return [event.kind.value for event in memory.learn(text, scope=ALICE)]


def test_a_fact_goes_through_all_four_operations(memory: Memory) -> None:
    assert kinds(memory, "I live in Boston.") == ["ADD"]
    assert kinds(memory, "I live in Boston.") == ["NONE"]
    assert kinds(memory, "I live in Denver now.") == ["UPDATE"]
    assert kinds(memory, "I no longer live in Denver.") == ["DELETE"]
    assert memory.get_all(user_id="alice")["results"] == []


def test_later_facts_of_one_call_see_earlier_ones(memory: Memory) -> None:
    assert kinds(memory, "I live in Boston. I live in Boston.") in (["ADD"], ["ADD", "NONE"])
    assert len(memory.get_all(user_id="alice")["results"]) == 1


class Rootless:
    """A reader whose facts name no turn that they came from."""

    def read(self, turns: Sequence[RawTurn]) -> list[Fact]:
        return [Fact(turn.text, ()) for turn in turns]


def test_a_fact_without_a_source_is_remembered(tmp_path: Path, trigrams: Callable[[], Any]) -> None:
    with Memory.open(
        tmp_path, embedder=trigrams(), reader=Rootless(), manager="rules", env_file=None
    ) as memory:
        # Its words tell where it came from, so that forgetting it takes the turn along.
        assert kinds(memory, "Rex is a dog.") == ["ADD", "NONE"]
        [item] = memory.get_all(user_id="alice")["results"]
        memory.delete(item["id"])
        assert memory.context("Rex", user_id="alice").turns == ()


def test_turns_are_heard_even_when_nothing_is_remembered(memory: Memory) -> None:
    assert kinds(memory, "Hello there!") == []
    [event] = memory.store.journal.tail("user:alice")
    assert event.kind.value == "TURN"


def test_the_journal_gets_all_of_a_call_or_nothing(memory: Memory) -> None:
    def decide(fact: Fact, related: Sequence[MemoryItem]) -> Decision:
        if "Denver" in fact.text:
            raise MemogradError("the manager broke down")
        return Decision(MemoryOp.add(fact.text), "new")

    memory.manager = Scripted(decide)
    with pytest.raises(MemogradError, match="broke down"):
        memory.add("I live in Boston. I work in Denver.", user_id="alice")
    assert memory.store.journal.last_seq() == 0


def test_a_manager_can_only_touch_what_it_was_shown(memory: Memory) -> None:
    [mine] = memory.add("My own.", user_id="bob", infer=False)["results"]
    memory.manager = Scripted(lambda fact, related: Decision(MemoryOp.delete(mine["id"]), "!"))
    with pytest.raises(MemogradError, match="not among the related items"):
        memory.add("I live in Boston.", user_id="alice")
    assert memory.get(mine["id"]) is not None


def test_a_decision_is_made_again_when_another_was_faster(memory: Memory) -> None:
    [first] = memory.add("I live in Boston.", user_id="alice")["results"]
    seen: list[str] = []

    def decide(fact: Fact, related: Sequence[MemoryItem]) -> Decision:
        if not seen:
            memory.update(first["id"], "User lives in Paris.")
        seen.append(related[0].text)
        return Decision(MemoryOp.update(related[0].id, fact.text), "moved")

    memory.manager = Scripted(decide)
    [result] = memory.add("I live in Denver now.", user_id="alice")["results"]
    assert seen == ["User lives in Boston.", "User lives in Paris."]
    assert result["previous_memory"] == "User lives in Paris."
    events = [line["event"] for line in memory.history(first["id"])]
    assert events == ["ADD", "UPDATE", "UPDATE"]


def test_endless_interference_ends_in_a_sentence(memory: Memory) -> None:
    [first] = memory.add("I live in Boston.", user_id="alice")["results"]

    def decide(fact: Fact, related: Sequence[MemoryItem]) -> Decision:
        memory.update(first["id"], f"User lives elsewhere, {uuid4()}.")  # another text each time
        return Decision(MemoryOp.update(first["id"], fact.text), "moved")

    memory.manager = Scripted(decide)
    with pytest.raises(MemogradError, match="try again"):
        memory.add("I live in Denver now.", user_id="alice")


def test_only_items_under_the_same_ids_are_related(memory: Memory) -> None:
    memory.add("I live in Boston.", user_id="alice", run_id="r1")
    [result] = memory.add("I live in Denver now.", user_id="alice", run_id="r2")["results"]
    assert result["event"] == "ADD"
    assert len(memory.get_all(user_id="alice")["results"]) == 2


def test_the_embedding_is_that_of_the_text_that_was_written(
    memory: Memory, trigrams: Callable[[], Any]
) -> None:
    memory.manager = Scripted(
        lambda fact, related: Decision(MemoryOp.add("something else entirely"), "reworded")
    )
    memory.add("I live in Boston.", user_id="alice")
    [hit] = memory.search("something else entirely", user_id="alice")["results"]
    assert hit["similarity"] == pytest.approx(1.0, abs=1e-5)
