"""Run folders of every kind and condition are summarised without touching them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memograd.config import LoraConfig, TrainConfig
from memograd.errors import BadInput
from memograd.evaluation.run_summaries import (
    changed_settings,
    compare_runs,
    find_runs,
    show_run,
    summarise_run,
)
from memograd.grpo import RunFolder


def make(path: Path, config: TrainConfig, rewards: list[float]) -> RunFolder:
    run = RunFolder.create(path, config.model_dump_json(), task="memory-qa")
    with run.lock():
        for step, reward in enumerate(rewards, start=1):
            run.append_metrics({"step": step, "reward_mean": reward, "rewards": {"f1": reward / 2}})
    return run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    one = TrainConfig(steps=3, seed=1, out=folder / "one", lora=LoraConfig(r=4))
    make(folder / "one", one, [0.1, 0.2, 0.6])
    make(folder / "two", TrainConfig(steps=3, seed=2, out=folder / "two"), [0.5])
    (folder / "notes").mkdir()
    for age, name in ((100, "one"), (10, "two")):
        file = folder / name / "metrics.jsonl"
        os.utime(file, (file.stat().st_atime, file.stat().st_mtime - age))
    return folder


def test_the_run_that_was_last_at_work_comes_first(runs: Path) -> None:
    assert [path.name for path in find_runs(runs)] == ["two", "one"]
    with pytest.raises(BadInput, match=r"no folder .*nowhere; .*--dir"):
        find_runs(runs / "nowhere")


def test_a_model_beside_the_runs_is_no_run(runs: Path) -> None:
    merged = runs / "merged"
    merged.mkdir()
    (merged / "config.json").write_text('{"model_type": "llama"}')
    (merged / "model.safetensors").touch()
    assert [path.name for path in find_runs(runs)] == ["two", "one"]


def test_a_run_in_a_line(runs: Path) -> None:
    one = summarise_run(runs / "one")
    assert (one.task, one.model) == ("memory-qa", "smollm2-135m-instruct")
    assert (one.steps_done, one.steps_asked, one.reward_mean) == (3, 3, 0.6)
    assert one.state == "finished"
    assert one.idle_seconds >= 100


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "{"),
        ("config.json", "[]"),
        ("metrics.jsonl", "x\n{}\n"),
        ("metrics.jsonl", "[1]\n"),
        ("run.json", ""),
        ("run.json", "[]"),
    ],
)
def test_a_damaged_run_is_shown_as_damaged(runs: Path, file: str, content: str) -> None:
    (runs / "one" / file).write_text(content)
    states = {path.name: summarise_run(path).state for path in find_runs(runs)}
    assert states == {"one": "damaged", "two": "finished"}
    assert file in summarise_run(runs / "one").reason


def test_a_run_of_another_version_is_shown_all_the_same(runs: Path) -> None:
    (runs / "one" / "config.json").write_text('{"steps": 3, "flux": {"deep": 1}, "beta": 0.01}')
    assert summarise_run(runs / "one").state == "finished"
    run = RunFolder.open(runs / "one")
    assert changed_settings(run, TrainConfig) == {"steps": 3, "flux.deep": 1}
    assert changed_settings(run, None) == {"steps": 3, "flux.deep": 1, "beta": 0.01}


def test_everything_about_a_run(runs: Path) -> None:
    run = RunFolder.open(runs / "one")
    run.save_checkpoint("final", lambda folder: None, step=3)
    run.save_checkpoint("checkpoint-2", lambda folder: None)
    (run.path / "checkpoint-1").mkdir()
    before = sorted(run.path.rglob("*"))
    details = show_run(run.path, lambda name: {"memory-qa": TrainConfig}.get(name))
    assert details.changed == {"steps": 3, "seed": 1, "lora.r": 4}
    assert details.metrics["reward_mean"] == 0.6
    assert [(one.name, one.step) for one in details.checkpoints] == [
        ("checkpoint-2", 2),
        ("final", 3),
        ("checkpoint-1", None),
    ]
    assert details.bytes == sum(p.stat().st_size for p in before if p.is_file())
    assert sorted(run.path.rglob("*")) == before


def test_runs_side_by_side(runs: Path) -> None:
    compared = compare_runs([runs / "one", runs / "two"], 2)
    assert compared["settings"] == {"seed": [1, 2], "lora.r": [4, 16]}
    assert compared["metrics"] == {
        "reward_mean": [pytest.approx(0.4), 0.5],
        "rewards/f1": [pytest.approx(0.2), 0.25],
    }
    with pytest.raises(BadInput, match="no run folder"):
        compare_runs([runs / "one", runs / "three"], 2)
