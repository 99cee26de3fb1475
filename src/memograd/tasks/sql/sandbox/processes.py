"""Processes that run statements and can be ended: some are kept warm, each runs one at a time.

A process that had to be ended is replaced at once, so that the next statement finds one that is
starting. Threads take processes from one store; a fork of this process forgets those of its
parent and starts its own. A process ends with its owner: when the pipe between them closes, or when
it sees that its parent is another.

Invariant: `ask` returns within its `wall_seconds` (and the start of a process); of what was ended
nothing is left, not a zombie and not a descriptor. After the interpreter's exit none of them runs.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from memograd.errors import MemogradError

_HEADER_BYTES = 4
_START_SECONDS = 60.0
_LARGEST = 64_000_000
"""Bytes of an answer; results are bounded far below."""
_AT_ONCE = max(2, min(8, os.cpu_count() or 1))

_HERE = Path(__file__).resolve().parent
_START = """
import sys, types
sys.path[:] = {path!r}
for name, folder in {packages!r}:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from memograd.tasks.sql.sandbox.worker import main
main({owner})
"""
"""The packages around the room are empty there: importing them would load the whole house."""
_PACKAGES = [
    (f"memograd{name}", str(folder))
    for name, folder in (
        ("", _HERE.parents[2]),
        (".tasks", _HERE.parents[1]),
        (".tasks.sql", _HERE.parents[0]),
        (".tasks.sql.sandbox", _HERE),
    )
]


class Ended(Exception):
    """The process ended instead of answering.

    `by_clock`: it computed, or took, longer than it may; else `str()` says how it ended.
    """

    def __init__(self, how: str, *, by_clock: bool = False) -> None:
        super().__init__(how)
        self.by_clock = by_clock


class Processes:
    """The warm processes of this process. Safe with threads and after a fork."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.close)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._closed = False

    def ask(self, message: dict[str, Any], wall_seconds: float) -> bytes:
        """A process's answer to `message`.

        Raises:
            Ended: it ended instead, or was ended because `wall_seconds` were over.
            MemogradError: no process can be started.
        """
        with self._places:
            process = self._take()
            try:
                process.wait_until_ready()
                answer, last = process.ask(message, wall_seconds)
            except BaseException as error:  # also Ctrl-C: its answer would be the next one's
                self._replace(process, start=isinstance(error, Ended))
                raise
            if last:
                self._replace(process, start=True)
            else:
                self._give_back(process)
            return answer

    def close(self) -> None:
        """End them all; nothing can be asked any more."""
        with self._lock:
            self._closed = True
            processes = [*self._idle, *self._busy]
            self._idle.clear()
        for process in processes:
            process.end()

    def _take(self) -> _Process:
        with self._lock:
            if self._closed:
                raise MemogradError("No SQL can be run any more: the interpreter is shutting down.")
            while self._idle:
                process = self._idle.pop()
                if process.runs():
                    break
                process.end()
            else:
                process = _Process()
            self._busy.add(process)
        return process

    def _give_back(self, process: _Process) -> None:
        with self._lock:
            self._busy.discard(process)
            if not self._closed:
                self._idle.append(process)

    def _replace(self, process: _Process, *, start: bool) -> None:
        process.end()
        with self._lock:
            self._busy.discard(process)
            if start and not self._closed:
                self._idle.insert(0, _Process())  # taken last, so that it can start meanwhile

    def _forget(self) -> None:
        """In a fork: the processes are the parent's."""
        for process in (*self._idle, *self._busy):
            process.forget()
        self._begin()


class _Process:
    """One process and the pipes to it."""

    def __init__(self) -> None:
        if not sys.executable:
            raise MemogradError("No SQL can be run: this Python does not know its own program.")
        path = [os.path.abspath(folder) for folder in sys.path]
        code = _START.format(path=path, packages=_PACKAGES, owner=os.getpid())
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._popen.stdin is not None and self._popen.stdout is not None
        self._input, self._output = self._popen.stdin, self._popen.stdout
        self._ready = False
        self._ending = threading.Lock()

    def runs(self) -> bool:
        return self._popen.poll() is None

    def wait_until_ready(self) -> None:
        """Raises MemogradError if the process does not start; its reasons are on standard error."""
        if self._ready:
            return
        try:
            self._receive(time.monotonic() + _START_SECONDS)
        except Ended as error:
            raise MemogradError(
                f"The process that runs SQL could not be started (it {error}); is sqlglot "
                "installed (pip install 'memograd[sql]')?"
            ) from None
        self._ready = True

    def ask(self, message: dict[str, Any], wall_seconds: float) -> tuple[bytes, bool]:
        """The answer, and whether it is the process's last."""
        text = json.dumps(message).encode()
        until = time.monotonic() + wall_seconds
        try:
            self._input.write(len(text).to_bytes(_HEADER_BYTES, "big") + text)
        except BrokenPipeError:
            raise self._ended() from None
        answer = self._receive(until)
        return answer[1:], answer[:1] == b"!"

    def end(self) -> None:
        """Kill it, and leave nothing of it."""
        with self._ending:
            self._popen.kill()
            self._popen.wait()
            self._input.close()
            self._output.close()

    def forget(self) -> None:
        """Close the pipes of a process that is not ours to end or to wait for."""
        self._popen.returncode = 0
        self._input.close()
        self._output.close()

    def _receive(self, until: float) -> bytes:
        size = int.from_bytes(self._read(_HEADER_BYTES, until), "big")
        if size > _LARGEST:
            raise Ended(f"answered with {size} bytes")
        return self._read(size, until)

    def _read(self, size: int, until: float) -> bytes:
        found = bytearray()
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        while len(found) < size:
            left = until - time.monotonic()
            if left <= 0 or not poll.poll(max(1, 1000 * left)):
                raise Ended("took too long", by_clock=True)
            piece = os.read(self._output.fileno(), size - len(found))
            if not piece:
                raise self._ended()
            found += piece
        return bytes(found)

    def _ended(self) -> Ended:
        """How it ended by itself."""
        code = self._popen.wait()
        if code == -signal.SIGPROF:
            return Ended("computed too long", by_clock=True)
        return Ended(f"ended with {signal.Signals(-code).name if code < 0 else code}")
