"""Whole trainings on a tiny model: what is learnt, TRL's loss, and what a run folder can be used
for afterwards."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from memograd.config import TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.reward_model.api import Item
from memograd.reward_model.model import RewardModel
from memograd.tasks.base.policy import settings_with_adapter
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.memory_qa.recipe import evaluate as evaluate_policy
from memograd.warm_start.dpo import dpo
from memograd.warm_start.merge import merge
from memograd.warm_start.reward_model import (
    evaluate_reward_model,
    merge_reward_model,
    train_reward_model,
)
from memograd.warm_start.reward_model_rows import conversation, read_split
from memograd.warm_start.settings import DpoSettings


def metrics(run: Path) -> list[dict[str, float]]:
    return RunFolder.open(run).read_metrics()


def test_it_learns_what_length_cannot_tell(polite_run) -> None:
    """On conversations that were held out, well above the baseline."""
    report = json.loads((polite_run / "held_out.json").read_text())
    assert report["pairs"] == 18
    assert report["calibration"]["accuracy"] > report["length"]["longer_wins"] + 0.25
    assert report["calibration"]["margin_mean"] > 1
    assert report["length"]["controlled_accuracy"] > 0.8
    assert {"held_out.md", "held_out.png"} <= {path.name for path in polite_run.iterdir()}
    pairs = [json.loads(line) for line in (polite_run / "held_out_pairs.jsonl").open()]
    assert len(pairs) == 18
    right = [pair["chosen_score"] > pair["rejected_score"] for pair in pairs]
    assert sum(right) / 18 == pytest.approx(report["calibration"]["accuracy"])
    longer = [pair["chosen_length"] > pair["rejected_length"] for pair in pairs]
    assert sum(longer) <= 18 * report["length"]["longer_wins"]
    first, *_, last = metrics(polite_run)
    assert first["loss"] > 0.5 > last["loss"] and last["reward_margin"] > 1
    assert {"reward_accuracy", "score_mean", "grad_norm", "tokens"} <= last.keys()


def test_the_loss_is_that_of_bradley_and_terry(tmp_path, settings) -> None:
    """Of the first step, before any weight has moved, over all pairs in one batch."""
    config = settings(out=tmp_path / "run", steps=1, batch_size=54, micro_batch_size=54)
    [step] = metrics(train_reward_model(config))
    model = RewardModel.begin(config.model, lora=config.lora, device="cpu", seed=config.seed)
    rows = read_split(config.data, None, 0.1, "chat").train.used
    assert len(rows) == 54
    margins = [
        -(b - a)
        for a, b in (
            model.score([Item(row.prompt, row.chosen), Item(row.prompt, row.rejected)])
            for row in rows
        )
    ]
    losses = [math.log1p(math.exp(-margin)) for margin in margins]
    assert step["loss"] == pytest.approx(sum(losses) / len(losses), abs=1e-4)
    assert step["reward_margin"] == pytest.approx(sum(margins) / len(margins), abs=1e-4)


@pytest.mark.slow
def test_micro_batches_change_nothing_but_rounding(tmp_path, settings) -> None:
    runs = [
        metrics(train_reward_model(settings(out=tmp_path / str(size), micro_batch_size=size)))
        for size in (1, 4)
    ]
    for small, whole in zip(*runs, strict=True):
        assert small["loss"] == pytest.approx(whole["loss"], abs=1e-4)
        assert small["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-3)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run(tmp_path, settings) -> None:
    one, two, other = (
        metrics(train_reward_model(settings(out=tmp_path / name, seed=seed)))
        for name, seed in (("one", 0), ("two", 0), ("other", 1))
    )
    assert [row["loss"] for row in one] == [row["loss"] for row in two]
    assert one[0]["loss"] != other[0]["loss"]


def test_merged_weights_score_as_model_and_adapter(polite_run, tmp_path) -> None:
    items = [Item("where is the bus?", answer) for answer in ("gladly", "go away", "it is a pen")]
    expected = RewardModel.open(polite_run, device="cpu").score(items)
    merged = merge_reward_model(polite_run, tmp_path / "merged")
    model = RewardModel.open(merged, device="cpu")
    assert model.score(items) == pytest.approx(expected, abs=1e-3)
    assert not (merged / "adapter_config.json").exists()
    assert model.length_slope() == RewardModel.open(polite_run, device="cpu").length_slope()
    small = merge_reward_model(polite_run, tmp_path / "small", "bfloat16")
    assert RewardModel.open(small, device="cpu").score(items) == pytest.approx(expected, rel=0.2)
    with pytest.raises(BadInput, match="not an empty folder"):
        merge_reward_model(polite_run, merged)


@pytest.mark.slow
def test_every_weight_can_be_trained(tmp_path, settings) -> None:
    whole = {"tuning": "full", "lora": {}, "learning_rate": 1e-3}
    run = train_reward_model(settings(out=tmp_path / "run", **whole))
    assert (run / "final" / "model.safetensors").is_file()
    assert not (run / "final" / "adapter_config.json").exists()
    items = [Item("where is the bus?", "gladly")]
    trained = RewardModel.open(run, device="cpu")
    begun = RewardModel.begin(settings().model, lora=None, device="cpu")
    before = dict(begun.module.named_parameters())
    moved = [n for n, p in trained.module.named_parameters() if not torch.equal(p, before[n])]
    assert "model.embed_tokens.weight" in moved and "score.weight" in moved
    merged = merge_reward_model(run, tmp_path / "merged")
    assert RewardModel.open(merged, device="cpu").score(items) == pytest.approx(
        trained.score(items), abs=1e-5
    )


def test_another_run_goes_on_with_the_adapter(polite_run, tmp_path, polite_file) -> None:
    config = settings_for(polite_file, out=tmp_path / "more", adapter=polite_run, steps=1)
    run = train_reward_model(config)
    stored = json.loads((run / "config.json").read_text())
    assert stored["lora"]["r"] == 32 and stored["adapter"] == str(polite_run / "final")
    assert metrics(run)[0]["loss"] < 0.5


def settings_for(data: Path, **given):
    from memograd.warm_start.settings import RewardModelSettings

    small = {"device": "cpu", "batch_size": 4, "warmup_steps": 0, "learning_rate": 1e-4}
    return RewardModelSettings(data=data, **{**small, **given})


def test_evaluate_reads_other_pairs(polite_run, polite_file, tmp_path) -> None:
    merged = merge_reward_model(polite_run, tmp_path / "merged")
    out = evaluate_reward_model(str(merged), polite_file, tmp_path / "report", device="cpu")
    report = json.loads((out / "held_out.json").read_text())
    assert report["pairs"] == 18 and report["calibration"]["accuracy"] > 0.9
    assert report["length"]["controlled_slope"] is not None
    with pytest.raises(BadInput, match="not an empty folder"):
        evaluate_reward_model(str(merged), polite_file, tmp_path / "report", device="cpu")


def test_evaluate_leaves_out_what_the_run_was_trained_on(
    polite_run, polite_file, tmp_path, capsys
) -> None:
    out = evaluate_reward_model(str(polite_run), polite_file, tmp_path / "report", device="cpu")
    assert (
        "left out 42 of 60 pairs to measure on: its conversation was trained on"
        in capsys.readouterr().out
    )
    again, first = (json.loads((at / "held_out.json").read_text()) for at in (out, polite_run))
    assert again["pairs"] == 18
    assert again["calibration"]["accuracy"] == first["calibration"]["accuracy"]
    lines = polite_file.read_text().splitlines(keepends=True)
    learnt = json.loads((polite_run / "rows.json").read_text())["used"]
    assert learnt == 42
    kept = read_split(polite_file, None, 0.3, "chat").train.used
    only = tmp_path / "learnt.jsonl"
    only.write_text("".join(lines[int(row.place) - 1] for row in kept))
    with pytest.raises(BadInput, match="was trained on every conversation"):
        evaluate_reward_model(str(polite_run), only, tmp_path / "none", device="cpu")


def test_nothing_that_is_measured_on_was_trained_on(tmp_path, settings, polite_file) -> None:
    run = train_reward_model(settings(out=tmp_path / "run", eval_fraction=0.4))
    split = read_split(polite_file, None, 0.4, "chat")
    assert len(split.train.used) + len(split.held_out.used) == 60
    trained = {conversation(row) for row in split.train.used}
    assert not trained & {conversation(row) for row in split.held_out.used}
    assert json.loads((run / "held_out.json").read_text())["pairs"] == len(split.held_out.used)
    assert json.loads((run / "length_control.json").read_text())["pairs"] == len(split.train.used)


def test_cut_rows_are_counted(tmp_path, settings, caplog) -> None:
    run = train_reward_model(settings(out=tmp_path / "run", max_length=30, eval_fraction=0.5))
    rows = json.loads((run / "rows.json").read_text())
    assert len(rows["cut"]) == rows["used"] > 0
    assert "lost what is beyond 30 tokens, the first of them" in caplog.text
    report = json.loads((run / "held_out.json").read_text())
    assert report["cut"] == report["pairs"] == 30


def test_pairs_that_are_the_same_when_cut_are_left_out(tmp_path, settings) -> None:
    with pytest.raises(BadInput, match=r"No pair of .* differs within 1 tokens"):
        train_reward_model(settings(out=tmp_path / "run", max_length=1))
    assert not (tmp_path / "run").exists()


def test_a_reward_model_is_not_taken_for_a_policy(polite_run, polite_file, tmp_path) -> None:
    with pytest.raises(BadInput, match="use memograd reward-model merge"):
        merge(polite_run, tmp_path / "merged")
    with pytest.raises(BadInput, match="memograd reward-model evaluate"):
        evaluate_policy(polite_run, Evaluation())
    with pytest.raises(BadInput, match="do not fit each other"):
        settings_with_adapter(TrainConfig(adapter=polite_run))
    with pytest.raises(BadInput, match="do not fit each other"):
        dpo(DpoSettings(data=polite_file, adapter=polite_run, out=tmp_path / "dpo"))


def test_nor_a_policy_for_a_reward_model(
    tmp_path, settings, polite_file, tiny_model_folder
) -> None:
    policy = dpo(
        DpoSettings(
            data=polite_file,
            model=str(tiny_model_folder),
            out=tmp_path / "dpo",
            steps=1,
            batch_size=1,
            device="cpu",
        )
    )
    with pytest.raises(BadInput, match="a run of dpo, not of a reward model"):
        RewardModel.open(policy, device="cpu")
    with pytest.raises(BadInput, match="do not fit each other"):
        train_reward_model(settings_for(polite_file, adapter=policy, out=tmp_path / "run"))
