"""Algorithms and credits: each is trained on generated logs and measured under every budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from memograd.evaluation.plots import (
    BLUE,
    GREEN,
    GRID,
    INK,
    ORANGE,
    new_figure,
    save_figure,
)
from memograd.memory.embedders import Embedder
from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.network import Shape
from memograd.tasks.memory_ops.baselines.deciders import ByHead
from memograd.tasks.memory_ops.baselines.measure import MeasuredMethod, measure
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.learning.head import OperationHead
from memograd.tasks.memory_ops.material import (
    EmbeddedLog,
    embed_logs,
    evaluation_logs,
    training_logs,
)
from memograd.tasks.memory_ops.measure import BUDGETS, budget_name, methods_of
from memograd.tasks.memory_ops.recipe import head_trainer, one_step
from memograd.tasks.memory_ops.settings import OperationsConfig
from policies_bench.results import KS, Results, Row, mean

ALGORITHMS = ("grpo", "supervised", "reinforce", "ppo", "dqn")
CREDITS = ("trajectory", "mem_alpha_original")
CURVE_LOGS, CURVE_POINTS = 4, 8


def trained_head(
    config: OperationsConfig,
    material: list[EmbeddedLog],
    watched: Sequence[EmbeddedLog],
    embedder: Embedder,
) -> tuple[TrainedHead, list[Row]]:
    """The head after training, and on the way the reward and the answerability of a few logs."""
    torch.manual_seed(config.seed)
    shape = Shape(embedder.dimension, config.width, config.layers, config.heads)
    head = OperationHead(shape, seed=config.seed)
    trainer = head_trainer(config, head)
    every = max(1, config.steps // CURVE_POINTS)
    curve: list[Row] = []
    decided = 0
    while trainer.step < config.steps:
        decisions, _, _ = one_step(trainer, material, config)
        decided += len(decisions)
        by_outcome = len(decisions.outcomes_W) > 0
        reward = (decisions.outcomes_W if by_outcome else decisions.rewards_NG).mean()
        if watched and (trainer.step % every == 0 or trainer.step == config.steps):
            now = head.trained(embedder.name, {})
            asked = measure("now", lambda now=now: ByHead(now), watched, AnswerStandard.of(config))
            point = {"step": trainer.step, "decisions": decided, "reward": float(reward)}
            curve.append({**point, "answerable": mean(asked.scores)})
    return head.trained(embedder.name, {"seed": config.seed}), curve


def summary_of(measured: MeasuredMethod) -> Row:
    """The means that stand in the table."""
    weights, hits = measured.balance(), measured.hits()
    balanced = sum(w * hit for w, hit in zip(weights, hits, strict=True)) / sum(weights)
    return {
        "answerable": mean(measured.scores),
        **{f"recall@{k}": mean([one.recalls[k] for one in measured.needing]) for k in KS},
        "misled": mean([float(one.asked.misled) for one in measured.misleadable] or [0.0]),
        "operations": mean(hits),
        "balanced": round(balanced, 4),
        "items": round(measured.items, 1),
        "tokens": round(measured.tokens, 1),
        "ms_a_decision": round(1e3 * measured.seconds, 3),
    }


def under_budgets(make: Any, logs: Sequence[EmbeddedLog], config: OperationsConfig) -> Row:
    """What a decider reaches under each budget."""
    return {
        budget_name(share): summary_of(
            measure("x", make, logs, AnswerStandard.of(config), budget_share=share, ks=KS)
        )
        for share in BUDGETS
    }


def config_of(what: str, seed: int, base: OperationsConfig) -> OperationsConfig:
    """The settings of an algorithm or a credit; the rest as given."""
    given: Row = {"seed": seed}
    if what in CREDITS:
        given |= {"algorithm": "grpo", "credit": what, "logs_per_step": 1}
    else:
        given |= {"algorithm": what, "credit": "delta_qa"}
    return OperationsConfig.model_validate({**base.model_dump(), **given})


def learn_and_measure(
    wanted: Sequence[str], seeds: int, base: OperationsConfig, results: Results, embedder: Embedder
) -> None:
    """Train and measure each on generated logs; the baselines once."""
    unseen = embed_logs(evaluation_logs(base), embedder, view=base.view)
    tuning = embed_logs(training_logs(base)[:4], embedder, view=base.view)
    for name, make in methods_of({}, tuning, AnswerStandard.of(base)).items():
        results.once(name, 0, lambda make=make: under_budgets(make, unseen, base))
    for seed in range(seeds):
        for what in wanted:

            def work(what: str = what, seed: int = seed) -> Row:
                config = config_of(what, seed, base)
                material = embed_logs(training_logs(config), embedder, view=config.view)
                head, curve = trained_head(config, material, unseen[:CURVE_LOGS], embedder)
                return {**under_budgets(lambda: ByHead(head), unseen, config), "curve": curve}

            results.once(what, seed, work)


def plot_credit(results: Results, out_png: Path) -> None:
    """Answerability over decisions for each credit: mean and range over seeds."""
    figure = new_figure(width=7.0)
    axes = figure.subplots()
    names = {"grpo": "delta_qa, same state", "trajectory": "one reward a walk"}
    names["mem_alpha_original"] = "Mem-alpha's reward a walk"
    for (what, label), colour in zip(names.items(), (BLUE, ORANGE, GREEN), strict=True):
        curves = [row["curve"] for row in results.rows if row["what"] == what]
        if not curves:
            continue
        decisions = [point["decisions"] for point in curves[0]]
        scores = np.array([[point["answerable"] for point in curve] for curve in curves])
        axes.plot(decisions, scores.mean(axis=0), color=colour, label=f"{label} ({len(curves)})")
        low, high = scores.min(axis=0), scores.max(axis=0)
        axes.fill_between(decisions, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("decisions in training", color=INK)
    axes.set_title("Answerable questions on held-out logs (seeds)", loc="left", color=INK)
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.legend(frameon=False, fontsize=9)
    save_figure(figure, out_png)
