"""Runs a function in several real processes that are joined as torchrun would join them.

The processes are forked from a server that has imported torch once and computed nothing, so a test
takes the time of its own work only.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SECONDS = 120
"""How long a test waits for its processes."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["memograd.grpo.trainer", "memograd.policy.language_model"])


@dataclass(frozen=True)
class Raised:
    """An exception of another process; not every one can travel as it is."""

    kind: str
    message: str
    fields: dict[str, Any]


def on_ranks(
    size: int, work: Callable[..., Any], *arguments: Any, device: str = "cpu"
) -> list[Any]:
    """What `work(world, *arguments)` returned on each rank, or raised; None if it died."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    answers: Any = _context.Queue()
    processes = [
        _context.Process(target=_rank, args=(rank, size, port, device, work, arguments, answers))
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    found: dict[int, Any] = {}
    end = time.monotonic() + SECONDS
    while len(found) < size and time.monotonic() < end:
        try:
            rank, answer = answers.get(timeout=0.2)
            found[rank] = answer
        except queue.Empty:
            dead = [rank for rank, one in enumerate(processes) if one.exitcode not in (None, 0)]
            if dead and len(found) + len(dead) >= size:
                break
    for process in processes:
        process.join(timeout=max(0.0, end - time.monotonic()))
        if process.is_alive():
            process.kill()
    return [found.get(rank) for rank in range(size)]


def _rank(
    rank: int,
    size: int,
    port: int,
    device: str,
    work: Callable[..., Any],
    arguments: Any,
    answers: Any,
) -> None:
    import torch

    from memograd.grpo.distributed import joined_world

    torch.set_num_threads(1)
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    try:
        with joined_world(device) as world:
            answer = work(world, *arguments)
    except Exception as error:
        fields = {**vars(error), "exit_code": getattr(error, "exit_code", None)}
        answer = Raised(type(error).__name__, str(error), fields)
    answers.put((rank, answer))
