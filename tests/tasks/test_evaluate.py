"""`memograd evaluate` on runs that train on rows: it repeats what training measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.tasks.agent.settings import AgentTrainConfig
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.evaluate import evaluate
from memograd.tasks.registry import train
from memograd.tasks.text.settings import TextTrainConfig

SMALL: dict[str, Any] = {
    "device": "cpu", "lora": {"r": 2}, "steps": 1, "prompts_per_step": 2, "num_generations": 2,
    "max_completion_length": 6,
}  # fmt: skip
ENVIRONMENT = """
class Number:
    def reset(self, number):
        self.number = number

    def get_reward(self):
        return self.number / 10
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    lines = [{"prompt": f"{n} + 1 =", "answer": str(n + 1), "number": n} for n in range(8)]
    path.write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "more.jsonl").write_text(json.dumps({"prompt": "9 9", "answer": "x", "number": 9}))
    return path


def trained(task: str, rows: Path, model: Path, **given: Any) -> Path:
    settings = {**SMALL, "model": str(model), "data": rows, "out": rows.parent / task, **given}
    if task == "text":
        return train(TextTrainConfig(**settings, rewards="length(low=1, high=3)"))
    (rows.parent / "env.py").write_text(ENVIRONMENT)
    episodes = {"environment": f"{rows.parent / 'env.py'}:Number"}
    return train(AgentTrainConfig(**settings, episodes=episodes))


@pytest.mark.parametrize("task", ["text", "agent"])
def test_it_repeats_what_training_measured(task: str, rows: Path, tiny_model_folder: Path) -> None:
    run = trained(task, rows, tiny_model_folder)
    files = ("evaluation.md", "evaluation.json", "answers.jsonl")
    before = {name: (run / name).read_text() for name in files}
    for name in files:
        (run / name).unlink()
    evaluate(run, Evaluation(None, [], False))
    assert {name: (run / name).read_text() for name in files} == before

    evaluate(run, Evaluation(rows.parent / "more.jsonl", [], False))
    (answer,) = (run / "evaluation-more" / "answers.jsonl").read_text().splitlines()
    assert json.loads(answer)["columns"]["number"] == 9


@pytest.mark.slow
def test_files_of_one_name_are_measured_beside_each_other(
    rows: Path, tiny_model_folder: Path
) -> None:
    run = trained("text", rows, tiny_model_folder)
    files = [rows.parent / place / "more.jsonl" for place in ("", "另外", "")]
    files[1].parent.mkdir()
    files[1].write_text(json.dumps({"prompt": "8 8", "answer": "x", "number": 8}))
    for file in files:
        evaluate(run, Evaluation(file, [], False))
    folders = sorted(run.glob("evaluation-*"))
    assert [folder.name for folder in folders] == ["evaluation-more", "evaluation-more-2"]
    for folder, number, file in zip(folders, (9, 8), files, strict=False):
        (answer,) = (folder / "answers.jsonl").read_text().splitlines()
        assert json.loads(answer)["columns"]["number"] == number
        assert json.loads((folder / "measured_on.json").read_text()) == [str(file)]


def test_what_cannot_be_measured_is_one_sentence(rows: Path, tiny_model_folder: Path) -> None:
    run = trained("text", rows, tiny_model_folder, text={"eval_fraction": 0})
    with pytest.raises(BadInput, match="holds nothing out; give rows to measure on"):
        evaluate(run, Evaluation(None, [], False))
    with pytest.raises(BadInput, match="--conversation and --baselines are for runs on conv"):
        evaluate(run, Evaluation(None, ["conv-30"], False))
    with pytest.raises(BadInput, match="has the same prompt as"):
        evaluate(run, Evaluation(rows, [], False))
    with pytest.raises(BadInput, match="There is no run folder"):
        evaluate(rows.parent / "gone", Evaluation(None, [], False))
    for checkpoint in [run / "final", *run.glob("checkpoint-*")]:
        checkpoint.rename(checkpoint.with_name(f"gone-{checkpoint.name}"))
    with pytest.raises(BadInput, match="has no complete checkpoint yet"):
        evaluate(run, Evaluation(None, [], False))
