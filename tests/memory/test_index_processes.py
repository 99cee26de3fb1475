"""An index with several hands on it: threads, a killed process, processes that share a server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from indexed import (
    answers,
    history,
    ids,
    item,
    open_index,
    purge,
    vector,
)

from memograd.errors import BadInput
from memograd.memory.index import IndexUnavailable, milvus_index
from memograd.memory.journal import Journal
from memograd.memory.records.events import EventKind


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milvus_index, "BATCH_EVENTS", 7)


# Many hands


def test_a_second_process_is_told_so(tmp_path: Path, journal: Journal) -> None:
    with (
        open_index(tmp_path / "i.db", journal),
        pytest.raises(IndexUnavailable, match="Milvus Lite serves one at a time"),
    ):
        open_index(tmp_path / "i.db", journal)


def test_threads_share_an_index(tmp_path: Path, journal: Journal) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for round_ in range(4):
                journal.append([item(f"{number}-{round_}", f"tea {number} {round_}")])
                index.catch_up()
                hits = index.search(vector("x"), ["tea"], layer="item", k=99)
                assert f"{number}-{round_}" in ids(hits)
        except BaseException as failure:
            failures.append(failure)

    with open_index(tmp_path / "i.db", journal) as index:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert index.stats()["rows"] == 16
        assert index.check() is None


CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
import indexed
from memograd.memory.index import milvus_index
from memograd.memory.journal import Journal
milvus_index.BATCH_EVENTS = 7
with Journal.open(sys.argv[3]) as journal:
    index = indexed.open_index(sys.argv[2], journal, **eval(sys.argv[4]))
    print("open", flush=True)
    index.catch_up()
    print("done", flush=True)
    index.close()
"""


def child(uri: str, journal_url: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(Path(__file__).parent), uri, journal_url, repr(more)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def test_killed_while_catching_up(tmp_path: Path, journal: Journal) -> None:
    journal.append(history(300))
    worker = child(str(tmp_path / "i.db"), f"sqlite:///{tmp_path / 'journal.db'}")
    assert worker.stdout is not None
    assert worker.stdout.readline() == "open\n"
    time.sleep(0.2)
    worker.send_signal(signal.SIGKILL)
    assert "done" not in worker.communicate()[0]  # or nothing was tested
    with open_index(tmp_path / "i.db", journal) as index:
        index.catch_up()
        recovered = answers(index)
        assert index.check() is None
        index.rebuild()
        assert answers(index) == recovered


# Servers: a real one where MEMOGRAD_TEST_MILVUS names it, else Milvus Lite serving over HTTP.


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if uri := os.environ.get("MEMOGRAD_TEST_MILVUS"):
        yield uri
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "import sys; from milvus_lite.cmdline import main; main(sys.argv[1:])"
    folder = str(tmp_path_factory.mktemp("milvus"))
    options = ["--data-dir", folder, "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-c", code, "server", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def test_many_processes_share_a_server(tmp_path: Path, journal: Journal, server: str) -> None:
    name = f"memograd_test_{uuid.uuid4().hex}"
    journal.append(history(60))
    with open_index(server, journal, collection=name) as index:
        other = child(server, f"sqlite:///{tmp_path / 'journal.db'}", collection=name)
        index.catch_up()
        assert other.communicate()[0] == "open\ndone\n"
        together = answers(index)
        assert index.check() is None
        purge(journal, owner="user:bob")
        journal.append([item("late", "tea")])
        index.catch_up()
        assert answers(index, owners=["user:bob"])["turn tea"] == ([], set())
        alone = answers(index, owners=["user:ann"])
        assert alone != together
        index.rebuild()
        assert answers(index, owners=["user:ann"]) == alone
        assert index.stats()["bytes"] is None
        with (
            Journal.open(f"sqlite:///{tmp_path / 'another.db'}") as stranger,
            pytest.raises(BadInput, match="belongs to another memory"),
        ):
            open_index(server, stranger, collection=name)
        index._connection.discard(name)


def test_an_older_event_never_replaces_a_newer_row(
    tmp_path: Path, journal: Journal, server: str
) -> None:
    name = f"memograd_test_{uuid.uuid4().hex}"
    with (
        open_index(server, journal, collection=name) as fast,
        open_index(server, journal, collection=name) as slow,
    ):
        journal.append([item("1", "tea")])
        old = milvus_index.fold(journal.tail_all(after=0, limit=9))
        journal.append([item("1", "dog", EventKind.UPDATE)])
        fast.catch_up()
        slow._apply(old)  # what a process does that read the journal a moment too early
        slow._place = 1
        slow._mark(rows=None)
        assert ids(fast.search(None, ["dog"], layer="item", k=9, mode="lexical")) == ["1"]
        assert fast.search(None, ["tea"], layer="item", k=9, mode="lexical") == []
        assert fast.stats()["watermark"] == 2
        fast._connection.discard(name)
