"""Broken metrics of a run are mended where that is right, and refused elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.command_line import run

from memograd.grpo import RunFolder
from memograd.tasks.registry import train
from memograd.tasks.text.settings import TextTrainConfig


def resumed(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    return run(capsys, "train", "text", f"resume={folder}")


def measured(run: Path) -> list[dict[str, Any]]:
    rows = RunFolder.open(run).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny_model_folder: Path) -> Path:
    """The run of four steps that never stopped."""
    folder = tmp_path_factory.mktemp("metrics")
    rows = [{"prompt": f"count: {number}", "answer": str(number)} for number in range(6)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings: dict[str, Any] = {
        "data": folder / "rows.jsonl", "rewards": "length(low=1,high=9)", "out": folder / "whole",
        "model": str(tiny_model_folder), "device": "cpu", "lora": {"r": 2}, "steps": 4,
        "save_steps": 2, "prompts_per_step": 2, "num_generations": 2, "max_completion_length": 4,
    }  # fmt: skip
    return train(TextTrainConfig(**settings))


@pytest.fixture
def killed(whole: Path, tmp_path: Path) -> Path:
    """The same run, killed after step 3: its last checkpoint is that of step 2."""
    run = Path(shutil.copytree(whole, tmp_path / "killed"))
    shutil.rmtree(run / "final")
    lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (run / "metrics.jsonl").write_bytes(b"".join(lines[:3]))
    return run


@pytest.mark.parametrize("half", [b"", b'{"step": 4, "loss"', b"no JSON\n"])
def test_what_stands_behind_the_checkpoint_is_done_again(
    whole: Path, killed: Path, capsys: pytest.CaptureFixture[str], half: bytes
) -> None:
    with (killed / "metrics.jsonl").open("ab") as file:
        file.write(half)
    code, out, _ = resumed(killed, capsys)
    assert code == 0
    assert ("line 4 of " in out and "half written: it is dropped" in out) == bool(half)
    assert measured(killed) == measured(whole)


def empty(metrics: Path) -> None:
    metrics.write_bytes(b"")


def cut_in_line_two(metrics: Path) -> None:
    first, second, _ = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(first + second[: len(second) // 2])


def line_one_is_no_json(metrics: Path) -> None:
    _, *others = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(b"".join([b"loss 0.3\n", *others]))


@pytest.mark.parametrize("damage", [Path.unlink, empty, cut_in_line_two, line_one_is_no_json])
def test_what_the_checkpoint_has_behind_it_must_be_there(
    killed: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    damage(killed / "metrics.jsonl")
    before = {path: path.read_bytes() for path in killed.glob("*.json*")}
    code, _, error = resumed(killed, capsys)
    assert code == 2
    (sentence,) = error.splitlines()
    assert "metrics.jsonl does not say in line " in sentence
    assert "put the file back as it was, or begin a new run with out=FOLDER." in sentence
    assert {path: path.read_bytes() for path in killed.glob("*.json*")} == before
