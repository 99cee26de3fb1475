"""The process in which statements are run: it reads one at a time, answers, and is easily ended.

    owner ── {"database", "sql", "limits"} ──> worker ── check, size, execute ──> result, or its end

A message is its length in four bytes and JSON. The worker sets its own limits before it reads the
first: no file may grow, so nothing can be written; memory and SQLite's heap are bounded; and each
statement has a timer of computing time that ends the process, in the middle of a step too. The
kernel keeps all of them (RLIMIT_AS binds on Linux). The worker ends when its owner has closed the
pipe or is gone.

Invariant: after the limits are set, no file and no network is opened but the databases that are
named. Imports nothing of memograd but this room, whatever the packages around it would load.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import resource
import select
import signal
import sqlite3
import struct
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from memograd.tasks.sql.sandbox.check import read_query
from memograd.tasks.sql.sandbox.execute import TOO_MUCH, execute
from memograd.tasks.sql.sandbox.result import Result, SqlLimits, encode

HEADER = struct.Struct(">I")
READY = b"ready"
LAST = b"!"
"""Begins an answer after which the worker ends; others begin with `MORE`."""
MORE = b" "
GRACE_SECONDS = 0.4
"""Of computing, beyond what the statement may take before it is asked to stop."""

_ADDRESS_SPACE = 400_000_000
_HEAP_BYTES = 64_000_000
"""Of SQLite, which counts every byte: as good as a count of steps for what it builds and sorts."""
_RECURSION = 700
"""Calls within calls while a statement is read: fewer than Python's 1,000, so that whoever reads
again what was read here does not run out of them."""
_LOOK_SECONDS = 2.0
_READ, _WRITE = 0, 1


def main(owner: int) -> None:
    """Serve the process `owner` on standard input and output until it is gone."""
    read_query("SELECT 1")  # what is imported on first use
    gc.freeze()
    logging.disable()
    _limit_process()
    _send(READY)
    while (message := _receive(owner)) is not None:
        _send(_answer(json.loads(message)))


def _limit_process() -> None:
    for kind, limit in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(kind, (limit, limit))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner's Ctrl-C; it decides about us
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    sys.setrecursionlimit(_RECURSION)
    with closing(sqlite3.connect(":memory:")) as connection:  # it holds for the process
        connection.execute(f"PRAGMA hard_heap_limit = {_HEAP_BYTES}")


def _answer(asked: dict[str, Any]) -> bytes:
    limits = SqlLimits(**asked["limits"])
    signal.setitimer(signal.ITIMER_PROF, limits.seconds + GRACE_SECONDS)
    try:
        return MORE + encode(execute(Path(asked["database"]), asked["sql"], limits))
    except MemoryError:
        pass
    except sqlite3.Error as error:  # the file itself: gone, or spoilt
        return MORE + encode(Result(error=str(error)))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return LAST + encode(Result(error=TOO_MUCH))


def _receive(owner: int) -> bytes | None:
    """The next message; None if the owner is gone."""
    while not select.select([_READ], [], [], _LOOK_SECONDS)[0]:
        # A fork of the owner may hold the other end of the pipe open when the owner is gone.
        if os.getppid() != owner:
            return None
    header = _read(HEADER.size)
    return None if header is None else _read(HEADER.unpack(header)[0])


def _read(size: int) -> bytes | None:
    found = b""
    while len(found) < size:
        piece = os.read(_READ, size - len(found))
        if not piece:
            return None
        found += piece
    return found


def _send(message: bytes) -> None:
    left = memoryview(HEADER.pack(len(message)) + message)
    while left:
        left = left[os.write(_WRITE, left) :]
