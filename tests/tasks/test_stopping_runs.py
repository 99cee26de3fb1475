"""Runs that are stopped in every way go on as if they had not been; signals reach processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import stopping_job

from memograd.errors import MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.run_state import run_state


def start(folder: Path, model: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, stopping_job.__file__, str(folder), str(model)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def rows(folder: Path) -> list[dict]:
    found = RunFolder.open(folder).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]


def check_equal(folder: Path, whole: Path) -> None:
    assert rows(folder) == rows(whole)
    name = "final/adapter_model.safetensors"
    assert (folder / name).read_bytes() == (whole / name).read_bytes()
    assert run_state(folder).name == "finished"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny_model_folder: Path) -> Path:
    """The run that never stopped."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    stopping_job.job(folder, str(tiny_model_folder))
    return folder


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_a_signal_ends_after_the_step_with_a_checkpoint(
    tmp_path: Path, tiny_model_folder: Path, whole: Path, number: int, code: int
) -> None:
    folder = tmp_path / "run"
    process = start(folder, tiny_model_folder)
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    assert process.stdout.readline() == "2\n"
    assert run_state(folder).name == "running"
    process.send_signal(number)
    _, error = process.communicate()
    assert process.returncode == code, error
    assert error.splitlines()[-1] == (
        f"memograd: stopped by a signal after step 2 of 5; go on with resume={folder}"
    )
    assert "Traceback" not in error
    assert {path.name for path in folder.glob("checkpoint-*")} == {"checkpoint-2"}
    assert run_state(folder).reason.startswith("stopped by a signal after step 2")
    stopping_job.job(folder, str(tiny_model_folder))
    check_equal(folder, whole)


@pytest.mark.slow
def test_a_second_signal_ends_at_once(tmp_path: Path, tiny_model_folder: Path) -> None:
    process = start(tmp_path / "run", tiny_model_folder)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    while "finishing this step" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert run_state(tmp_path / "run").reason == "its process died or was killed"


def test_a_crash_in_a_reward_loses_no_finished_step(
    tmp_path: Path, tiny_model_folder: Path, whole: Path
) -> None:
    folder = tmp_path / "run"
    with pytest.raises(
        MemogradError, match="Reward noisy raised RuntimeError: the plug was pulled"
    ) as raised:
        stopping_job.job(folder, str(tiny_model_folder), crash_at=3)
    # What the reward was asked about is kept, and so are the two steps before.
    dumped = (folder / "failures" / "step-0003.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in dumped] == [3, 3]
    assert str(folder / "failures" / "step-0003.txt") in str(raised.value)
    assert (folder / "checkpoint-2" / "COMPLETE").is_file()
    stopping_job.job(folder, str(tiny_model_folder))
    check_equal(folder, whole)


@pytest.mark.slow
def test_a_kill_9_goes_on_from_the_last_checkpoint(
    tmp_path: Path, tiny_model_folder: Path, whole: Path
) -> None:
    folder = tmp_path / "run"
    process = start(folder, tiny_model_folder)
    deadline = time.monotonic() + 120
    while not (folder / "checkpoint-4").exists() and time.monotonic() < deadline:
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert run_state(folder).reason == "its process died or was killed"
    stopping_job.job(folder, str(tiny_model_folder))
    check_equal(folder, whole)
