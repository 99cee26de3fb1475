"""Faults that a memory survives: real processes killed, real threads, real second processes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memograd.memory import Memory

FOLDER = Path(__file__).parents[1]
ADDING = """
import sys
sys.path.insert(0, {folder!r})
from conftest import TrigramEmbedder
from memograd.memory import Memory
memory = Memory.open({path!r}, embedder=TrigramEmbedder(), env_file=None)
print("ready", flush=True)
for number in range({first}, {last}):
    [result] = memory.add(f"{name} fact {{number}}", user_id="alice", infer=False)["results"]
    print(result["id"], flush=True)
"""


def adding(path: Path, name: str, first: int, last: int) -> subprocess.Popen[str]:
    script = ADDING.format(folder=str(FOLDER), path=str(path), name=name, first=first, last=last)
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def kill_in_the_middle(path: Path, trigrams: Callable[[], Any], times: int) -> None:
    chance = random.Random(7)
    acknowledged: set[str] = set()
    for attempt in range(times):
        process = adding(path, f"run {attempt}", 0, 100_000)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(chance.randrange(1, 12)):
            acknowledged.add(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
        acknowledged.update(line.strip() for line in process.stdout if line.endswith("\n"))
        process.wait()
        with Memory.open(path, embedder=trigrams(), env_file=None) as memory:
            items = memory.get_all(user_id="alice")["results"]
            assert acknowledged <= {item["id"] for item in items}
            events = memory.store.journal.tail("user:alice")
            # An add is a turn and an item; a half-written one would leave a turn alone.
            assert 2 * len(items) == len(events)


def test_killed_in_the_middle_of_adds(tmp_path: Path, trigrams: Callable[[], Any]) -> None:
    kill_in_the_middle(tmp_path, trigrams, times=3)


@pytest.mark.slow
def test_killed_in_the_middle_of_adds_200_times(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    kill_in_the_middle(tmp_path, trigrams, times=200)


def test_two_processes_write_one_memory(tmp_path: Path, trigrams: Callable[[], Any]) -> None:
    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as memory:
        other = adding(tmp_path, "other", 0, 100)
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        for number in range(100):
            memory.add(f"mine fact {number}", user_id="alice", infer=False)
            memory.search("fact", user_id="alice")
        theirs = {line.strip() for line in other.stdout}
        assert other.wait() == 0 and len(theirs) == 100
        found = memory.get_all(user_id="alice")["results"]
        assert len(found) == 200
        assert theirs <= {item["id"] for item in found}
        [hit] = memory.search("other fact 99", user_id="alice", top_k=1)["results"]
        assert hit["memory"] == "other fact 99"


def eight_threads(tmp_path: Path, trigrams: Callable[[], Any], adds: int) -> None:
    threads_in_all = 8
    failures: list[BaseException] = []

    def work(number: int) -> None:
        user = f"user {number % 3}"
        try:
            for turn in range(adds):
                [added] = memory.add(f"thread {number} fact {turn}", user_id=user, infer=False)[
                    "results"
                ]
                found = memory.search(f"thread {number} fact {turn}", user_id=user, top_k=3)
                mine = {hit["id"]: hit for hit in found["results"]}
                assert added["id"] in mine  # what was added is found at once
                assert all(hit["user_id"] == user for hit in mine.values())
                if turn % 3 == 0:
                    memory.delete(added["id"])
                    assert memory.get(added["id"]) is None
        except BaseException as error:
            failures.append(error)

    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as memory:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(threads_in_all)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        kept = [len(memory.get_all(user_id=f"user {n}")["results"]) for n in range(3)]
        assert sum(kept) == threads_in_all * adds * 2 // 3


def test_eight_threads_add_search_and_delete(tmp_path: Path, trigrams: Callable[[], Any]) -> None:
    eight_threads(tmp_path, trigrams, adds=60)


@pytest.mark.slow
def test_eight_threads_add_500_times_each(tmp_path: Path, trigrams: Callable[[], Any]) -> None:
    eight_threads(tmp_path, trigrams, adds=498)  # a multiple of three


def test_threads_that_tell_the_same_are_remembered_once(
    tmp_path: Path, trigrams: Callable[[], Any]
) -> None:
    with Memory.open(tmp_path, embedder=trigrams(), env_file=None) as memory:
        threads = [
            threading.Thread(
                target=memory.add, args=("I live in Boston.",), kwargs={"user_id": "a"}
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(memory.get_all(user_id="a")["results"]) == 1
