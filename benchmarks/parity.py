"""Do memograd and TRL's GRPOTrainer learn the same from the same? Curves by seed, time a step.

    python benchmarks/parity.py --seeds 0,1,2 --steps 15 --out runs/parity --plot parity.png

Both sides train the packaged SmolLM2 to answer questions with digits only. What is equal: base
weights (fp32), the adapter's initial weights, prompts and their order, the reward function, group
size, temperature, completion length, GRPO's loss and advantage, no KL term, AdamW, a constant
learning rate, clipping, and the linear layers (ours are faster on some processors: TRL gets them
too). What differs: the samplers use up random numbers differently, so the curves of one seed agree
as two draws of one experiment do, not to the bit. `--same-answers 0` takes that difference away for
a seed: TRL learns, memograd's sampler answers, and the curve is memograd's own until rounding makes
a first answer differ.

One JSON line a run, then a summary: the mean reward of the last third of the steps and of all of
them, the differences (ours - TRL's) with 95% bootstrap intervals, and seconds and CPU seconds: the
median of a step while answers are still long (steps 2 to 5: later, answers of the two sides end at
different lengths), and the sum up to the last step's end, start-up checks included, loading the
model not. Runs are kept in `--out`; those that are there with the same settings are read, not
repeated.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from matplotlib.figure import Figure
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from memograd.config import LoraConfig, TrainConfig
from memograd.grpo import RunFolder
from memograd.grpo.batch import scenarios_of_step
from memograd.grpo.trainer import Stage, Trainer
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import PACKAGED_MODEL
from memograd.rewards import WeightedReward
from memograd.rollout.types import Message, Scenario

COUNTED = (
    "legs has a spider",
    "days are in a week",
    "months are in a year",
    "hours are in a day",
    "wheels has a car",
    "sides has a triangle",
    "letters are in the alphabet",
    "minutes are in an hour",
    "fingers has a hand",
    "players are in a football team",
    "strings has a violin",
    "planets are in the solar system",
    "cents are in a dollar",
    "legs has a dog",
    "corners has a square",
    "seasons are in a year",
)
SIDES = ("trl", "memograd")
SAME_ANSWERS = "trl_our_answers"
COLOURS = {"trl": "tab:orange", "memograd": "tab:blue"}
LABELS = {"trl": "TRL GRPOTrainer", "memograd": "memograd"}


def digits_only(completions: list[list[Message]], **_columns: Any) -> list[float]:
    """The share of an answer's characters that are digits; 0 for an empty answer."""
    texts = [messages[-1]["content"].strip() for messages in completions]
    return [sum(sign.isdigit() for sign in text) / len(text) if text else 0.0 for text in texts]


class Progress:
    """What one run did by step: mean reward, seconds, CPU seconds."""

    def __init__(self) -> None:
        self.rewards: list[float] = []
        self.seconds: list[float] = []
        self.cpu_seconds: list[float] = []
        self._last = (time.perf_counter(), time.process_time())

    def reward(self, completions: list[list[Message]], **columns: Any) -> list[float]:
        """The task's reward, noted."""
        values = digits_only(completions, **columns)
        self.rewards.append(statistics.fmean(values))
        return values

    def step_ended(self) -> None:
        """Note what time has passed since the end of the step before."""
        now = (time.perf_counter(), time.process_time())
        self.seconds.append(now[0] - self._last[0])
        self.cpu_seconds.append(now[1] - self._last[1])
        self._last = now


def train_config(settings: dict[str, Any], seed: int) -> TrainConfig:
    """The settings of one run; TRL is set up from the same object."""
    return TrainConfig(
        **settings,
        seed=seed,
        device="cpu",
        beta=0.0,
        warmup_steps=0,
        save_steps=settings["steps"],
        rollout_log_steps=5,
    )


def all_scenarios() -> list[Scenario]:
    """The prompts, as chats."""
    system = Message(role="system", content="Answer with one number, in digits.")
    return [
        Scenario(name, (system, Message(role="user", content=f"How many {name}?")), {})
        for name in COUNTED
    ]


def run_memograd(policy: LanguageModel, config: TrainConfig, out: Path) -> Progress:
    """One run of ours, from sampling to checkpoint."""
    run = RunFolder.create(out, config.model_dump_json())
    progress = Progress()
    Trainer(
        policy,
        all_scenarios(),
        [WeightedReward("digits_only", progress.reward, reads_messages=True)],
        config,
        Stage(run, on_step=lambda _metrics: progress.step_ended()),
    ).train()
    return progress


