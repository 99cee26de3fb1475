"""The processes in which statements run: shared, forked, ended, and gone when nobody wants them."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from memograd.errors import MemogradError
from memograd.tasks.sql.sandbox import Result, Sandbox, SqlLimits
from memograd.tasks.sql.sandbox import database as module
from memograd.tasks.sql.sandbox.processes import Processes
from memograd.tasks.sql.sandbox.result import decode, encode
from memograd.tasks.sql.sandbox.worker import GRACE_SECONDS

SLOW = "SELECT sum(length(upper(a.text))) FROM long a, long b, long c"
"""Few steps, and much work in each."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "long.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE long(id integer primary key, text text)")
        rows = [(number, "a" * 90_000) for number in range(200)]
        connection.executemany("INSERT INTO long VALUES (?, ?)", rows)
    return path


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """A store of its own, of which nothing is left behind."""
    own = Processes()
    monkeypatch.setattr(module, "_PROCESSES", own)
    yield own
    own.close()


def pids(processes: Processes) -> list[int]:
    return [process._popen.pid for process in (*processes._idle, *processes._busy)]


def is_gone(pid: int) -> bool:
    """Whether there is no such process, dead or alive; it is given a while."""
    for _ in range(1000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z" and os.getppid() == 0:  # nobody's to be waited for
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    "result",
    [
        Result(
            ("a", "药"), ((1, 1.5, "药\ud800", None, b"\x00\xff"), (2**63 - 1, -0.0, "", 0, b""))
        ),
        Result(("x",), ((float("inf"),), (float("-inf"),)), cut=True, steps=300),
        Result(error="no"),
    ],
)
def test_results_come_through_as_they_are(result: Result) -> None:
    read = decode(encode(result))
    assert (read, read.steps) == (result, result.steps)
    kinds = [[type(value) for value in row] for row in result.rows]
    assert [[type(value) for value in row] for row in read.rows] == kinds


def test_one_process_serves_statement_after_statement(database: Path, processes: Processes) -> None:
    sandbox = Sandbox(database)
    assert pids(processes) == []  # none before it is needed
    sandbox.run("SELECT 1")
    [first] = pids(processes)
    for number in range(20):
        assert sandbox.run(f"SELECT {number}").rows == ((number,),)
    assert pids(processes) == [first]


def test_threads_get_their_own_answers(database: Path, processes: Processes) -> None:
    sandbox = Sandbox(database)
    with ThreadPoolExecutor(16) as threads:
        answers = threads.map(lambda number: sandbox.run(f"SELECT {number}").rows, range(200))
    assert list(answers) == [((number,),) for number in range(200)]
    assert len(pids(processes)) <= 8


def test_tasks_get_their_own_answers(database: Path, processes: Processes) -> None:
    sandbox = Sandbox(database)

    async def ask() -> list[Result]:
        asked = (asyncio.to_thread(sandbox.run, f"SELECT {number}") for number in range(30))
        return await asyncio.gather(*asked)

    assert [result.rows for result in asyncio.run(ask())] == [((n,),) for n in range(30)]


@pytest.mark.parametrize(
    ("statement", "limits"),
    [
        # While a text is read nobody looks at a clock but the kernel: 0.05 s of computing.
        ("SELECT " + "date(" * 39 + "1" + ")" * 39, SqlLimits(seconds=0.05 - GRACE_SECONDS)),
        (SLOW, SqlLimits(wall_seconds=0.2)),
    ],
    ids=["computing", "waiting"],
)
def test_what_no_count_stops_the_clock_does_and_says_so(
    database: Path, processes: Processes, statement: str, limits: SqlLimits
) -> None:
    sandbox = Sandbox(database)
    sandbox.run("SELECT 1")
    [first] = pids(processes)
    stopped = Sandbox(database, limits).run(statement)
    assert "stopped by the clock" in (stopped.error or "")
    assert "the last resort" in (stopped.error or "")
    assert sandbox.run("SELECT 2").rows == ((2,),)
    assert pids(processes) != [first]
    assert is_gone(first)


def test_a_process_that_somebody_ended_is_replaced_without_a_word(
    database: Path, processes: Processes
) -> None:
    sandbox = Sandbox(database)
    sandbox.run("SELECT 1")
    [first] = pids(processes)
    os.kill(first, signal.SIGKILL)
    assert sandbox.run("SELECT 2").rows == ((2,),)
    assert is_gone(first)


def test_after_too_much_memory_the_process_is_another(database: Path, processes: Processes) -> None:
    sandbox = Sandbox(database)
    sandbox.run("SELECT 1")
    [first] = pids(processes)
    much = sandbox.run("SELECT a.text || b.id FROM long a, long b ORDER BY 1")
    assert "too much memory" in (much.error or "")
    assert sandbox.run("SELECT 2").rows == ((2,),)
    assert is_gone(first)


def test_an_interrupted_statement_leaves_no_answer_for_the_next(
    database: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memograd.tasks.sql.sandbox.processes import _Process

    sandbox = Sandbox(database)
    sandbox.run("SELECT 1")
    read = _Process._receive

    def interrupted(self: _Process, until: float) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(_Process, "_receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sandbox.run("SELECT 'old'")
    monkeypatch.setattr(_Process, "_receive", read)
    assert sandbox.run("SELECT 'new'").rows == (("new",),)


def test_a_fork_has_processes_of_its_own(database: Path, processes: Processes) -> None:
    sandbox = Sandbox(database)
    sandbox.run("SELECT 1")
    before = pids(processes)
    child = os.fork()
    if child == 0:  # no test framework here
        right = sandbox.run("SELECT 2").rows == ((2,),) and not set(pids(processes)) & set(before)
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert sandbox.run("SELECT 3").rows == ((3,),)
    assert pids(processes) == before


PROGRAM = """
import os, sys, time
from pathlib import Path
from memograd.tasks.sql.sandbox import Sandbox, database
assert Sandbox(Path(sys.argv[1])).run("SELECT 1").rows == ((1,),)
for process in database._PROCESSES._idle:
    print(process._popen.pid, flush=True)
if sys.argv[2] == "fork":  # whoever is forked holds the pipes open, and lives on
    if os.fork() == 0:
        time.sleep(4)
        os._exit(0)
if sys.argv[2] != "exit":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("end", ["exit", "kill", "fork"])
def test_no_process_outlives_its_owner(database: Path, end: str) -> None:
    asked = [sys.executable, "-c", PROGRAM, str(database), end]
    shown = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True)
    assert shown.stdout is not None
    pid = int(shown.stdout.readline())
    shown.wait()
    shown.stdout.close()
    assert is_gone(pid)


def test_nothing_is_asked_after_the_end(database: Path) -> None:
    own = Processes()
    own.close()
    with pytest.raises(MemogradError, match="shutting down"):
        own.ask({}, 1.0)


def test_a_process_that_cannot_start_is_said(
    database: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(MemogradError, match=r"could not be started .*memograd\[sql\]"):
        Sandbox(database).run("SELECT 1")


def test_a_database_that_went_away_is_an_error_in_words(
    tmp_path: Path, processes: Processes
) -> None:
    path = tmp_path / "here.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t(x)")
    sandbox = Sandbox(path)
    path.unlink()
    assert sandbox.run("SELECT 1").error == "unable to open database file"
