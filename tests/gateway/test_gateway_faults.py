"""No answer that an agent got is lost, and none is in another's trace, whatever dies when."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "gateway.py"


@pytest.mark.slow
def test_kill_9_and_disconnects_lose_and_cross_nothing() -> None:
    """The benchmark's run, shorter: the command line's server, killed and started again."""
    shown = subprocess.run(
        [sys.executable, str(BENCHMARK), "faults", "--calls", "400"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout.splitlines()[-1])
    assert (found["lost"], found["crossed"], found["kills"]) == (0, 0, 1)
    assert found["answered"] > 200
    assert found["hung_up"] > 0


SCRIPT = """
import os, signal, sys
from memograd.gateway.records import CallRecord, Choice
from memograd.gateway.store import TraceStore
store = TraceStore(sys.argv[1])
rollout = store.create().record.id
for number in range(1000):
    store.begin_call(rollout)
    store.record(CallRecord(rollout, number, "a", "m", 0, (), (Choice("x" * 2000, "stop"),)))
    print(rollout, number, flush=True)
    if number == 120:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_acknowledged_is_there_after_kill_9(trace_url: str) -> None:
    from memograd.gateway.store import TraceStore

    shown = subprocess.run(
        [sys.executable, "-c", SCRIPT, trace_url], capture_output=True, text=True
    )
    rollout, last = shown.stdout.splitlines()[-1].split()
    assert (shown.returncode, last) == (-9, "120")
    store = TraceStore(trace_url)
    assert [call.number for call in store.calls(rollout)] == list(range(121))
    assert store.rollout(rollout).state == "running"
    store.begin_call(rollout)
    store.reward(rollout, 1.0)
    store.close()
