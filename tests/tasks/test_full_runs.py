"""Runs that train all weights, from end to end: measured, stopped and resumed, used as models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.evaluate import evaluate
from memograd.tasks.memory_qa.measure import EVERY
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.registry import train
from memograd.tasks.text.settings import TextTrainConfig
from memograd.warm_start.merge import merge

REWARD = """
def small(completions, **columns):
    return [sum(map(ord, c)) % 97 / 97 for c in completions]
"""


@pytest.fixture
def settings(tmp_path: Path, tiny_model_folder: Path) -> dict[str, object]:
    rows = [{"prompt": f"count: {n}", "id": f"row-{n}"} for n in range(7)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "mine.py").write_text(REWARD)
    return {
        "data": str(tmp_path / "rows.jsonl"), "rewards": f"{tmp_path / 'mine.py'}:small",
        "model": str(tiny_model_folder), "device": "cpu", "tuning": "full", "prompts_per_step": 2,
        "num_generations": 2, "max_completion_length": 4, "steps": 4, "save_steps": 2,
        "learning_rate": 1e-3,
    }  # fmt: skip


def without_seconds(run: Path) -> list[dict]:
    rows = RunFolder.open(run).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_a_text_run_is_resumed_measured_and_trained_on(tmp_path: Path, settings) -> None:
    whole = train(TextTrainConfig(out=tmp_path / "whole", **settings))
    cut = tmp_path / "cut"
    shutil.copytree(whole, cut)
    shutil.rmtree(cut / "final")
    for written in ("answers.jsonl", "evaluation.json", "evaluation.md"):
        (cut / written).unlink()
    train(TextTrainConfig(resume=cut))
    assert without_seconds(cut) == without_seconds(whole)
    for name in ("final/model.safetensors", "answers.jsonl", "evaluation.json"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()
    # What was measured before is what the model says that the run began with.
    (whole / "before.json").unlink()
    evaluate(whole, Evaluation())
    assert (cut / "evaluation.json").read_text() == (whole / "evaluation.json").read_text()
    assert type(AutoModelForCausalLM.from_pretrained(whole / "final")).__name__.startswith("Llama")
    later = {**settings, "model": str(whole / "final"), "steps": 1}
    train(TextTrainConfig(out=tmp_path / "later", **later))
    adapter = {**later, "tuning": "lora", "adapter": str(whole)}
    with pytest.raises(BadInput, match=r"has no adapter: give the whole model that it is as model"):
        train(TextTrainConfig(out=tmp_path / "adapter", **adapter))
    with pytest.raises(BadInput, match="has no adapter"):
        merge(whole, tmp_path / "merged")


@pytest.mark.slow
def test_memory_qa_compares_with_the_untrained_model(
    tmp_path: Path, settings, small_data: Path, capsys
) -> None:
    settings |= {
        "data": str(small_data), "rewards": "mem0_bleu1", "memory": {"top_k": 2},
        "eval_batch_size": 64, "beta": 0.0, "steps": 2,
    }  # fmt: skip
    run = train(MemoryQATrainConfig(out=tmp_path / "run", **settings))
    answers = (run / "answers.jsonl").read_text().splitlines()
    evaluate(run, Evaluation(baselines=True))
    again = [json.loads(line) for line in (run / "answers.jsonl").read_text().splitlines()]
    assert set(again[0]["answers"]) == set(EVERY)
    for before, after in zip(map(json.loads, answers), again, strict=True):
        for method, said in before["answers"].items():
            assert after["answers"][method] == said
