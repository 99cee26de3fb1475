"""Workers as seen from the benchmark: start one, ask it, read its time and its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]


class SideFailed(RuntimeError):
    """A side answered with an error."""


class Worker:
    """A running side. Calls go through `call`; the last call's seconds are in `wall` and `cpu`."""

    def __init__(self, side: str, folder: Path, python: str = sys.executable) -> None:
        self.side, self.folder = side, folder
        self.wall = self.cpu = 0.0
        paths = [str(BENCHMARKS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        self._log = (folder.parent / f"{folder.name}.log").open("a", encoding="utf-8")
        self._process = subprocess.Popen(
            [python, "-m", "memory_bench.worker", side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            cwd=folder.parent,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
                "HF_HUB_OFFLINE": "1",
            },
        )

    def call(self, name: str, **arguments: Any) -> Any:
        """Ask the worker; raises SideFailed with its sentence when it could not."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps({"call": name, "arguments": arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SideFailed(f"{self.side} ended during {name}; see {self._log.name}")
        reply = json.loads(line)
        if "error" in reply:
            raise SideFailed(f"{self.side} failed in {name}: {reply['error']}")
        self.wall, self.cpu = reply.get("wall", 0.0), reply.get("cpu", 0.0)
        return reply["value"]

    def disk_mib(self) -> float:
        """Bytes of all files of this side, in MiB."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return sum(path.stat().st_size for path in files) / 2**20

    def close(self) -> None:
        """Close the side and end its process."""
        try:
            if self._process.poll() is None:
                self.call("close")
        except SideFailed:
            pass  # it was never opened, or what it failed in has been reported already
        finally:
            assert self._process.stdin
            self._process.stdin.close()
            try:
                self._process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._log.close()


@dataclass
class Series:
    """Times of one side over many calls, in seconds; CPU time includes the side's own servers."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    children_cpu: float = 0.0

    def record(self, worker: Worker) -> None:
        """Take the worker's last call."""
        self.wall.append(worker.wall)
        self.cpu.append(worker.cpu)

    def percentile(self, percent: float) -> float:
        """Wall-clock, nearest rank."""
        ordered = sorted(self.wall)
        return ordered[min(len(ordered) - 1, int(percent / 100 * len(ordered)))]

    def cpu_mean(self) -> float:
        """CPU seconds a call."""
        return (sum(self.cpu) + self.children_cpu) / len(self.cpu)


def alternate(
    workers: list[Worker], calls: list[tuple[str, dict[str, Any]]]
) -> tuple[list[Series], list[list[Any]]]:
    """Make the same calls on all workers, one by one, each side first in turn."""
    series = [Series() for _ in workers]
    values: list[list[Any]] = [[] for _ in workers]
    before = [worker.call("usage")["children_cpu"] for worker in workers]
    for number, (name, arguments) in enumerate(calls):
        order = list(range(len(workers)))
        shift = number % len(workers)
        for index in order[shift:] + order[:shift]:
            values[index].append(workers[index].call(name, **arguments))
            series[index].record(workers[index])
    for index, worker in enumerate(workers):
        series[index].children_cpu = worker.call("usage")["children_cpu"] - before[index]
    return series, values
