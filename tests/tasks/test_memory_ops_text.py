"""Decisions as text: what is asked, said and rewarded; from end to end, stopped and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.cli import main
from memograd.data.lifelog import LifelogSettings, generate_lifelogs, write_lifelogs
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.memory.manager.trained.observation import ACTIONS, ADD, NONE
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import EmbeddedLog
from memograd.tasks.memory_ops.walk import Walk
from memograd.tasks.memory_ops_text import recipe as memory_ops_text
from memograd.tasks.memory_ops_text.recipe import (
    NOT_AN_OPERATION,
    decision_scenarios,
    gold_operation,
    operation_named,
    said_operation,
    well_formed,
    worth,
)
from memograd.tasks.memory_ops_text.settings import OpsTextTrainConfig


def test_every_action_is_said_and_read_back() -> None:
    names = [operation_named(action) for action in range(ACTIONS)]
    assert len(set(names)) == ACTIONS and names[ADD] == "ADD" and names[NONE] == "NONE"
    assert [said_operation(name) for name in names] == names


@given(st.text())
def test_reading_is_total(answer: str) -> None:
    said = said_operation(answer)
    assert said is None or said_operation(said) == said


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (" UPDATE 2\n", "UPDATE 2"),
        ("DELETE #1", "DELETE 1"),
        ("NONE.", "NONE"),
        ("UPDATE", None),
        ("UPDATE 0", None),
        ("ADD the fact", None),
        ("add", None),
    ],
)
def test_answers(answer: str, said: str | None) -> None:
    assert said_operation(answer) == said


def test_scenarios_know_what_each_operation_is_worth(embedded: list[EmbeddedLog]) -> None:
    """The walk of gold operations, beside the rewards of the walk itself."""
    standard = AnswerStandard()
    for log in embedded:
        walk = Walk(log, standard, asks=False)
        for scenario in decision_scenarios(log, standard):
            rewards_A = walk.rewards()
            operations = scenario.columns["operations"]
            allowed = walk.point.observation.allowed_A
            assert operations == {
                operation_named(action): rewards_A[action]
                for action in range(ACTIONS)
                if allowed[action]
            }
            assert operations["NONE"] == 0
            gold = walk.gold_action()
            assert scenario.columns["gold"] == operation_named(gold) in operations
            content = scenario.messages[1]["content"]
            assert content.endswith(walk.point.fact.text)
            for number, hit in enumerate(walk.point.hits, start=1):
                assert f"\n{number} {hit.record.text}\n" in content
            walk.take(gold)
        assert walk.over
    assert "新的陈述" in decision_scenarios(embedded[-1], standard)[0].messages[1]["content"]


def test_rewards() -> None:
    known = {"ADD": 0.5, "NONE": 0.0, "UPDATE 1": -0.3}
    said = ["ADD", [{"role": "assistant", "content": "NONE"}], "UPDATE 1", "UPDATE 7", "hm"]
    rows = [known] * len(said)
    worst = -0.3 - NOT_AN_OPERATION
    assert worth(said, rows) == [0.5, 0.0, -0.3, worst, worst]
    assert well_formed(said, rows) == [1, 1, 1, 0, 0]
    assert gold_operation(said, ["ADD", "ADD", None, "NONE", "NONE"]) == [1, 0, None, 0, 0]


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
