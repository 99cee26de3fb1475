"""`memograd reward-model` as it is typed."""

from __future__ import annotations

import json

from tests.command_line import refused, run


def test_one_after_the_other(tmp_path, polite_file, tiny_model_folder, capsys) -> None:
    pairs, test, report = (tmp_path / n for n in ("pairs.jsonl", "test.jsonl", "report.json"))
    files = ("--out", pairs, "--held-out", test, "--fraction", "0.2", "--report", report)
    code, out, _ = run(capsys, "reward-model", "convert", polite_file, *files)
    assert code == 0 and "60 rows read" in out and f"12 pairs written to {test}" in out
    assert json.loads(report.read_text())["written"] == {str(pairs): 48, str(test): 12}

    model = (f"model={tiny_model_folder}", "device=cpu", "lora.r=2", "steps=1", "batch_size=4")
    trained = tmp_path / "run"
    code, out, _ = run(
        capsys, "reward-model", "train", "--data", pairs, "--eval", test, "--out", trained, *model
    )
    assert code == 0 and f"The run is in {trained}" in out
    assert "longer wins, shorter wins (baselines)" in out and "step 1/1  loss" in out

    measured = tmp_path / "measured"
    told = ("--model", trained, "--data", test, "--out", measured, "--device", "cpu")
    code, out, _ = run(capsys, "reward-model", "evaluate", *told)
    assert code == 0 and (measured / "held_out.png").is_file()
    kept = (json.loads((at / "held_out.json").read_text()) for at in (trained, measured))
    first, second = kept
    assert first["calibration"] == second["calibration"]

    merged = tmp_path / "merged"
    code, out, _ = run(capsys, "reward-model", "merge", "--run", trained, "--out", merged)
    assert code == 0 and (merged / "model.safetensors").is_file()


def test_bad_input_is_one_sentence(tmp_path, polite_file, capsys) -> None:
    assert "data= is missing" in refused(capsys, "reward-model", "train")
    part = ("--out", tmp_path / "y", "--fraction", "0.2")
    assert "--held-out" in refused(capsys, "reward-model", "convert", polite_file, *part)
    assert not (tmp_path / "y").exists()
    assert "There is no file" in refused(
        capsys, "reward-model", "convert", tmp_path / "x", "--out", tmp_path / "y"
    )
    gone = ("--model", "./gone", "--data", polite_file, "--device", "cpu")
    assert "does not exist" in refused(capsys, "reward-model", "evaluate", *gone)
    assert "set an API key" in refused(
        capsys, "reward-model", "serve", "--model", "./gone", "--host", "0.0.0.0"
    )
    assert "There is no run" in refused(
        capsys, "reward-model", "merge", "--run", "./gone", "--out", tmp_path / "m"
    )


def test_help_shows_the_settings(capsys) -> None:
    code, out, _ = run(capsys, "reward-model", "train", "--help")
    assert code == 0 and "lora.alpha=16" in out and "tuning=lora" in out


def test_a_report_is_written_wherever_it_can_be(tmp_path, polite_file, capsys) -> None:
    out, report = tmp_path / "new" / "pairs.jsonl", tmp_path / "新 文件夹" / "report.json"
    assert (
        run(capsys, "reward-model", "convert", polite_file, "--out", out, "--report", report)[0]
        == 0
    )
    assert json.loads(report.read_text())["rows"] == 60
    taken = report / "inside a file.json"
    said = refused(capsys, "reward-model", "convert", polite_file, "--out", out, "--report", taken)
    assert "cannot be written" in said
