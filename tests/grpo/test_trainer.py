"""Whole runs of a tiny model: it learns, it writes down what it did, it resumes to the bit."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from small_runs import begun

from memograd.config import TrainConfig
from memograd.errors import BadInput, MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.trainer_state import STATE_FILE
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward
from memograd.rewards.compose import RewardError


def share_of_low_bytes(prompts, completions, **columns):
    """How much of an answer is made of characters below '@': easy to learn, never constant."""
    return [sum(c < "@" for c in text) / max(1, len(text)) for text in completions]


LOW = [WeightedReward("low", share_of_low_bytes)]


def run(folder, config, scenarios, rewards=LOW, **heard):
    """Train in the folder, or go on with the run in it."""
    start = begun(folder, config)
    start.trainer(scenarios, rewards, **heard).train()
    return start.run, [p.detach().clone() for p in start.policy.parameters()]


def without_seconds(run_folder):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in run_folder.read_metrics()]


def test_reward_rises(tmp_path, tiny_config, scenarios) -> None:
    config = tiny_config.model_copy(update={"steps": 30, "prompts_per_step": 4, "beta": 0.0})
    run_folder, _ = run(tmp_path / "run", config, scenarios)
    rewards = [row["reward_mean"] for row in run_folder.read_metrics()]
    assert sum(rewards[-5:]) / 5 > sum(rewards[:5]) / 5 + 0.2


@pytest.mark.slow
def test_a_resumed_run_equals_the_one_that_never_stopped(tmp_path, tiny_config, scenarios) -> None:
    whole, weights = run(tmp_path / "whole", tiny_config, scenarios)
    # Stopped at step 5, after the checkpoint of step 4: step 5 is lost and done again.
    calls = []

    def dies(prompts, completions, **columns):
        calls.append(None)
        if len(calls) == 6:
            raise RuntimeError("the plug was pulled")
        return share_of_low_bytes(prompts, completions)

    with pytest.raises(MemogradError, match="plug"):
        run(tmp_path / "cut", tiny_config, scenarios, [WeightedReward("low", dies)])
    assert len(RunFolder.open(tmp_path / "cut").read_metrics()) == 5
    resumed, resumed_weights = run(tmp_path / "cut", tiny_config, scenarios)
    assert without_seconds(resumed) == without_seconds(whole)
    assert all(torch.equal(a, b) for a, b in zip(weights, resumed_weights, strict=True))


def test_the_run_folder_holds_what_is_promised(tmp_path, tiny_config, scenarios) -> None:
    run_folder, _ = run(tmp_path / "run", tiny_config, scenarios)
    names = {str(path.relative_to(run_folder.path)) for path in run_folder.path.rglob("*")}
    assert {
        "config.json",
        "metrics.jsonl",
        "rollouts/step-0001.txt",
        "rollouts/step-0003.txt",
        "checkpoint-2/adapter_model.safetensors",
        "checkpoint-4/trainer_state.pt",
        "final/adapter_model.safetensors",
        "final/adapter_config.json",
        "final/tokenizer.json",
        "final/trainer_state.pt",
    } <= names
    rows = run_folder.read_metrics()
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    for row in rows:
        assert row["tokens_as_tree"] < row["tokens_as_rows"]
        assert set(row["seconds"]) >= {"sample", "reward", "learn"}
        assert all(math.isfinite(v) for v in row.values() if isinstance(v, float))
    assert "verify" in rows[0]["seconds"] and "verify" not in rows[1]["seconds"]
    assert TrainConfig.model_validate_json(run_folder.config_json) == tiny_config


def test_groups_without_differences_are_counted_not_nan(tmp_path, tiny_config, scenarios) -> None:
    constant = [
        WeightedReward("constant", lambda prompts, completions, **c: [0.4] * len(completions))
    ]
    run_folder, _ = run(tmp_path / "run", tiny_config, scenarios, constant)
    for row in run_folder.read_metrics():
        assert row["zero_variance_fraction"] == 1.0
        assert row["loss"] == row["grad_norm"] == 0.0
        json.dumps(row, allow_nan=False)


def test_warm_up_raises_the_learning_rate_linearly(tmp_path, tiny_config, scenarios) -> None:
    config = tiny_config.model_copy(update={"warmup_steps": 3, "learning_rate": 0.04})
    run_folder, _ = run(tmp_path / "run", config, scenarios)
    rates = [row["learning_rate"] for row in run_folder.read_metrics()]
    assert rates == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.04, 0.04])


def sometimes_alike(prompts, completions, **columns):
    """Whole groups earn the same, others do not."""
    return [
        0.0 if len(prompt[0]["content"]) % 2 else sum(c < "@" for c in text) / max(1, len(text))
        for prompt, text in zip(prompts, completions, strict=True)
    ]


def test_everything_that_changes_over_a_run_resumes_to_the_bit(
    tmp_path, tiny_config, scenarios
) -> None:
    """Dynamic sampling, length penalty, moving temperature and learning rate, three passes."""

    def evaluate(label: str) -> float:
        """Every measurement is better than the one before it."""
        return float(label.removeprefix("step "))

    changes = {
        "algorithm": "dapo",
        "resample_rounds": 2,
        "temperature_schedule": "variance",
        "temperature_end": 1.3,
        "learning_rate_schedule": "cosine",
        "warmup_steps": 1,
        "num_iterations": 3,
        "save_steps": 2,
        "eval_steps": 1,
    }
    given = tiny_config.model_dump(exclude_defaults=True)
    config = TrainConfig.model_validate(given | changes)
    rewards = [WeightedReward("alike", sometimes_alike)]
    whole, weights = run(tmp_path / "whole", config, scenarios, rewards, evaluate=evaluate)
    rows = whole.read_metrics()
    # The temperature is as high as groups of the step before were alike.
    assert rows[0]["temperature"] == config.temperature
    for before, row in pairwise(rows):
        expected = config.temperature + 0.5 * before["zero_variance_fraction"]
        assert row["temperature"] == pytest.approx(expected)
    assert len({row["temperature"] for row in rows}) > 1
    assert {row["groups_drawn"] for row in rows} > {2}
    assert rows[-1]["learning_rate"] < max(row["learning_rate"] for row in rows)
    assert all("overlong" in row["rewards"] for row in rows)

    # Stopped after step 3, the last checkpoint is that of step 2: step 3 is done again.
    assert rows[1]["zero_variance_fraction"] > 0  # so that it shows if it were forgotten
    with pytest.raises(KeyboardInterrupt):
        run(
            tmp_path / "cut", config, scenarios, rewards, evaluate=evaluate,
            on_step=lambda metrics: _stop_after(metrics, 3),
        )  # fmt: skip
    resumed, resumed_weights = run(tmp_path / "cut", config, scenarios, rewards, evaluate=evaluate)
    assert without_seconds(resumed) == without_seconds(whole)
    assert all(torch.equal(a, b) for a, b in zip(weights, resumed_weights, strict=True))
    # What is saved says the same, too. (The files differ in a few bytes: pickle writes a text that
    # two places share once, and texts that were loaded are not shared.)
    for name in ("best", "final"):
        states = [
            torch.load(folder.path / name / STATE_FILE, weights_only=True)
            for folder in (whole, resumed)
        ]
        assert states[0]["step"] == 6
        assert_same(*states)


def assert_same(one, other) -> None:
    """Equal to the bit, in the same order, all the way down."""
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key, value in one.items():
            assert_same(value, other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for value, its in zip(one, other, strict=True):
            assert_same(value, its)
    else:
        assert one == other


def _stop_after(metrics, step) -> None:
    if metrics["step"] == step:
        raise KeyboardInterrupt


def test_the_reference_is_the_model_before_training(tmp_path, tiny_config, scenarios) -> None:
    """KL is zero at the first step and positive once the weights have moved."""
    config = tiny_config.model_copy(update={"beta": 0.0})
    run_folder, _ = run(tmp_path / "run", config, scenarios)
    kl = [row["kl"] for row in run_folder.read_metrics() if row["kl"] is not None]
    assert kl[0] == pytest.approx(0.0, abs=1e-6)
    assert kl[-1] > 1e-3


def test_nothing_to_train_on_is_refused(tmp_path, tiny_config) -> None:
    with pytest.raises(BadInput, match="nothing to train on"):
        run(tmp_path / "run", tiny_config, [])


def evaluated_run(folder, config, scenarios, *, stop_after=None):
    """A run that is measured by greedy answers; measuring draws random numbers of its own.

    stop_after: the step when it is told, or the checkpoint that is not written any more.
    """
    start = begun(folder, config)
    policy = start.policy
    weights_of: dict[int, list[torch.Tensor]] = {}

    def evaluate(label: str) -> float:
        step = int(label.removeprefix("step "))
        weights_of[step] = [p.detach().clone() for p in policy.parameters()]
        torch.rand(5)
        np.random.rand(5)
        policy.sample(
            [policy.encode(scenario.prompt) for scenario in scenarios],
            num_generations=1,
            temperature=0.0,
            max_completion_length=4,
        )
        return {2: 0.1, 4: 0.7, 6: 0.7}[step]

    def on_step(metrics) -> None:
        if metrics["step"] == stop_after:
            raise KeyboardInterrupt

    trainer = start.trainer(scenarios, LOW, evaluate=evaluate, on_step=on_step)
    save = start.run.save_checkpoint

    def save_unless_stopped(name: str, *what, **more) -> object:
        if name == stop_after:
            raise KeyboardInterrupt
        return save(name, *what, **more)

    start.run.save_checkpoint = save_unless_stopped
    try:
        trainer.train()
    except KeyboardInterrupt:
        assert stop_after is not None
    return start.run, [p.detach().clone() for p in policy.parameters()], weights_of


def test_the_best_checkpoint_is_kept_and_measuring_changes_nothing(
    tmp_path, tiny_config, scenarios
) -> None:
    config = tiny_config.model_copy(update={"eval_steps": 2})
    whole, weights, weights_of = evaluated_run(tmp_path / "whole", config, scenarios)
    _, without = run(tmp_path / "without", tiny_config, scenarios)
    assert all(torch.equal(a, b) for a, b in zip(weights, without, strict=True))
    rows = whole.read_metrics()
    assert [row.get("eval_score") for row in rows] == [None, 0.1, None, 0.7, None, 0.7]
    assert [row.get("eval_best") for row in rows] == [None, True, None, True, None, False]
    best = LanguageModel.load_adapter(config.model, whole.path / "best", device="cpu")
    for ours, then in zip(best.parameters(), weights_of[4], strict=True):
        assert torch.equal(ours, then)
    latest = whole.latest_checkpoint()
    assert latest is not None and latest.name == "final"

    # Stopped after step 5: step 4 was the best, and is so for the run that goes on. Stopped when
    # step 4 was measured and nothing of it saved, or best/ alone, it is measured again.
    for name, stopped, latest in (("five", 5, 4), ("told", 4, 2), ("best", "checkpoint-4", 2)):
        cut, *_ = evaluated_run(tmp_path / name, config, scenarios, stop_after=stopped)
        assert cut.latest_checkpoint() == cut.path / f"checkpoint-{latest}"
        kept = json.loads((cut.path / "best" / "COMPLETE").read_bytes())
        assert kept["step"] == (2 if name == "told" else 4)
        resumed, again, _ = evaluated_run(tmp_path / name, config, scenarios)
        assert without_seconds(resumed) == without_seconds(whole)
        assert all(torch.equal(a, b) for a, b in zip(weights, again, strict=True))
        best = LanguageModel.load_adapter(config.model, resumed.path / "best", device="cpu")
        for ours, then in zip(best.parameters(), weights_of[4], strict=True):
            assert torch.equal(ours, then)


def test_a_measurement_that_fails_saves_no_step_that_was_not(
    tmp_path, tiny_config, scenarios
) -> None:
    # The step has moved the weights by then: saved as the step before, it would be done twice.
    config = tiny_config.model_copy(update={"eval_steps": 3, "save_steps": 20})
    whole, weights = run(tmp_path / "whole", config, scenarios, evaluate=lambda label: 0.5)

    def fails(label: str) -> float:
        raise RewardError("the judge is away")

    with pytest.raises(RewardError, match="judge"):
        run(tmp_path / "cut", config, scenarios, evaluate=fails)
    resumed, again = run(tmp_path / "cut", config, scenarios, evaluate=lambda label: 0.5)
    assert without_seconds(resumed) == without_seconds(whole)
    assert all(torch.equal(a, b) for a, b in zip(weights, again, strict=True))


def test_the_best_of_nothing_is_refused(tmp_path, tiny_config, scenarios) -> None:
    config = tiny_config.model_copy(update={"eval_steps": 2})
    with pytest.raises(BadInput, match="eval_steps=2 measures held-out data, and nothing is held"):
        run(tmp_path / "run", config, scenarios)


@pytest.mark.slow
def test_minibatches_and_stop_texts_resume_to_the_bit(tmp_path, tiny_config, scenarios) -> None:
    changes = {"minibatches": 2, "num_iterations": 2, "stop": ["a"], "save_steps": 3}
    config = TrainConfig.model_validate(tiny_config.model_dump(exclude_defaults=True) | changes)
    whole, weights = run(tmp_path / "whole", config, scenarios)
    calls = []

    def dies(prompts, completions, **columns):
        calls.append(None)
        if len(calls) == 5:
            raise RuntimeError("the plug was pulled")
        return share_of_low_bytes(prompts, completions)

    with pytest.raises(MemogradError, match="plug"):
        run(tmp_path / "cut", config, scenarios, [WeightedReward("low", dies)])
    resumed, resumed_weights = run(tmp_path / "cut", config, scenarios)
    assert without_seconds(resumed) == without_seconds(whole)
    assert all(torch.equal(a, b) for a, b in zip(weights, resumed_weights, strict=True))