def run_trl(
    policy: LanguageModel, config: TrainConfig, out: Path, our_answers: bool = False
) -> Progress:
    """One run of TRL over the same adapter on the same model, with the same settings.

    With `our_answers`, memograd's sampler draws from the policy that TRL trains, from the random
    numbers that memograd's own run of this seed has.
    """
    progress = Progress()
    generator = torch.Generator().manual_seed(config.seed)

    def draw(prompts: list[list[Message]], _trainer: GRPOTrainer) -> dict[str, Any]:
        encoded = [policy.encode(prompt) for prompt in prompts]
        groups = policy.sample(
            encoded[:: config.num_generations],
            num_generations=config.num_generations,
            temperature=config.temperature,
            max_completion_length=config.max_completion_length,
            generator=generator,
        )
        answers = [
            list(group.tree.branch(row)) for group in groups for row in range(len(group.texts))
        ]
        return {"prompt_ids": encoded, "completion_ids": answers, "logprobs": None}

    order = [
        [dict(message) for message in scenario.messages]
        for step in range(1, config.steps + 1)
        for scenario in scenarios_of_step(
            all_scenarios(), step=step, count=config.prompts_per_step, seed=config.seed
        )
    ]
    policy.tokenizer.padding_side = "left"

    class Clock(TrainerCallback):
        def on_step_end(self, *_given: Any, **_more: Any) -> None:
            progress.step_ended()

    trainer = GRPOTrainer(
        model=policy.peft_model,
        reward_funcs=progress.reward,
        args=GRPOConfig(
            output_dir=str(out),
            use_cpu=True,
            bf16=False,
            seed=config.seed,
            max_steps=config.steps,
            shuffle_dataset=False,
            per_device_train_batch_size=config.prompts_per_step * config.num_generations,
            num_generations=config.num_generations,
            max_completion_length=config.max_completion_length,
            temperature=config.temperature,
            beta=config.beta,
            use_bias_correction_kl=False,
            epsilon=config.epsilon,
            loss_type="grpo",
            scale_rewards="group",
            optim="adamw_torch",
            learning_rate=config.learning_rate,
            lr_scheduler_type="constant",
            weight_decay=config.weight_decay,
            max_grad_norm=config.max_grad_norm,
            gradient_checkpointing=False,
            disable_tqdm=True,
            save_strategy="no",
            report_to=[],
        ),
        train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in order]),
        processing_class=policy.tokenizer,
        callbacks=[Clock()],
        rollout_func=draw if our_answers else None,
    )
    trainer.remove_callback(PrinterCallback)  # whose lines are no JSON
    trainer.train()
    return progress


RUN: dict[str, Callable[[LanguageModel, TrainConfig, Path], Progress]] = {
    "memograd": run_memograd,
    "trl": run_trl,
    SAME_ANSWERS: partial(run_trl, our_answers=True),
}


