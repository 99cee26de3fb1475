"""`memograd sft`, `dpo` and `merge` as they are typed, and the settings they read and write."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from tests.command_line import refused, run

from memograd.config import LoraConfig, TrainConfig
from memograd.config.load import stored_settings
from memograd.warm_start.settings import DpoSettings, SftSettings, WarmStartSettings


@pytest.fixture
def files(tmp_path) -> tuple[Path, Path]:
    rows, pairs = tmp_path / "rows.jsonl", tmp_path / "pairs.jsonl"
    rows.write_text(json.dumps({"prompt": "2+2=", "completion": " 4"}) + "\n")
    pairs.write_text(json.dumps({"prompt": "2+2=", "chosen": " 4", "rejected": " 5"}) + "\n")
    return rows, pairs


def test_one_after_the_other(tmp_path, files, tiny_model_folder, capsys) -> None:
    rows, pairs = files
    model = (f"model={tiny_model_folder}", "device=cpu", "lora.r=2", "steps=1")
    first, second, merged = tmp_path / "sft", tmp_path / "dpo", tmp_path / "merged"
    code, out, _ = run(capsys, "sft", "--data", rows, "--out", first, *model)
    assert code == 0 and f"The run is in {first}" in out and "step 1/1  loss" in out
    code, out, _ = run(
        capsys, "dpo", "--data", pairs, "--from", first, "--out", second, "device=cpu", "steps=1"
    )
    assert code == 0 and f"The run is in {second}" in out and "margin" in out
    code, out, _ = run(capsys, "merge", "--run", second, "--out", merged, "--dtype", "bfloat16")
    assert code == 0 and (merged / "model.safetensors").is_file()


def test_bad_input_is_one_sentence(tmp_path, files, capsys) -> None:
    rows, _ = files
    assert "data= is missing" in refused(capsys, "sft")
    assert "did you mean learning_rate" in refused(capsys, "sft", "--data", rows, "learning_rat=1")
    assert "is not a multiple of" in refused(capsys, "dpo", "--data", rows, "batch_size=6")
    assert "set the task too" in refused(capsys, "sft", "--data", rows, "--train", "conv-26")
    assert "task must be one of memory-qa" in refused(capsys, "sft", "--task", "chess")
    assert "'chosen'" in refused(capsys, "dpo", "--data", rows, f"out={tmp_path / 'run'}")
    assert "no run folder" in refused(capsys, "merge", "--run", tmp_path / "x", "--out", "y")
    assert run(capsys, "merge", "--run", "x", "--out", "y", "--dtype", "int8")[0] == 2


def test_a_missing_trl_names_the_extra(tmp_path, files, monkeypatch, capsys) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "trl" else found(name)
    )
    error = refused(capsys, "sft", "--data", files[0], f"out={tmp_path / 'run'}")
    assert "pip install 'memograd[trl]'" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["sft", "dpo", "merge"])
def test_help_has_examples_and_exit_codes(command, capsys) -> None:
    code, out, _ = run(capsys, command, "--help")
    assert code == 0 and "Exit codes:" in out and f"memograd {command} --" in out
    if command != "merge":
        assert "learning_rate=" in out and "recipe=" not in out


@pytest.mark.parametrize(
    "settings",
    [
        SftSettings(data=Path("a.jsonl"), lora=LoraConfig(r=3)),
        SftSettings(task="memory-qa", train=["conv-1"], eval=["conv-2"]),
        DpoSettings(data=Path("对.jsonl"), beta=0.2),
        TrainConfig(steps=3),
    ],
)
def test_the_settings_of_a_run_are_read_back(settings) -> None:
    warm = isinstance(settings, WarmStartSettings)
    text = settings.run_json() if warm else settings.model_dump_json()
    assert stored_settings(text, type(settings)) == settings
