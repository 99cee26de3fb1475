"""memory-ops from end to end: train a policy over memory operations, measure it on other lives.

    run = train(OperationsConfig())            a run folder; run/final is what Memory.open takes
    evaluate(run)                              the table of methods, on held-out forms

Invariant: a run that was stopped and resumed gives the metrics and the weights of the run that
never stopped, to the bit on a CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from memograd.errors import BadInput, Stopped
from memograd.evaluation import plot_curves
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.stopping import stop_request
from memograd.memory.embedders import Embedder
from memograd.memory.manager.trained.files import load_head, save_head
from memograd.memory.manager.trained.network import Shape
from memograd.tasks.base.progress import training_progress
from memograd.tasks.memory_ops.answerability import Standard
from memograd.tasks.memory_ops.learning.dqn import DQNMemoryTrainer
from memograd.tasks.memory_ops.learning.experience import Decisions, collect
from memograd.tasks.memory_ops.learning.head import OperationHead
from memograd.tasks.memory_ops.learning.ppo import PPOMemoryTrainer
from memograd.tasks.memory_ops.learning.reinforce import ReinforceMemoryTrainer
from memograd.tasks.memory_ops.learning.supervised import SupervisedMemoryTrainer
from memograd.tasks.memory_ops.learning.trainer import GRPOMemoryTrainer
from memograd.tasks.memory_ops.learning.trajectory import TrajectoryMemoryTrainer
from memograd.tasks.memory_ops.logs import (
    evaluation_logs,
    fingerprint,
    open_embedder,
    stored_operations,
    training_logs,
)
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs
from memograd.tasks.memory_ops.measure import measure_head, report
from memograd.tasks.memory_ops.mem_alpha import mem_alpha_outcome
from memograd.tasks.memory_ops.rewards import (
    OperationReward,
    code_fingerprint,
    reward_of,
    with_absolute_file,
)
from memograd.tasks.memory_ops.settings import OperationsConfig
from memograd.tasks.memory_ops.walk import Walk

TASK = "memory-ops"
STATE_FILE = "trainer_state.pt"
TRAINERS: dict[str, type[GRPOMemoryTrainer]] = {
    "grpo": GRPOMemoryTrainer,
    "reinforce": ReinforceMemoryTrainer,
    "ppo": PPOMemoryTrainer,
    "dqn": DQNMemoryTrainer,
    "supervised": SupervisedMemoryTrainer,
}

console = Console(markup=False, highlight=False, soft_wrap=True)


def train(
    config: OperationsConfig,
    *,
    trainer_class: type[GRPOMemoryTrainer] | None = None,
    embedder: Embedder | None = None,
) -> Path:
    """Train a head and measure it beside the baselines; returns the run folder.

    trainer_class: an algorithm of your own; by default the one that the settings name. embedder: by
    default the one that the settings name, with a cache on disk. With `config.resume`, the run in
    that folder goes on from its last complete checkpoint.

    Raises:
        BadInput: settings or data cannot be used, or the data of a resumed run have changed.
        Stopped: a signal came; a checkpoint was written.
    """
    began: RunFolder | None = None
    if config.resume is not None:
        began = RunFolder.open(config.resume)
        if began.task != TASK:
            raise BadInput(f"{began.path} is a run of {began.task or 'another task'}, not {TASK}.")
        config = _resumed(config, began)
    reward = reward_of(config)
    logs, held_out = training_logs(config), evaluation_logs(config)
    embedder = embedder or open_embedder(config.embedder)
    head = _starting_head(config, embedder.name, embedder.dimension)
    run = began or _new_run(config)
    with run.lock():
        _check_data(run, fingerprint(logs), code_fingerprint(reward))
        console.print(f"embedding {len(logs)} logs to train on, {len(held_out)} to measure on")
        material = embed_logs(logs, embedder, view=config.view)
        unseen = embed_logs(held_out, embedder, view=config.view)
        trainer = (trainer_class or _trainer_of(config))(head, config)
        checkpoint = run.latest_checkpoint() if began else None
        if checkpoint is not None:
            trainer.load_state_dict(torch.load(checkpoint / STATE_FILE, weights_only=True))
            console.print(f"going on after step {trainer.step} ({checkpoint.name})")
        if began is not None:
            run.truncate_metrics(trainer.step)
        _train_in(run, config, trainer, head, material, embedder.name, reward)
        plot_curves(run.metrics_path, run.path / "curves.png")
        final = load_head(run.path / "final")
        report(measure_head(final, material, unseen, config, reward), run.path, console)
    return run.path


def head_trainer(config: OperationsConfig, head: OperationHead) -> GRPOMemoryTrainer:
    """The trainer that the settings name, for a network of one's own too."""
    return _trainer_of(config)(head, config)


def one_step(
    trainer: GRPOMemoryTrainer,
    material: list[EmbeddedLog],
    config: OperationsConfig,
    reward: OperationReward | None = None,
) -> tuple[Decisions, dict[str, float], dict[str, float]]:
    """Walk through the logs of the trainer's next step and learn from them.

    reward: of single operations; by default what the settings name, loaded anew. Returns the
    decisions, what was measured and the seconds by phase.
    """
    numbers = logs_of_step(len(material), trainer.step + 1, config)
    by_outcome = config.credit != "delta_qa"
    walks_each = config.num_generations if by_outcome else 1
    standard = standard_of(config)
    reward = reward or reward_of(config)
    outcome = mem_alpha_outcome if config.credit == "mem_alpha_original" else None
    began = time.perf_counter()
    walks = [
        Walk(material[number], standard, asks=by_outcome, outcome=outcome, reward=reward)
        for number in numbers
        for _ in range(walks_each)
    ]
    decisions = collect(trainer, walks, by_outcome=by_outcome)
    walked = time.perf_counter()
    if trainer.step == 0 and config.policy is None and isinstance(trainer.network, OperationHead):
        # A fresh head draws all actions alike whatever the scales, so what was drawn stays right.
        trainer.network.fit_scales(decisions.states)
    measured = trainer.learn(decisions)
    seconds = {
        "walk": round(walked - began, 4),
        "learn": round(time.perf_counter() - walked, 4),
    }
    return decisions, measured, seconds


