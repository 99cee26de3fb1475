"""Killed, full, crowded and forked: a journal of real processes on a real disk."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput, MemogradError
from memograd.memory.journal import Journal
from memograd.memory.records.events import EventKind, NewEvent
from memograd.memory.records.scope import Scope


def pair(name: str, user: str = "alice") -> list[NewEvent]:
    """Two events that belong together: all or nothing must hold for them."""
    scope = Scope(user)
    return [
        NewEvent(EventKind.TURN, scope, f"turn {name}", after={"text": name * 20}),
        NewEvent(EventKind.ADD, scope, f"item {name}", after={"text": name * 20}),
    ]


class Child:
    """A forked process that runs `work(say)`; what it says arrives here as lines."""

    def __init__(self, work: Callable[[Callable[[str], None]], None]) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            code = 1
            try:
                work(lambda line: (os.write(writing, f"{line}\n".encode()), None)[1])
                code = 0
            except BaseException:
                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(code)
        os.close(writing)
        self._pipe = os.fdopen(reading, "r")

    def line(self) -> str:
        return self._pipe.readline().strip()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def finish(self) -> tuple[int, list[str]]:
        """The status that `os.waitpid` gives, and the lines not read yet."""
        lines = self._pipe.read().split("\n")[:-1]
        self._pipe.close()
        return os.waitpid(self.pid, 0)[1], lines


def append_for_ever(url: str, attempt: int) -> Callable[[Callable[[str], None]], None]:
    def work(say: Callable[[str], None]) -> None:
        with Journal.open(url) as journal:
            for number in range(1_000_000):
                events = journal.append(pair(f"{attempt}.{number}"))
                say(" ".join(event.uid for event in events))

    return work


def kill_again_and_again(folder: Path, times: int) -> None:
    url = f"sqlite:///{folder}/j.db"
    chance = random.Random(times)
    acknowledged: set[str] = set()
    for attempt in range(times):
        child = Child(append_for_ever(url, attempt))
        for _ in range(chance.choice((0, 1, 5, 30))):
            acknowledged.update(child.line().split())
        time.sleep(chance.random() * 0.02)
        child.kill()
        status, lines = child.finish()
        assert os.WTERMSIG(status) == signal.SIGKILL
        acknowledged.update(uid for line in lines for uid in line.split())
        with Journal.open(url) as journal:
            events = journal.tail_all(after=0, limit=1_000_000)
        assert acknowledged <= {event.uid for event in events}
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        names = [event.subject.split()[1] for event in events]
        assert names[0::2] == names[1::2]
    assert len(acknowledged) > times
    raw = sqlite3.connect(folder / "j.db")
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    raw.close()


def test_kill_9_loses_nothing_acknowledged_and_leaves_no_half(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, times=8)


@pytest.mark.slow
def test_kill_9_two_hundred_times(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, times=200)


def test_two_processes_lose_nothing_and_see_each_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/j.db"

    def writer(name: str) -> Callable[[Callable[[str], None]], None]:
        def work(say: Callable[[str], None]) -> None:
            with Journal.open(url) as journal:
                others = 0
                for number in range(300):
                    journal.append(pair(f"{name}{number}", user=name))
                    others = max(others, journal.last_seq("user:b" if name == "a" else "user:a"))
                say(str(others))

        return work

    children = [Child(writer("a")), Child(writer("b"))]
    results = [child.finish() for child in children]
    assert [status for status, _ in results] == [0, 0]
    assert max(int(lines[0]) for _, lines in results) > 0
    with Journal.open(url) as journal:
        assert [e.seq for e in journal.tail_all(after=0, limit=9999)] == list(range(1, 1201))
        for name in ("a", "b"):
            subjects = [event.subject for event in journal.tail(f"user:{name}")]
            assert subjects == [e.subject for n in range(300) for e in pair(f"{name}{n}")]


def test_many_processes_create_one_journal_at_once(tmp_path: Path) -> None:
    for attempt in range(2):
        url = f"sqlite:///{tmp_path}/{attempt}.db"

        def work(say: Callable[[str], None], url: str = url) -> None:
            with Journal.open(url) as journal:
                journal.append(pair(str(os.getpid())))

        children = [Child(work) for _ in range(6)]
        assert [child.finish()[0] for child in children] == [0] * 6
        with Journal.open(url) as journal:
            assert journal.last_seq() == 12


def test_an_open_journal_works_on_both_sides_of_a_fork(tmp_path: Path) -> None:
    with Journal.open(f"sqlite:///{tmp_path}/j.db") as journal:
        journal.append(pair("before"))

        def work(say: Callable[[str], None]) -> None:
            for number in range(50):
                journal.append(pair(f"child{number}"))
            say(str(len(journal.tail("user:alice"))))

        child = Child(work)
        for number in range(50):
            journal.append(pair(f"parent{number}"))
        status, lines = child.finish()
        assert status == 0
        assert int(lines[0]) >= 102
        assert journal.last_seq() == 202
    # The parent was the last to close, so the log is folded in: nothing was lost on the way.
    raw = sqlite3.connect(tmp_path / "j.db")
    assert raw.execute("SELECT count(*) FROM events").fetchone() == (202,)
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    raw.close()


def open_files(name: str) -> int:
    """How many files of this name the process has open."""
    links = [Path(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")]
    return sum(name in os.readlink(link) for link in links if link.is_symlink())


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are not listed here")
def test_a_child_inherits_no_open_file_of_the_journal(tmp_path: Path) -> None:
    with Journal.open(f"sqlite:///{tmp_path}/inherited.db") as journal:
        written = journal.append(pair("before"))
        assert journal.tail("user:alice", after=written[-1].seq) == []
        assert open_files("inherited.db") > 0

        def work(say: Callable[[str], None]) -> None:
            say(str(open_files("inherited.db")))
            say(str(len(journal.tail("user:alice"))))

        assert Child(work).finish() == (0, ["0", "2"])
        assert journal.tail("user:alice", after=written[-1].seq) == []
    assert open_files("inherited.db") == 0


def test_a_child_keeps_its_journal_when_the_parent_closes_its_own(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/j.db"
    journal = Journal.open(url)
    journal.append(pair("before"))
    gate_reading, gate_writing = os.pipe()

    def work(say: Callable[[str], None]) -> None:
        journal.append(pair("child1"))
        say("ready")
        os.read(gate_reading, 1)  # the parent has closed
        journal.append(pair("child2"))
        say(str(journal.last_seq()))

    child = Child(work)
    assert child.line() == "ready"
    journal.close()
    os.write(gate_writing, b".")
    assert child.finish() == (0, ["6"])
    for descriptor in (gate_reading, gate_writing):
        os.close(descriptor)
    with Journal.open(url) as again:
        assert again.last_seq() == 6


def test_eight_threads_append_and_tail_at_once(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    with Journal.open(f"sqlite:///{tmp_path}/j.db") as journal:

        def work(name: str) -> None:
            try:
                seen = 0
                for number in range(50):
                    journal.append(pair(f"{name}.{number}", user=name))
                    events = journal.tail(f"user:{name}", after=seen)
                    assert [e.subject for e in events] == [
                        e.subject for e in pair(f"{name}.{number}")
                    ]
                    seen = events[-1].seq
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(str(name),)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert [e.seq for e in journal.tail_all(after=0, limit=9999)] == list(range(1, 801))


def test_a_full_disk_is_one_sentence_and_the_journal_works_again_with_room(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/j.db"

    def work(say: Callable[[str], None]) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with Journal.open(url) as journal:
            journal.append(pair("first"))
            room = (tmp_path / "j.db-wal").stat().st_size + 100_000
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            acknowledged = 1
            try:
                for number in range(1000):
                    journal.append(pair(f"{number}"))
                    acknowledged += 1
            except MemogradError as error:
                say(json.dumps([str(error), isinstance(error, BadInput)]))
            held = journal.last_seq()
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            )
            journal.append(pair("last"))
            say(json.dumps([acknowledged, held, journal.last_seq()]))

    status, lines = Child(work).finish()
    assert status == 0
    message, bad_input = json.loads(lines[0])
    assert "could not be written" in message
    assert "disk" in message
    assert "try again" in message
    assert "\n" not in message
    assert not bad_input
    acknowledged, held, last = json.loads(lines[1])
    assert 1 < acknowledged < 1000
    assert held == 2 * acknowledged
    assert last == held + 2
    with Journal.open(url) as journal:
        assert len(journal.tail("user:alice")) == last


def test_no_more_pages_is_told_as_a_full_disk(tmp_path: Path) -> None:
    with Journal.open(f"sqlite:///{tmp_path}/j.db") as journal:
        journal.append(pair("first"))

        def allow(pages: int) -> Any:
            with journal._database.reading() as connection:
                return connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}").scalar()

        allow(1)  # SQLite takes the present size where less is asked for
        with pytest.raises(MemogradError, match="make room on that disk and try again"):
            for number in range(100):
                journal.append(pair(f"{number}" * 50))
        held = journal.last_seq()
        assert held % 2 == 0
        allow(1_000_000)
        journal.append(pair("again"))
        assert journal.last_seq() == held + 2


def test_a_writer_who_never_ends_is_told_in_a_sentence(tmp_path: Path) -> None:
    with Journal.open(f"sqlite:///{tmp_path}/j.db?timeout=0.1") as journal:
        journal.append(pair("first"))
        raw = sqlite3.connect(tmp_path / "j.db", isolation_level=None)
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(MemogradError, match="another process"):
            journal.append(pair("second"))
        assert journal.last_seq() == 2  # readers are not held up
        raw.execute("ROLLBACK")
        raw.close()
        journal.append(pair("second"))
