"""Two writers, one of them a little faster: every interleaving is forced, none left to chance."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import MemogradError
from memograd.memory import Decision, Memory, MemoryOp
from memograd.memory.reader import Fact


@pytest.fixture
def memory(tmp_path: Path, trigrams: Callable[[], Any]) -> Iterator[Memory]:
    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as opened:
        yield opened


def add(memory: Memory, text: str, **given: Any) -> str:
    [result] = memory.add(text, user_id="alice", infer=False, **given)["results"]
    return str(result["id"])


def between_reading_and_writing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, interfere: Callable[[], object]
) -> None:
    """Let `interfere` run once, after the next state was read."""
    read, done = memory.store.states.current, []

    def reading(owner: str, **how: Any) -> Any:
        state = read(owner, **how)
        if not done:
            done.append(1)
            interfere()
        return state

    monkeypatch.setattr(memory.store.states, "current", reading)


def test_delete_all_looks_again_at_what_changed(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = add(memory, "ticket one", metadata={"state": "closed"})
    gone = add(memory, "ticket two", metadata={"state": "closed"})
    between_reading_and_writing(
        memory, monkeypatch, lambda: memory.update(kept, metadata={"state": "open"})
    )
    assert memory.delete_all(user_id="alice", filters={"state": "closed"})["deleted"] == 1
    assert memory.get(kept) is not None and memory.get(gone) is None


def test_deleting_twice_at_once_deletes_once(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = add(memory, "ticket one")
    between_reading_and_writing(memory, monkeypatch, lambda: memory.delete(chosen))
    assert memory.delete_all(user_id="alice")["deleted"] == 0
    assert [line["event"] for line in memory.history(chosen)] == ["ADD", "DELETE"]
    assert memory.get_all(user_id="alice")["results"] == []  # still readable


def test_a_fact_is_not_declined_for_an_item_that_is_gone(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    [first] = memory.add("I like tea.", user_id="alice")["results"]
    between_reading_and_writing(memory, monkeypatch, lambda: memory.delete(first["id"]))
    memory.add("I like tea.", user_id="alice")
    assert len(memory.get_all(user_id="alice")["results"]) == 1


def test_two_memories_told_the_same_at_once_remember_it_once(
    memory: Memory,
    tmp_path: Path,
    trigrams: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Here one thread plays both writers: waiting for itself would only take time.
    monkeypatch.setattr("memograd.memory.journal.engine.DECIDING_SECONDS", 0.0)
    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as other:
        between_reading_and_writing(
            memory, monkeypatch, lambda: other.add("I live in Boston.", user_id="alice")
        )
        memory.add("I live in Boston.", user_id="alice")
        assert len(other.get_all(user_id="alice")["results"]) == 1


def test_a_storm_of_calls_leaves_a_readable_memory(
    memory: Memory, tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        for turn in range(12):
            try:
                chosen = add(memory, f"thread {number} fact {turn}")
                memory.search("fact", user_id="alice", turns=2)
                if turn % 3 == 0:
                    memory.delete_all(user_id="alice")
                elif turn % 3 == 1:
                    memory.delete(chosen)
                else:
                    memory.purge(chosen)
            except MemogradError as error:
                if "There is no memory" not in str(error):  # somebody else was faster
                    errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [error for error in errors if "still reading" not in str(error)]
    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as fresh:
        assert fresh.get_all(user_id="alice") == memory.get_all(user_id="alice")


def test_nothing_is_stored_of_a_call_that_failed(memory: Memory) -> None:
    class Failing:
        actor = "failing"

        def decide(self, state: Any, fact: Fact, query: Any, related: Any) -> Decision:
            raise MemogradError("no")

    memory.manager = Failing()
    with pytest.raises(MemogradError):
        memory.add("I suffer from quuxitis.", user_id="alice")
    assert memory.stats()["derived"] == 0


def test_what_a_manager_reworded_is_not_stored_beside(memory: Memory) -> None:
    class Rewording:
        actor = "rewording"

        def decide(self, state: Any, fact: Fact, query: Any, related: Any) -> Decision:
            return Decision(MemoryOp.add("User has an illness."), "shorter")

    memory.manager = Rewording()
    [result] = memory.add("I suffer from quuxitis.", user_id="alice")["results"]
    memory.purge(result["id"])
    assert memory.stats()["derived"] == 0


CITIES = [
    f"{first}{last}"
    for first in "BDGKLMNP"
    for last in ("ara", "elo", "iru", "onda", "uso", "ivi", "ebra", "otto")
]


def _tell(path: Path, embedder: Any, cities: list[str]) -> None:
    with Memory.open(
        path, embedder=embedder, reader="rules", manager="rules", env_file=None
    ) as own:
        for city in cities:
            own.add(f"I live in {city}.", user_id="alice")


@pytest.mark.parametrize("writers", [2, 16, 64])
def test_statements_of_many_threads_end_like_some_order_of_them(
    tmp_path: Path, trigrams: Callable[[], Any], writers: int
) -> None:
    """One home is left, as when the statements come one by one; four memories share the folder."""
    with ExitStack() as stack:
        memories = [
            stack.enter_context(
                Memory.open(
                    tmp_path, embedder=trigrams(), reader="rules", manager="rules", env_file=None
                )
            )
            for _ in range(4)
        ]

        def work(number: int) -> None:
            memories[number % 4].add(f"I live in {CITIES[number]}.", user_id="alice")

        with ThreadPoolExecutor(writers) as pool:
            list(pool.map(work, range(writers)))
        [home] = memories[0].get_all(user_id="alice")["results"]
        assert len(memories[0].history(home["id"])) == writers  # none was lost, none stands beside


def test_statements_of_many_processes_end_like_some_order_of_them(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    _tell(tmp_path, trigrams(), CITIES[:1])
    context = multiprocessing.get_context("fork")
    told = [CITIES[1 + 4 * n : 5 + 4 * n] for n in range(6)]
    processes = [
        context.Process(target=_tell, args=(tmp_path, trigrams(), cities)) for cities in told
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 6
    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as fresh:
        [home] = fresh.get_all(user_id="alice")["results"]
        assert len(fresh.history(home["id"])) == 1 + 6 * 4


def _answering(path: Path, embedder: Any, asked: Any) -> None:
    """Another process: adds what it is told, and says what it then finds."""
    with Memory.open(path, embedder=embedder, env_file=None) as own:
        for said in iter(asked.recv, None):
            if said:
                add(own, said)
            found = own.search("fact", user_id="alice", top_k=100)["results"]
            asked.send(sorted(one["memory"] for one in found))


def test_what_another_process_writes_is_found_by_the_next_search(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    """Each of them searched just before, so that each holds a state that is whole until then."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    other = context.Process(target=_answering, args=(tmp_path, trigrams(), there), daemon=True)
    other.start()

    def told(text: str) -> list[str]:
        here.send(text)
        return list(here.recv())

    assert told("fact 0") == ["fact 0"]
    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as memory:

        def found(_: int = 0) -> list[str]:
            hits = memory.search("fact", user_id="alice", top_k=100)["results"]
            return sorted(one["memory"] for one in hits)

        with ThreadPoolExecutor(12) as pool:  # more than there are idle connections
            for number in range(1, 40, 2):
                there_written = told(f"fact {number}")
                assert list(pool.map(found, range(12))) == [there_written] * 12
                add(memory, f"fact {number + 1}")
                assert told("") == found()
                assert len(found()) == number + 2
    here.send(None)
    other.join()
    assert other.exitcode == 0
