"""One side in a process of its own, driven by one JSON object a line.

    python -m memory_bench.worker {ours|mem0|plain_numpy}

A request `{"call": name, "arguments": {...}}` is answered by `{"value", "wall", "cpu"}`, in
seconds, or `{"error": sentence}`. Time is taken here, around the call alone, so that neither JSON
nor the pipe is counted. `cpu` is of this process; what a server that it started has used is asked
for with `usage` (Linux only, else zero).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def usage() -> dict[str, float]:
    """CPU seconds of all child processes, and resident MiB of this process and its children."""
    children = _descendants(os.getpid())
    return {
        "children_cpu": sum(_cpu_seconds(pid) for pid in children),
        "rss_mib": sum(_resident_bytes(pid) for pid in [os.getpid(), *children]) / 2**20,
    }


def _descendants(parent: int) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = _stat(int(path.parent.name))
        if fields and int(fields[1]) == parent:
            found += [int(path.parent.name), *_descendants(int(path.parent.name))]
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may hold spaces; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _resident_bytes(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def answer(side: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks and say how long it took."""
    name, arguments = request["call"], request.get("arguments", {})
    if name == "usage":
        return {"value": usage()}
    if name == "prepare":
        return {"value": side.embedder.prepare(arguments["texts"])}
    if name == "spend":
        return {"value": side.embedder.set_spend(arguments["on"])}
    if name == "attribute":
        return {"value": getattr(side, arguments["of"])}
    method = getattr(side, name)
    wall, cpu = time.perf_counter(), time.process_time()
    value = method(**arguments)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "value": value,
    }


def main() -> None:
    """Answer requests until the input ends."""
    # Libraries may print; only answers may go to the standard output that the driver reads.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    side = importlib.import_module(f"memory_bench.{sys.argv[1]}").Side()
    for line in sys.stdin:
        try:
            reply = answer(side, json.loads(line))
        except Exception as error:  # reported to the driver, which decides what it means
            reply = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
