"""The command line in two processes, started by torchrun as a user would."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from memograd.grpo import RunFolder
from memograd.grpo.run_state import run_state

pytestmark = pytest.mark.slow

REWARDS = """
import os

def low(completions):
    return [sum(c < "@" for c in text) / max(1, len(text)) for text in completions]

calls = 0

def fails_on_rank_1(completions):
    global calls
    calls += 1
    if os.environ["RANK"] == "1" and calls == 2:
        raise RuntimeError("the plug was pulled")
    return low(completions)
"""


@pytest.fixture
def words(tmp_path: Path, tiny_model_folder: Path) -> list[str]:
    """A text job of three steps with a few held-out rows."""
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps({"prompt": f"say {n}"}) + "\n" for n in range(30)))
    (tmp_path / "rewards.py").write_text(REWARDS)
    settings = [
        *(f"model={tiny_model_folder}", "device=cpu", "steps=3", "save_steps=2", "lora.r=4"),
        *("prompts_per_step=3", "num_generations=4", "max_completion_length=4"),
    ]
    return ["train", "text", "--data", str(data), *settings]


def torchrun(
    *words: str, launch: Sequence[str] = ("--standalone", "--nproc_per_node=2")
) -> subprocess.Popen[str]:
    launcher = ["-m", "torch.distributed.run", *launch]
    return subprocess.Popen(
        [sys.executable, *launcher, "-m", "memograd", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    shown, error = process.communicate(timeout=300)
    return process.returncode, shown, error


def rows(folder: Path) -> list[dict]:
    found = RunFolder.open(folder).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]


def test_a_reward_that_fails_on_one_rank_and_the_run_that_goes_on(
    tmp_path: Path, words: list[str]
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    low = f"--rewards={tmp_path}/rewards.py:low"
    code, shown, error = finished(torchrun(*words, low, f"out={whole}"))
    assert code == 0, error
    assert shown.count("step 3/3") == shown.count(f"The run is in {whole}") == 1
    assert run_state(whole).name == "finished"
    assert {path.name for path in whole.iterdir()} >= {"curves.png", "evaluation.md", "final"}

    failing = f"--rewards={tmp_path}/rewards.py:fails_on_rank_1"
    code, _, error = finished(torchrun(*words, failing, f"out={cut}"))
    assert code == 1
    assert "memograd: Reward fails_on_rank_1 raised RuntimeError: the plug was pulled" in error
    assert run_state(cut).reason.startswith("Reward fails_on_rank_1 raised RuntimeError")
    assert (cut / "failures" / "step-0002.jsonl").is_file()
    assert [path.name for path in cut.glob("checkpoint-*")] == ["checkpoint-1"]
    # The file is mended, and the run goes on as if nothing had happened.
    (tmp_path / "rewards.py").write_text(REWARDS.replace("calls == 2", "calls < 0"))
    code, shown, error = finished(torchrun("train", "text", f"resume={cut}"))
    assert code == 0, error
    assert "going on after step 1" in shown

    def without_names(folder: Path) -> list[dict]:
        return [{**row, "rewards": list(row["rewards"].values())} for row in rows(folder)]

    assert without_names(cut) == without_names(whole)
    name = "final/adapter_model.safetensors"
    assert (cut / name).read_bytes() == (whole / name).read_bytes()


def test_sigterm_to_torchrun_stops_after_the_step(tmp_path: Path, words: list[str]) -> None:
    folder = tmp_path / "run"
    low = f"--rewards={tmp_path}/rewards.py:low"
    process = torchrun(*words, low, f"out={folder}", "steps=2000", "save_steps=1000")
    while not (folder / "metrics.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    finished(process)
    state = run_state(folder)
    assert state.reason.startswith("stopped by a signal after step ")
    (checkpoint,) = folder.glob("checkpoint-*")
    assert (checkpoint / "COMPLETE").is_file()
    assert rows(folder)[-1]["step"] == int(checkpoint.name.removeprefix("checkpoint-"))


def test_bad_input_is_said_once_before_there_is_a_run(tmp_path: Path, words: list[str]) -> None:
    code, _, error = finished(torchrun(*words, f"out={tmp_path / 'run'}"))
    assert code != 0
    assert error.count("memograd: The text task needs rewards") == 1
    assert not (tmp_path / "run").exists()
    code, _, error = finished(torchrun(*words, "setps=2"))
    assert code != 0
    assert error.count("memograd: ") == 1


def test_memory_qa_has_one_memory(
    tmp_path: Path, small_data: Path, tiny_model_folder: Path
) -> None:
    folder = tmp_path / "run"
    settings = [
        *(f"model={tiny_model_folder}", "device=cpu", "steps=2", "lora.r=4", f"out={folder}"),
        *("prompts_per_step=2", "num_generations=2", "max_completion_length=4", "beta=0.1"),
    ]
    code, shown, error = finished(
        torchrun("train", "memory-qa", "--data", str(small_data), *settings)
    )
    assert code == 0, error
    assert shown.count("memory: ") == 1
    assert [row["step"] for row in rows(folder)] == [1, 2]
    assert (folder / "evaluation.md").is_file()


def nodes(*words: str) -> list[subprocess.Popen[str]]:
    """Two machines of one process each, as far as torchrun can tell: two launchers that meet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = ["--nnodes=2", "--nproc_per_node=1", "--master_addr=127.0.0.1"]
    return [
        torchrun(*words, launch=[*meeting, f"--master_port={port}", f"--node_rank={node}"])
        for node in range(2)
    ]


