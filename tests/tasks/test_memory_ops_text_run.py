"""memory-ops-text from end to end, by the command line, stopped and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memograd.cli import main
from memograd.data.lifelog import LifelogSettings, generate_lifelogs, write_lifelogs
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.tasks.memory_ops_text import recipe as memory_ops_text
from memograd.tasks.memory_ops_text.settings import OpsTextTrainConfig


@pytest.fixture(autouse=True)
def small_embedder(monkeypatch: pytest.MonkeyPatch, trigrams) -> None:
    monkeypatch.setattr(memory_ops_text, "load_embedder", lambda name: trigrams(64))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    path = tmp_path / "logs.jsonl"
    settings = LifelogSettings(sessions=2, statements_per_session=6)
    write_lifelogs(generate_lifelogs(2, 1, settings), path)
    return path


def test_rows_and_training(
    logs: Path, tmp_path: Path, tiny_model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows_path, run = tmp_path / "rows.jsonl", tmp_path / "run"
    with pytest.raises(SystemExit) as ended:
        main(["data", "memory-ops-rows", "--data", str(logs), "--out", str(rows_path)])
    assert ended.value.code == 0, capsys.readouterr()
    rows = [json.loads(line) for line in rows_path.read_text().splitlines()]
    assert len(rows) == 12  # of the log that is not held out
    assert {row["messages"][-1]["content"].split()[0] for row in rows} <= {
        *("ADD", "NONE", "UPDATE", "DELETE")
    }
    given = ["steps=2", "save_steps=1", "num_generations=2", "prompts_per_step=2", "device=cpu"]
    with pytest.raises(SystemExit) as ended:
        model = ["--data", str(logs), "--model", str(tiny_model_folder)]
        main(["train", "memory-ops-text", *model, *given, "lora.r=4", f"out={run}"])
    assert ended.value.code == 0, capsys.readouterr()
    changes = {one["reward"]: one["n"] for one in json.loads((run / "evaluation.json").read_text())}
    assert changes == {"total": 12, "worth": 12, "well_formed": 12, "gold_operation": 12}
    metrics = RunFolder.open(run).read_metrics()
    assert [row["step"] for row in metrics] == [1, 2]


def test_a_reward_that_asks_for_more_than_decisions_have(tmp_path: Path, logs: Path) -> None:
    given = OpsTextTrainConfig(data=logs, rewards="exact_match", out=tmp_path / "run")
    with pytest.raises(BadInput, match="needs answer, but decisions have only operations"):
        memory_ops_text.make_job(given, None)


@pytest.mark.parametrize("given", [[], ["max_prompt_length=99"]], ids=["context", "setting"])
def test_a_statement_beyond_the_context_is_refused_before_there_is_a_run(
    logs: Path,
    tmp_path: Path,
    tiny_model_folder: Path,
    capsys: pytest.CaptureFixture[str],
    given: list[str],
) -> None:
    read = [json.loads(line) for line in logs.read_text().splitlines()]
    if not given:
        read[0]["statements"][3]["text"] = "I have a cat " * 3000
    logs.write_text("".join(json.dumps(one) + "\n" for one in read))
    with pytest.raises(SystemExit) as ended:
        words = [f"model={tiny_model_folder}", "device=cpu", f"out={tmp_path / 'run'}", *given]
        main(["train", "memory-ops-text", "--data", str(logs), *words])
    said = capsys.readouterr().err
    assert ended.value.code == 2, said
    assert (
        said.count("\n") == 1 and "The decision life-" in said and "max_completion_length" in said
    )
    assert not (tmp_path / "run").exists()


def test_one_log_is_not_enough(logs: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.jsonl"
    one.write_text(logs.read_text().splitlines()[0] + "\n")
    config = OpsTextTrainConfig(data=one)
    with pytest.raises(BadInput, match="holds one log"):
        memory_ops_text.scenarios(config)
    with pytest.raises(BadInput, match="in common"):
        memory_ops_text.scenarios(
            OpsTextTrainConfig.model_validate({"data": one, "text": {"eval_data": logs}})
        )


def test_rows_do_not_overwrite(logs: Path) -> None:
    with pytest.raises(BadInput, match="there already"):
        memory_ops_text.warm_start_rows(OpsTextTrainConfig(data=logs), logs)
