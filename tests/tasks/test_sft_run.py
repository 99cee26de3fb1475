"""Supervised runs on a tiny model: they learn, they repeat, their numbers are the right ones."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from memograd.config import LoraConfig
from memograd.errors import BadInput, MemogradError
from memograd.grpo import RunFolder
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import PACKAGED_MODEL
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.memory_qa import recipe as memory_qa
from memograd.tasks.memory_qa.measure import TRAINED, UNTRAINED
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.memory_qa.setup import MemoryQASetup, available_conversations
from memograd.warm_start.settings import SftSettings
from memograd.warm_start.sft import _gold_answers, _split, sft

ROWS = [
    {"messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ann"}]},
    {"prompt": [{"role": "user", "content": "Where?"}], "completion": "Oslo"},
    {"prompt": "2+2=", "completion": " 4"},
]


@pytest.fixture
def rows(tmp_path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.fixture
def settings(rows, tiny_model_folder) -> dict[str, Any]:
    return {
        "data": rows,
        "model": str(tiny_model_folder),
        "device": "cpu",
        "lora": {"r": 4},
        "steps": 4,
        "batch_size": 3,
        "micro_batch_size": 3,
        "learning_rate": 0.02,
        "warmup_steps": 0,
    }


def metrics(run: Path) -> list[dict[str, Any]]:
    rows = RunFolder.open(run).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def adapter(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "final" / "adapter_model.safetensors")


def test_a_run_learns_what_it_is_given(tmp_path, settings, caplog) -> None:
    run = sft(SftSettings(out=tmp_path / "run", **settings))
    losses = [row["loss"] for row in metrics(run)]
    assert len(losses) == 4 and losses[-1] < losses[0] - 1
    assert caplog.text == ""
    assert {"config.json", "environment.json", "metrics.jsonl", "rows.json", "final"} <= {
        path.name for path in run.iterdir()
    }
    assert RunFolder.open(run).latest_checkpoint() == run / "final"
    environment = json.loads((run / "environment.json").read_text())
    assert {"trl", "torch", "device"} <= environment.keys()
    assert set(metrics(run)[0]) == {
        *("step", "loss", "grad_norm", "learning_rate", "epoch", "entropy"),
        *("token_accuracy", "tokens"),
    }


def test_the_loss_is_that_of_the_answers_tokens_alone(tmp_path, settings) -> None:
    """Against a plain loop over transformers' logits, which also shows what a prompt would add."""
    run = sft(SftSettings(out=tmp_path / "run", **settings))
    tokenizer = AutoTokenizer.from_pretrained(settings["model"])
    model = AutoModelForCausalLM.from_pretrained(settings["model"]).eval()
    answer_nats, all_nats, answer_tokens, tokens = 0.0, 0.0, 0, 0
    for prompt, answer in [
        ("<|start|>user\nWho?<|end|><|start|>assistant\n", "Ann<|end|>"),
        ("<|start|>user\nWhere?<|end|><|start|>assistant\n", "Oslo<|end|>"),
        ("2+2=", " 4<|end|>"),
    ]:
        given, said = (tokenizer.encode(t, add_special_tokens=False) for t in (prompt, answer))
        ids = torch.tensor([given + said])
        with torch.no_grad():
            nats = -model(ids).logits[0].log_softmax(-1)[torch.arange(ids.shape[1] - 1), ids[0, 1:]]
        answer_nats += float(nats[len(given) - 1 :].sum())
        all_nats += float(nats.sum())
        answer_tokens += len(said)
        tokens += ids.shape[1]
    first = metrics(run)[0]
    assert first["loss"] == pytest.approx(answer_nats / answer_tokens, abs=1e-5)
    assert abs(first["loss"] - all_nats / (tokens - 3)) > 0.01
    assert first["tokens"] == tokens


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_to_the_bit(tmp_path, settings) -> None:
    settings |= {"batch_size": 2, "micro_batch_size": 1, "lora": {"r": 4, "dropout": 0.2}}
    one, two = (sft(SftSettings(out=tmp_path / name, **settings)) for name in ("one", "two"))
    other = sft(SftSettings(out=tmp_path / "other", **{**settings, "seed": 5}))
    assert metrics(one) == metrics(two) != metrics(other)
    weights, again = adapter(one), adapter(two)
    assert all(torch.equal(weights[name], again[name]) for name in weights)


@pytest.mark.slow
def test_micro_batches_change_nothing_but_rounding(tmp_path, settings) -> None:
    whole = sft(SftSettings(out=tmp_path / "whole", **settings))
    pieces = sft(SftSettings(out=tmp_path / "pieces", **{**settings, "micro_batch_size": 1}))
    for one, other in zip(metrics(whole), metrics(pieces), strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-3)


def test_epochs_warm_up_and_checkpoints(tmp_path, settings) -> None:
    settings |= {"steps": None, "epochs": 2, "batch_size": 2, "micro_batch_size": 1}
    settings |= {"warmup_steps": 3, "save_steps": 3}
    run = sft(SftSettings(out=tmp_path / "run", **settings))
    rates = [row["learning_rate"] / settings["learning_rate"] for row in metrics(run)]
    assert rates == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert (run / "checkpoint-3").is_dir()
    assert json.loads((run / "config.json").read_text())["steps"] == 4