@pytest.mark.parametrize(
    "settings", [(), ("tuning=full", "shard=fsdp2", "beta=0.1")], ids=["lora", "full"]
)
def test_two_machines_train_as_one_with_two_processes(
    tmp_path: Path, words: list[str], settings: tuple[str, ...]
) -> None:
    words = [word for word in words if not (settings and word.startswith("lora"))]
    low = f"--rewards={tmp_path}/rewards.py:low"
    code, _, error = finished(torchrun(*words, low, *settings, f"out={tmp_path / 'one'}"))
    assert code == 0, error
    both = nodes(*words, low, *settings, f"out={tmp_path / 'two'}")
    ended = [finished(process) for process in both]
    assert [code for code, _, _ in ended] == [0, 0], ended
    assert [shown.count("step 3/3") for _, shown, _ in ended] == [1, 0]  # one speaks
    assert rows(tmp_path / "two") == rows(tmp_path / "one")
    (name,) = {path.name for path in (tmp_path / "one" / "final").glob("*model.safetensors")}
    final = [(tmp_path / run / "final" / name).read_bytes() for run in ("one", "two")]
    assert final[0] == final[1]
    if settings:
        # What was trained on two machines is a model like any other.
        model = ["model=" + str(tmp_path / "two" / "final"), "lora.r=4", "steps=1"]
        given = [word for word in words if not word.startswith(("model=", "steps="))]
        code, _, error = finished(torchrun(*given, low, *model, f"out={tmp_path / 'three'}"))
        assert code == 0, error


@pytest.mark.parametrize(
    ("settings", "later"),
    [((), 1), (("tuning=full", "shard=fsdp2", "beta=0.1"), 3)],
    ids=["lora-then-one", "full-then-three"],
)
def test_what_two_machines_began_another_number_of_processes_ends(
    tmp_path: Path, words: list[str], settings: tuple[str, ...], later: int
) -> None:
    words = [word for word in words if not (settings and word.startswith("lora"))]
    folder, low = tmp_path / "run", f"--rewards={tmp_path}/rewards.py:low"
    ended = [finished(one) for one in nodes(*words, low, *settings, f"out={folder}")]
    assert [code for code, _, _ in ended] == [0, 0], ended
    began = rows(folder)
    # As if it had been stopped after its second step.
    shutil.rmtree(folder / "final")
    shutil.rmtree(folder / "checkpoint-3", ignore_errors=True)
    launch = ["--standalone", f"--nproc_per_node={later}"]
    code, shown, error = finished(torchrun("train", "text", f"resume={folder}", launch=launch))
    assert code == 0, error
    assert "going on after step 2" in shown
    assert rows(folder)[:2] == began[:2]
    assert [row["step"] for row in rows(folder)] == [1, 2, 3]
    assert run_state(folder).name == "finished"
