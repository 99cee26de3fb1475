"""Runs are listed, shown, compared and plotted, and rollouts shown, from a real run's folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memograd.cli import main
from memograd.config import LoraConfig, TrainConfig
from memograd.grpo import RunFolder

ODD = "\x1b[31mred\x07"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, tiny_model_folder: Path) -> Path:
    """A run `one` of the tiny model, and `two`, the same but for its seed and its end."""
    from memograd.grpo.trainer import Stage, Trainer
    from memograd.policy.language_model import LanguageModel
    from memograd.rewards import WeightedReward
    from memograd.rollout import Message, Scenario

    folder = tmp_path_factory.mktemp("runs")
    lora = LoraConfig(r=2)
    config = TrainConfig(
        model=str(tiny_model_folder),
        device="cpu",
        lora=lora,
        steps=2,
        prompts_per_step=2,
        num_generations=2,
        max_completion_length=3,
        rollout_log_steps=2,
    )
    scenarios = [
        Scenario(f"q{n}{ODD}", (Message(role="user", content=f"say {n} {ODD}"),), {"answer": ODD})
        for n in range(2)
    ]

    def reward(completions: list[str]) -> list[float]:
        return [float(place) for place in range(len(completions))]

    policy = LanguageModel.load(config.model, lora=lora, device="cpu")
    run = RunFolder.create(folder / "one", config.model_dump_json(), task="memory-qa")
    with run.lock():
        Trainer(policy, scenarios, [WeightedReward("rank", reward)], config, Stage(run)).train()
    shutil.copytree(folder / "one", folder / "two")
    settings = json.loads(run.config_json) | {"seed": 7, "steps": 9}
    (folder / "two" / "config.json").write_text(json.dumps(settings))
    (folder / "two" / "state.json").write_text('{"state": "running", "pid": 1}')
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert exit_.value.code == code, captured.err
    assert "\x1b" not in captured.out and "\x07" not in captured.out
    return captured.out if code == 0 else captured.err


def test_list(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "runs", "list", "--dir", runs).splitlines()
    cells = {line.split()[0]: line.split() for line in lines if line.strip()}
    assert cells["one"][1:6] == ["memory-qa", "tiny", "2/2", "finished", "1.5"]
    assert cells["two"][1:6] == ["memory-qa", "tiny", "2/9", "stopped", "1.5"]
    listed = json.loads(run(capsys, "runs", "list", "--dir", runs, "--json"))
    assert {Path(one["path"]).name: one["state"] for one in listed} == {
        "one": "finished",
        "two": "stopped",
    }
    (runs / "empty").mkdir(exist_ok=True)
    assert "There are no runs" in run(capsys, "runs", "list", "--dir", runs / "empty")


def test_a_run_at_work_is_running(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (runs / "two" / "state.json").read_text()
    with RunFolder.open(runs / "two").lock():
        listed = json.loads(run(capsys, "runs", "list", "--dir", runs, "--json"))
    (runs / "two" / "state.json").write_text(before)
    assert [one["state"] for one in listed if one["path"].endswith("two")] == ["running"]


def test_show(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "runs", "show", "two", "--dir", runs)
    assert "stopped: its process died or was killed" in out
    for setting in ("lora.r", "seed", "num_generations"):
        assert setting in out
    assert "learning_rate " not in out.split("Last metrics")[0], "that is the default"
    assert "final" in out and "KB" in out
    shown = json.loads(run(capsys, "runs", "show", runs / "two", "--json"))
    assert shown["changed"]["seed"] == 7
    assert shown["metrics"]["step"] == 2
    assert [one["step"] for one in shown["checkpoints"]] == [2]


def test_compare(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "runs", "compare", "one", runs / "two", "--dir", runs, "--last", 2)
    assert "mean of the last 2 steps" in out
    [seed] = [line.split() for line in out.splitlines() if line.startswith("seed")]
    assert seed == ["seed", "0", "7"]
    compared = json.loads(run(capsys, "runs", "compare", "one", "two", "--dir", runs, "--json"))
    assert compared["runs"] == ["one", "two"]
    assert compared["settings"] == {"seed": [0, 7], "steps": [2, 9]}
    assert compared["metrics"]["reward_mean"] == [1.5, 1.5]


def test_plot(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "seeds.png"
    assert str(out) in run(capsys, "runs", "plot", "one", "two", "--dir", runs, "--out", out)
    assert out.read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_the_callers_to_mend(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in (tmp_path, runs / "one" / "config.json" / "seeds.png"):
        with pytest.raises(SystemExit) as ended:
            main(["runs", "plot", "one", "--dir", str(runs), "--out", str(place)])
        assert ended.value.code == 2
        error = capsys.readouterr().err
        assert error.startswith(f"memograd: The picture {place} cannot be written (")


def test_rollouts_without_colour(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "rollouts", "one", "--dir", runs, "--step", 1, "--group", 1)
    assert out.startswith("step 1, group 1: q")
    assert "[user] say " in out and "\ufffd[31mred" in out
    assert "1: reward 3  advantage 0.7" in out and "rank 3" in out
    assert len([line for line in out.splitlines() if ": reward " in line]) == 2
    [group] = json.loads(
        run(capsys, "rollouts", "one", "--dir", runs, "--step", 1, "--group", 1, "--json")
    )
    row = group["rollouts"][0]["rows"][0]
    assert len(row["ids"]) == len(row["texts"]) == len(row["scored"]) == len(row["logprobs"])


def test_rollouts_take_the_last_logged_step(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "rollouts", runs / "one")
    assert out.count("step 2, group ") == 2


def test_what_was_not_chosen_is_marked_with_and_without_colour(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = runs / "one" / "rollouts" / "step-0002.jsonl"
    before = path.read_text(encoding="utf-8")
    record = json.loads(before.splitlines()[0])
    row = {
        "prompt_ids": None,
        "ids": [1, 2, 3, 4],
        "texts": ["call", "\x1b[2Jtool\n", "so", "June"],
        "scored": [True, False, True, True],
        "logprobs": [-0.1, None, -1.5, -3.5],
    }
    record["rollouts"] = [record["rollouts"][0] | {"rows": [row]}]
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    try:
        assert "   call⟦\ufffd[2Jtool⏎⟧soJune{0.03}\n" in run(capsys, "rollouts", runs / "one")
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        with pytest.raises(SystemExit):
            main(["rollouts", str(runs / "one")])
        out = capsys.readouterr().out
    finally:
        path.write_text(before, encoding="utf-8")
    assert "\x1b[32mcall\x1b[0m\x1b[2m\ufffd[2Jtool⏎\x1b[0m\x1b[33mso\x1b[0m\x1b[31mJune" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs", "show", "none"], "no run folder"),
        (["runs", "compare", "one", "none"], "no run folder"),
        (["runs", "plot", "one", "none", "--out", "x.png"], "no run folder"),
        (["rollouts", "none"], "no run folder"),
        (["rollouts", "one", "--step", "7"], "no rollouts of step 7: there are 1, 2"),
        (["rollouts", "one", "--group", "9"], "no group 9"),
    ],
)
def test_bad_input_is_one_sentence(
    runs: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    error = run(capsys, *arguments, "--dir", runs, code=2)
    assert error.startswith("memograd: ") and error.count("\n") == 1
    assert message in error


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--dir" in run(capsys, "runs", "list", "--dir", tmp_path / "none", code=2)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("config.json", "{", "is no JSON"),
        ("config.json", "[]", "is no JSON object"),
        ("metrics.jsonl", "no\n", "is damaged in line 1"),
    ],
)
def test_a_damaged_run_is_the_callers_to_mend(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    name: str, text: str, sentence: str,
) -> None:  # fmt: skip
    broken = Path(shutil.copytree(runs / "one", tmp_path / "broken"))
    (broken / name).write_text(text)
    for command in (["show", broken], ["compare", broken, runs / "two"]):
        said = run(capsys, "runs", *command, code=2)
        assert sentence in said and ": put" in said.replace("; put", ": put")
