"""Preference runs on a tiny model: margins rise from zero, against a reference that never moves."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.quick import quick

from memograd.grpo import RunFolder
from memograd.policy.language_model import LanguageModel
from memograd.rollout import TokenTree
from memograd.warm_start.dpo import dpo
from memograd.warm_start.settings import DpoSettings

PROMPT = [{"role": "user", "content": "Who?"}]
PAIRS = [("Ann", "Bob"), ("Ann Lee", "I do not know")]


@pytest.fixture
def settings(tmp_path, tiny_model_folder) -> dict[str, Any]:
    path = tmp_path / "pairs.jsonl"
    rows = [{"prompt": PROMPT, "chosen": good, "rejected": bad} for good, bad in PAIRS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "data": path,
        "model": str(tiny_model_folder),
        "device": "cpu",
        "lora": {"r": 4},
        "steps": 3,
        "batch_size": 2,
        "micro_batch_size": 2,
        "learning_rate": 0.01,
        "warmup_steps": 0,
        "save_steps": 1,
    }


def metrics(run: Path) -> list[dict[str, Any]]:
    return RunFolder.open(run).read_metrics()


def answer_nats(policy: LanguageModel, reference: bool) -> torch.Tensor:
    """Log-probability of every answer [pairs, 2] as our own forward sees it."""
    end = policy.tokenizer.eos_token_id
    answers = [
        [*policy.tokenizer.encode(text, add_special_tokens=False), end]
        for pair in PAIRS
        for text in pair
    ]
    trees = [TokenTree.from_branches(policy.encode(PROMPT), [answer]) for answer in answers]
    score = policy.reference_logprobs if reference else policy.logprobs
    scores = [score([tree], temperature=1.0).logprobs_RT.sum().detach() for tree in trees]
    return torch.stack(scores).view(len(PAIRS), 2)


def expected_loss(policy: LanguageModel, beta: float) -> float:
    """Rafailov et al. (arXiv:2305.18290), equation 7, written out."""
    ratios = answer_nats(policy, reference=False) - answer_nats(policy, reference=True)
    return float(-torch.nn.functional.logsigmoid(beta * (ratios[:, 0] - ratios[:, 1])).mean())


def test_the_margin_rises_from_zero(tmp_path, settings) -> None:
    run = dpo(DpoSettings(out=tmp_path / "run", **settings))
    first, *_, last = metrics(run)
    assert first["reward_margin"] == 0 and first["loss"] == pytest.approx(0.693147, abs=1e-5)
    assert last["reward_margin"] > 0.05 and last["reward_accuracy"] == 1
    assert last["logprob_chosen"] > first["logprob_chosen"]
    assert {"reward_chosen", "reward_rejected", "logprob_rejected", "tokens"} <= last.keys()


def test_the_loss_is_the_papers(tmp_path, settings) -> None:
    """Step 2 computes it with the weights that checkpoint-1 holds."""
    run = dpo(DpoSettings(out=tmp_path / "run", beta=0.3, **settings))
    policy = LanguageModel.load_adapter(settings["model"], run / "checkpoint-1", device="cpu")
    assert metrics(run)[1]["loss"] == pytest.approx(expected_loss(policy, 0.3), abs=1e-5)


@pytest.mark.slow
def test_the_reference_is_the_adapter_that_training_began_with(tmp_path, settings) -> None:
    begun = dpo(DpoSettings(out=tmp_path / "begun", **settings))
    settings = {k: v for k, v in settings.items() if k not in ("model", "lora")}
    run = dpo(DpoSettings(out=tmp_path / "run", adapter=begun, **settings))
    config = json.loads((run / "config.json").read_text())
    assert config["lora"]["r"] == 4 and config["adapter"] == str(begun / "final")
    assert metrics(run)[0]["reward_margin"] == 0
    policy = LanguageModel.load_adapter(
        config["model"], run / "checkpoint-1", reference=begun / "final", device="cpu"
    )
    assert metrics(run)[1]["loss"] == pytest.approx(expected_loss(policy, 0.1), abs=1e-5)
    alone = LanguageModel.load_adapter(config["model"], run / "checkpoint-1", device="cpu")
    assert abs(metrics(run)[1]["loss"] - expected_loss(alone, 0.1)) > 1e-3
    assert not (run / "final" / "ref").exists() and not (run / "final" / "reference").exists()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run(tmp_path, settings) -> None:
    settings |= {"batch_size": 1, "micro_batch_size": 1}
    one, two = (dpo(DpoSettings(out=tmp_path / name, **settings)) for name in ("one", "two"))
    assert [row["loss"] for row in metrics(one)] == [row["loss"] for row in metrics(two)]


@pytest.mark.parametrize("name", quick(["medical_pairs_dev", "hh_harmless_1800"], (1,)))
def test_rows_of_real_files(tmp_path, settings, shared_data, name) -> None:
    with gzip.open(shared_data / "preference" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = list(islice(file, 2))
    data = tmp_path / f"{name}.jsonl"
    data.write_text("".join(lines), encoding="utf-8")
    settings |= {"data": data, "steps": 1, "max_length": 3000}
    [step] = metrics(dpo(DpoSettings(out=tmp_path / "run", **settings)))
    assert step["loss"] == pytest.approx(0.693147, abs=1e-5)