def logs_of_step(count: int, step: int, config: OperationsConfig) -> list[int]:
    """Numbers of the logs of a step: every log once before any comes again, shuffled by seed."""
    first = (step - 1) * config.logs_per_step
    numbers = []
    for position in range(first, first + config.logs_per_step):
        order = np.random.default_rng((config.seed, position // count)).permutation(count)
        numbers.append(int(order[position % count]))
    return numbers


def standard_of(config: OperationsConfig) -> Standard:
    """How the settings judge answers."""
    return Standard(config.top_k, config.misled_cost, config.token_cost, config.change_cost)


def _train_in(
    run: RunFolder,
    config: OperationsConfig,
    trainer: GRPOMemoryTrainer,
    head: OperationHead,
    material: list[EmbeddedLog],
    embedder: str,
    reward: OperationReward | None,
) -> None:
    def write(folder: Path) -> None:
        save_head(head.trained(embedder, {"run": run.path.name, "step": trainer.step}), folder)
        torch.save(trainer.state_dict(), folder / STATE_FILE)

    describe: Callable[[dict[str, Any]], str] = lambda metrics: (  # noqa: E731
        f"reward {metrics['reward_mean']:+.3f}  loss {metrics['loss']:+.4f}"
    )
    with (
        stop_request() as stop,
        training_progress(console, total=config.steps, describe=describe) as on_step,
    ):
        while trainer.step < config.steps:
            decisions, measured, seconds = one_step(trainer, material, config, reward)
            metrics = step_metrics(trainer.step, decisions, measured, seconds)
            run.append_metrics(metrics)
            on_step(metrics)
            if trainer.step == config.steps:
                break
            if stop.signal or trainer.step % config.save_steps == 0:
                run.save_checkpoint(f"checkpoint-{trainer.step}", write, step=trainer.step)
            if stop.signal:
                raise Stopped(
                    f"stopped by a signal after step {trainer.step} of {config.steps}; go on with "
                    f"resume={run.path}",
                    stop.signal,
                )
        run.save_checkpoint("final", write, step=trainer.step)


def step_metrics(
    step: int, decisions: Decisions, measured: dict[str, float], seconds: dict[str, float]
) -> dict[str, Any]:
    """One line of `metrics.jsonl`: rewards of what was tried, and what the algorithm measured."""
    by_outcome = len(decisions.outcomes_W) > 0
    rewards = decisions.outcomes_W if by_outcome else decisions.rewards_NG
    varied = float((np.ptp(decisions.rewards_NG, axis=1) == 0).mean())
    return {
        "step": step,
        "reward_mean": float(rewards.mean()),
        "reward_std": float(rewards.std()),
        "decisions": len(decisions),
        "zero_variance_fraction": varied,
        **measured,
        "seconds": seconds,
    }


def _trainer_of(config: OperationsConfig) -> type[GRPOMemoryTrainer]:
    return TrajectoryMemoryTrainer if config.credit != "delta_qa" else TRAINERS[config.algorithm]


def _starting_head(config: OperationsConfig, embedder: str, dimension: int) -> OperationHead:
    if config.policy is None:
        shape = Shape(dimension, config.width, config.layers, config.heads)
        return OperationHead(shape, seed=config.seed)
    head = load_head(config.policy)
    if (head.embedder, head.shape.dimension) != (embedder, dimension):
        raise BadInput(
            f"The head in {config.policy} reads vectors of {head.embedder!r}, but the setting"
            f" embedder is {embedder!r}: set embedder={head.embedder}."
        )
    return OperationHead.from_trained(head)


def _new_run(config: OperationsConfig) -> RunFolder:
    out = config.out or Path("runs") / f"{TASK}-{time.strftime('%Y%m%d-%H%M%S')}"
    RunFolder.check_free(out)
    return RunFolder.create(out, _located(config).model_dump_json(indent=2), task=TASK)


def _located(config: OperationsConfig) -> OperationsConfig:
    """The same settings for any working directory."""
    return config.model_copy(
        update={
            "data": [path.resolve() for path in config.data],
            "eval_data": [path.resolve() for path in config.eval_data],
            "policy": config.policy.resolve() if config.policy else None,
            "reward": with_absolute_file(config.reward),
        }
    )


def _resumed(given: OperationsConfig, began: RunFolder) -> OperationsConfig:
    """The settings that the run began with; nothing given beside `resume` may differ."""
    stored = stored_operations(began)
    located = _located(given)
    others = sorted(
        name
        for name in given.model_fields_set - {"resume"}
        if getattr(located, name) != getattr(stored, name)
    )
    if others:
        raise BadInput(
            f"{began.path} goes on with the settings that it began with, so {', '.join(others)}"
            f" cannot be changed: leave it out, or begin a new run with policy={began.path}."
        )
    return stored


def _check_data(run: RunFolder, now: str, reward: str | None) -> None:
    stored = run.read_data()
    if stored is None:
        run.write_data({"sha256": now, "reward_sha256": reward})
    elif stored.get("reward_sha256") != reward:
        raise BadInput(
            f"The file of the reward changed since {run.path} began: resume with the file as it"
            " was, or begin a new run with out=FOLDER."
        )
    elif stored.get("sha256") != now:
        raise BadInput(
            f"The data changed since {run.path} began: resume with the data as it was, or begin a"
            " new run with out=FOLDER."
        )
