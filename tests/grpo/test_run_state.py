"""A run is called running only while its process lives; restored generators draw the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from memograd.errors import BadInput, MemogradError
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.run_state import (
    RunState,
    capture_random_states,
    restore_random_states,
    run_state,
    seed_everything,
)

HOLDS = """
import sys
from pathlib import Path
from memograd.grpo.run_folder import RunFolder
with RunFolder.open(Path(sys.argv[1])).lock():
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", "{}")


def test_another_process_is_seen_until_it_is_killed(run: RunFolder) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(run.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "locked\n"
        assert run_state(run.path) == RunState("running")
        assert json.loads((run.path / "state.json").read_text())["pid"] == child.pid
        with pytest.raises(BadInput, match="Another process trains"), run.lock():
            pass
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert run_state(run.path) == RunState("stopped", "its process died or was killed")
    with run.lock():
        pass


def test_work_that_ends_well_is_finished(run: RunFolder) -> None:
    assert run_state(run.path) == RunState("stopped")
    with run.lock():
        assert run_state(run.path).name == "running"
    assert run_state(run.path) == RunState("finished")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemogradError("Reward f raised."), "Reward f raised."),
        (BadInput("q3 has other columns."), "q3 has other columns."),
        (ZeroDivisionError("a bug"), "ZeroDivisionError: a bug"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_work_that_ends_badly_is_stopped_with_its_reason(
    run: RunFolder, error: BaseException, reason: str
) -> None:
    with pytest.raises(type(error)), run.lock():
        raise error
    assert run_state(run.path) == RunState("stopped", reason)


def test_a_refused_attempt_to_go_on_changes_nothing(run: RunFolder) -> None:
    with run.lock():
        pass
    with pytest.raises(BadInput), run.lock():
        raise BadInput("a resumed run keeps its settings")
    assert run_state(run.path) == RunState("finished")


def test_looking_changes_nothing_and_works_without_permission_to_write(run: RunFolder) -> None:
    before = sorted(path.name for path in run.path.iterdir())
    run_state(run.path)
    assert sorted(path.name for path in run.path.iterdir()) == before
    with run.lock():
        pass
    (run.path / ".lock").chmod(0o400)
    assert run_state(run.path).name == "finished"


def test_a_run_from_before_states_is_judged_by_its_final_checkpoint(run: RunFolder) -> None:
    run.save_checkpoint("final", lambda folder: None, step=3)
    assert run_state(run.path) == RunState("finished")
    (run.path / "state.json").write_text("{torn")
    assert run_state(run.path) == RunState("finished")


def draw(generator: torch.Generator) -> list[float]:
    return [
        float(torch.rand((), generator=generator)),
        float(torch.rand(())),
        random.random(),
        float(np.random.rand()),
        float(np.random.normal()),  # keeps a second value back: part of the state
        random.gauss(0, 1),
    ]


def test_the_numbers_go_on_as_they_would_have(tmp_path: Path) -> None:
    seed_everything(3)
    generator = torch.Generator().manual_seed(3)
    draw(generator)
    # Through a file, as a checkpoint keeps them.
    torch.save(capture_random_states(generator), tmp_path / "states.pt")
    expected = [draw(generator) for _ in range(3)]
    draw(generator)
    states = torch.load(tmp_path / "states.pt", weights_only=True)
    other = torch.Generator()
    restore_random_states(states, other)
    assert [draw(other) for _ in range(3)] == expected


def test_a_seed_decides_all_of_them() -> None:
    seed_everything(5)
    first = draw(torch.Generator().manual_seed(5))
    seed_everything(5)
    assert draw(torch.Generator().manual_seed(5)) == first
    seed_everything(2**40)  # larger than numpy takes