def test_rows_left_out_and_cut_are_said_and_listed(tmp_path, settings, rows, caplog) -> None:
    repeated = rows.read_text().splitlines()[0]
    long = json.dumps({"prompt": "tell:", "completion": "a" * 60})
    rows.write_text(rows.read_text() + repeated + "\n" + long + "\n")
    settings |= {"max_length": 50, "steps": 1}
    run = sft(SftSettings(out=tmp_path / "run", **settings))
    assert "1 of 5 rows of" in caplog.text and "the same as an earlier row (line 4)" in caplog.text
    assert "lost what is beyond 50 tokens, their end token too (line 5)" in caplog.text
    listing = json.loads((run / "rows.json").read_text())
    assert listing["used"] == 4 and listing["cut"] == ["5"]
    assert listing["left_out"] == {"the same as an earlier row": ["4"]}


def test_a_number_that_is_not_finite_stops_the_run(tmp_path, settings) -> None:
    with pytest.raises(MemogradError, match="Step 2 measured what is not a finite number: loss"):
        sft(SftSettings(out=tmp_path / "run", **{**settings, "learning_rate": 1e25}))
    assert not (tmp_path / "run" / "final").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"data": Path("gone.jsonl")}, "There is no file"),
        ({"model": "./no-such-model"}, "does not exist"),
        ({"max_length": 3}, "fits into 3 tokens"),
        ({"adapter": Path("no-run")}, "no run folder"),
        ({"task": "memory-qa", "train": ["nobody"]}, "in no known format"),
    ],
)
def test_bad_input_leaves_no_folder(tmp_path, settings, changes, sentence) -> None:
    with pytest.raises(BadInput, match=sentence):
        sft(SftSettings(out=tmp_path / "run", **{**settings, **changes}))
    assert not (tmp_path / "run").exists()


def test_a_folder_that_holds_something_is_refused(tmp_path, settings) -> None:
    with pytest.raises(BadInput, match="not empty"):
        sft(SftSettings(out=tmp_path, **settings))


def test_memory_qa_learns_the_gold_answers_of_the_prompts_that_grpo_asks(
    tmp_path, settings, small_data
) -> None:
    settings |= {
        "data": small_data,
        "task": "memory-qa",
        "train": ["life-7-0"],
        "steps": 1,
    }
    memory = {"top_k": 2, "embedder": "minilm"}
    config = SftSettings(out=tmp_path / "run", memory=memory, **settings)
    split = _split(config)
    assert [conversation.id for conversation in split.eval] == [
        "life-7-1",
        "life-7-2",
    ]
    policy = LanguageModel.load(config.model, lora=LoraConfig(r=2), device="cpu")
    grpo = MemoryQATrainConfig(data=small_data, model=config.model, device="cpu", memory=memory)
    setup = MemoryQASetup(grpo, policy, tmp_path / "memory.db")
    [asked, *_] = available_conversations(small_data, 0)
    setup.remember([asked])
    scenarios = setup.scenarios([asked])
    rows = _gold_answers(config, policy, split).used
    assert [row.messages[:-1] for row in rows] == [scenario.messages for scenario in scenarios]
    assert [row.messages[-1]["content"] for row in rows] == [
        scenario.columns["answer"] for scenario in scenarios
    ]

    run = sft(config)
    memory_qa.evaluate(run, Evaluation(None, ["life-7-1"], False))
    report = json.loads((run / "evaluation.json").read_text())
    assert [entry["method"] for entry in report["reports"]] == [UNTRAINED, TRAINED]
    with pytest.raises(BadInput, match="was trained on life-7-0"):
        memory_qa.evaluate(run, Evaluation(None, ["life-7-0"], False))


@pytest.mark.slow
def test_a_run_on_rows_is_evaluated_on_named_conversations(tmp_path, settings, small_data) -> None:
    run = sft(SftSettings(out=tmp_path / "run", **{**settings, "steps": 1}))
    with pytest.raises(BadInput, match="not trained on conversations"):
        memory_qa.evaluate(run, Evaluation(None, [], False))
    memory_qa.evaluate(run, Evaluation(small_data, ["life-7-2"], False))
    assert (run / "evaluation-small" / "evaluation.json").is_file()


@pytest.mark.slow
def test_smollm2_learns_three_answers(tmp_path, rows) -> None:
    run = sft(
        SftSettings(
            data=rows, out=tmp_path / "run", model=PACKAGED_MODEL, device="cpu", batch_size=3,
            steps=12, warmup_steps=0, learning_rate=2e-3, lora=LoraConfig(r=8),
        )
    )  # fmt: skip
    losses = [row["loss"] for row in metrics(run)]
    assert losses[-1] < 0.5 < losses[0] and not any(map(math.isnan, losses))
    policy = LanguageModel.load_adapter(PACKAGED_MODEL, run / "final", device="cpu")
    [group] = policy.sample(
        [policy.encode([{"role": "user", "content": "Where?"}])],
        num_generations=1,
        temperature=0.0,
        max_completion_length=6,
    )
    assert group.texts == ("Oslo",) and group.stop_reasons == ("end",)
