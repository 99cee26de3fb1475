"""`vllm serve`, started for a run and stopped with it.

vLLM pins versions of its own, so it lives in an environment of its own; all that is shared with it
is the path of its program. It gets the options without which it cannot be learnt from, and those of
the user after them.

A process that is killed cannot stop what it started, and a server that is left would keep the GPU.
So a *guard* waits beside it: it reads the server's number from a pipe, to the pipe's end, which is
when this process is gone, whatever ended it; then the guard ends the server.

Invariants: within the block the server answers; after it, no process of the server is left, however
the block or this process ended, and what it said stands in the log.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memograd.errors import BadInput
from memograd.policy.remote.server import ServerGone, VllmServer

STOP_SECONDS: Final = 30.0
"""How long a server may take to end before it is killed."""
POLL: Final = 0.5
"""Seconds between two looks whether it is up."""
GUARD: Final = f"""
import os, signal, sys, time
told = sys.stdin.buffer.read()
if not told:
    sys.exit()
group, ends = int(told), time.monotonic() + {STOP_SECONDS}
try:
    os.killpg(group, signal.SIGTERM)
    while time.monotonic() < ends:
        time.sleep({POLL})
        os.killpg(group, 0)
    os.killpg(group, signal.SIGKILL)
except ProcessLookupError:
    pass
"""
"""The guard's program."""
LAST_LINES: Final = 5
"""Lines of its log that are shown where it did not come up."""


@contextmanager
def started_server(
    model: str,
    *,
    command: str,
    options: Sequence[str],
    rank: int | None,
    adapters: int,
    log: Path,
    seconds: float,
    sleep: bool = False,
) -> Iterator[str]:
    """A server over `model` (a folder or a hub id), by its URL.

    rank: of the adapters, of which it holds so many `adapters` at once; None: its own weights are
    exchanged. log: what it says goes there. sleep: it can give the GPU's memory back. Raises
    `BadInput` if the program is not there, ends, or is not up within `seconds`.
    """
    program = shutil.which(command)
    if program is None:
        raise BadInput(
            f"sampler.command={command} is no program that can be run: install vLLM into an "
            "environment of its own, and give the path of its `vllm`."
        )
    port = _free_port()
    arguments = [
        *(program, "serve", model, "--host", "127.0.0.1", "--port", str(port)),
        *_taking(rank, adapters),
        *("--logprobs-mode", "processed_logprobs"),
        *(("--enable-sleep-mode",) if sleep else ()),
        *options,
    ]
    environment = {
        **os.environ,
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
        "VLLM_SERVER_DEV_MODE": "1" if sleep or rank is None else "0",
        # Its helpers (compilers among them) stand beside it.
        "PATH": f"{Path(program).resolve().parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    environment.pop("PYTHONPATH", None)  # ours is not for its environment
    with _guard() as guarded, log.open("ab") as said:
        process = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            guarded(process.pid)
            url = f"http://127.0.0.1:{port}"
            _wait_until_up(process, url, log, seconds)
            yield url
        finally:
            _stop(process)


@contextmanager
def _guard() -> Iterator[Callable[[int], None]]:
    """What is told which group of processes ends where this one is gone inside the block."""
    guard = subprocess.Popen(
        [sys.executable, "-c", GUARD],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a signal to this process's group is not for it
    )
    assert guard.stdin is not None
    pipe = guard.stdin

    def guarded(group: int) -> None:
        pipe.write(str(group).encode())
        pipe.flush()

    try:
        yield guarded
    finally:
        guard.kill()  # before the pipe ends: the group is gone, and its number may be another's
        guard.wait()
        pipe.close()


def _wait_until_up(process: subprocess.Popen[bytes], url: str, log: Path, seconds: float) -> None:
    server = VllmServer(url)
    ends = time.monotonic() + seconds
    try:
        while True:
            try:
                server.check_health()
                return
            except ServerGone:
                pass
            why = None
            if process.poll() is not None:
                why = f"ended with {process.returncode}"
            elif time.monotonic() > ends:
                why = f"was not up within {seconds:g} s (sampler.start_seconds)"
            if why is not None:
                lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
                last = " | ".join(lines[-LAST_LINES:]) or "nothing"
                raise BadInput(f"The sampling server {why}; {log} ends with: {last}")
            time.sleep(POLL)
    finally:
        server.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # and those of its children that outlived it
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _taking(rank: int | None, adapters: int) -> list[str]:
    """How it is told to take what is trained."""
    if rank is None:
        return ["--enable-scale-out"]
    allowed = str(_allowed_rank(rank))
    return ["--enable-lora", "--max-lora-rank", allowed, "--max-loras", str(adapters)]


def _allowed_rank(rank: int) -> int:
    """The smallest rank that vLLM can be told of (1, 8, 16, 32, ...) and that adapters fit in."""
    return next(allowed for allowed in (1, 8, 16, 32, 64, 128, 256, 320, 512) if allowed >= rank)