def measured(side: str, seed: int, settings: dict[str, Any], out: Path) -> dict[str, Any]:
    """One run's line, from `out` if it is there already."""
    kept = out / f"{side}-{seed}.json"
    if kept.exists():
        line: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        if line["settings"] != settings:
            raise SystemExit(f"{kept} was made with other settings; choose another --out")
        return line
    config = train_config(settings, seed)
    policy = LanguageModel.load(config.model, lora=config.lora, device="cpu", seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        progress = RUN[side](policy, config, Path(folder) / "run")
    line = {
        "bench": "parity",
        "side": side,
        "seed": seed,
        "settings": settings,
        "rewards": _rounded(progress.rewards),
        "seconds": _rounded(progress.seconds),
        "cpu_seconds": _rounded(progress.cpu_seconds),
    }
    kept.write_text(json.dumps(line), encoding="utf-8")
    return line


def last_third(steps: int) -> int:
    """How many steps the last third of a run has."""
    return max(1, steps // 3)


def difference(ours_SN: np.ndarray, theirs_SN: np.ndarray) -> dict[str, float]:
    """Mean of ours - TRL's rewards [seeds, steps] with a 95% bootstrap interval.

    Both sides see the same prompts at a step, so steps are paired. Seeds are drawn with
    replacement, then steps within each: the interval holds what differs between seeds and between
    steps. With three seeds it is rough.
    """
    gaps_SN = ours_SN - theirs_SN
    seeds, steps = gaps_SN.shape
    rng = np.random.default_rng(0)
    means = []
    for _ in range(10_000):
        chosen_S1 = rng.integers(seeds, size=(seeds, 1))
        means.append(gaps_SN[chosen_S1, rng.integers(steps, size=(seeds, steps))].mean())
    low, high = np.quantile(means, [0.025, 0.975])
    return dict(zip(("mean", "low", "high"), _rounded([gaps_SN.mean(), low, high]), strict=True))


def summary(lines: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Both sides' figures in one line; ratios are TRL's time over ours."""
    rewards = {side: np.array([line["rewards"] for line in lines[side]]) for side in SIDES}
    third = last_third(rewards["trl"].shape[1])
    found: dict[str, Any] = {
        "bench": "parity",
        "summary": True,
        "seeds": [line["seed"] for line in lines["trl"]],
        "last_third": {side: _rounded(rewards[side][:, -third:].mean(axis=1)) for side in SIDES},
        "last_third_difference": difference(
            rewards["memograd"][:, -third:], rewards["trl"][:, -third:]
        ),
        "all_steps": {side: _rounded(rewards[side].mean(axis=1)) for side in SIDES},
        "all_steps_difference": difference(rewards["memograd"], rewards["trl"]),
    }
    for measure in ("seconds", "cpu_seconds"):
        step, run = (
            {side: round(typical([line[measure] for line in lines[side]]), 2) for side in SIDES}
            for typical in (_early_step, _whole_run)
        )
        found |= {
            f"{measure}_a_step": step,
            f"{measure}_a_step_ratio": round(step["trl"] / step["memograd"], 2),
            f"{measure}_a_run": run,
            f"{measure}_a_run_ratio": round(run["trl"] / run["memograd"], 2),
        }
    if lines.get(SAME_ANSWERS):
        found["same_answers"] = [
            same_answers(line, lines["memograd"]) for line in lines[SAME_ANSWERS]
        ]
    return {**found, "peer_name": "TRL GRPOTrainer"}


def same_answers(line: dict[str, Any], ours: list[dict[str, Any]]) -> dict[str, Any]:
    """In how many steps, from the first, TRL on our answers has our mean reward."""
    (own,) = [other["rewards"] for other in ours if other["seed"] == line["seed"]]
    differs = [a != b for a, b in zip(line["rewards"], own, strict=True)]
    equal = differs.index(True) if True in differs else len(own)
    return {"seed": line["seed"], "equal_steps": equal, "steps": len(own)}


def _early_step(times: list[list[float]]) -> float:
    return statistics.median(value for run in times for value in run[1:5])


def _whole_run(times: list[list[float]]) -> float:
    return statistics.fmean(sum(run) for run in times)


def plot(lines: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Reward by step, and by CPU seconds: a thin line a seed, a thick one for their mean."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    by_step, by_time = figure.subplots(1, 2, sharey=True)
    for side in SIDES:
        colour = COLOURS[side]
        rewards_SN = np.array([line["rewards"] for line in lines[side]])
        times_SN = np.cumsum([line["cpu_seconds"] for line in lines[side]], axis=1)
        for rewards_N, times_N in zip(rewards_SN, times_SN, strict=True):
            by_step.plot(range(1, len(rewards_N) + 1), rewards_N, color=colour, alpha=0.3, lw=1)
            by_time.plot(times_N, rewards_N, color=colour, alpha=0.3, lw=1)
        mean_N = rewards_SN.mean(axis=0)
        by_step.plot(range(1, len(mean_N) + 1), mean_N, color=colour, lw=2.5, label=LABELS[side])
        by_time.plot(times_SN.mean(axis=0), mean_N, color=colour, lw=2.5, label=LABELS[side])
    by_step.set(xlabel="step", ylabel="mean reward (share of digits in the answer)")
    by_step.set_title("GRPO with the same settings, by step (thin: one seed)")
    by_time.set(xlabel="CPU seconds (one core)")
    by_time.set_title("The same runs, by the time they took")
    by_step.legend(loc="lower right")
    for axes in (by_step, by_time):
        axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(float(value), 4) for value in values]


def main() -> None:
    """Run both sides seed by seed, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps the runs")
    parser.add_argument("--plot", type=Path, help="PNG to draw")
    parser.add_argument(
        "--same-answers", default="", help="seeds that TRL learns on our answers too"
    )
    parser.add_argument("--prompts", type=int, default=3)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--completion", type=int, default=8)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--learning-rate", type=float, default=4e-4)
    parser.add_argument("--model", default=PACKAGED_MODEL)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    arguments.out.mkdir(parents=True, exist_ok=True)
    settings = {
        "model": arguments.model,
        "lora": LoraConfig().model_dump(),
        "steps": arguments.steps,
        "prompts_per_step": arguments.prompts,
        "num_generations": arguments.group,
        "max_completion_length": arguments.completion,
        "temperature": arguments.temperature,
        "learning_rate": arguments.learning_rate,
    }
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    runs = [
        (side, seed)
        for number, seed in enumerate(seeds)
        for side in (SIDES if number % 2 == 0 else SIDES[::-1])
    ]
    repeated = [int(seed) for seed in arguments.same_answers.split(",") if seed]
    if not set(repeated) <= set(seeds):
        parser.error("--same-answers takes seeds that are in --seeds")
    runs += [(SAME_ANSWERS, seed) for seed in repeated]
    lines: dict[str, list[dict[str, Any]]] = {side: [] for side in RUN}
    for side, seed in runs:
        lines[side].append(measured(side, seed, settings, arguments.out))
        print(json.dumps(lines[side][-1]), flush=True)
    print(json.dumps(summary(lines)))
    if arguments.plot:
        plot(lines, arguments.plot)


if __name__ == "__main__":
    main()
