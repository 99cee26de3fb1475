"""Trained on generated logs and one LoCoMo conversation; which half of another is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memograd.data.lifelog import Lifelog
from memograd.memory.embedders import Embedder
from memograd.memory.manager.trained.files import TrainedHead
from memograd.tasks.memory_ops.baselines.deciders import ByHead
from memograd.tasks.memory_ops.baselines.keep_half import compare_halves, half_methods
from memograd.tasks.memory_ops.baselines.measure import measure
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs, logs_of_files, training_logs
from memograd.tasks.memory_ops.settings import OperationsConfig
from policies_bench.learning import config_of, trained_head
from policies_bench.results import KS, Results, Row, mean

REAL_COPIES = 8  # of conv-26 among the generated logs, so that it is met in every few steps


def transfer(
    locomo: Path, seeds: int, base: OperationsConfig, results: Results, embedder: Embedder
) -> None:
    """Trained on generated logs and conv-26; which half of conv-30 is kept."""
    real = {log.id: log for log in logs_of_files([locomo])}
    [unseen] = embed_logs([real["conv-30"]], embedder)
    untrained = _halves({}, [unseen])
    for name in next(iter(untrained.values())):
        found = {unit: halves[name] for unit, halves in untrained.items()}
        results.once(f"transfer: {name}", 0, lambda found=found: dict(found))
    for seed in range(seeds):
        for what in ("grpo", "supervised"):

            def work(what: str = what, seed: int = seed) -> Row:
                config = config_of(what, seed, base)
                logs: list[Lifelog] = training_logs(config)
                if what != "supervised":  # conv-26 has no gold operations
                    logs = [*logs, *[real["conv-26"]] * REAL_COPIES]
                material = embed_logs(logs, embedder, view="turns")
                head, _ = trained_head(config, material, [], embedder)
                walked = measure(
                    *("x", lambda: ByHead(head), [unseen], AnswerStandard.of(config)),
                    budget_share=0.5,
                    ks=KS,
                )
                halves = _halves({"head": head}, [unseen])
                kept = {unit: found["head, half"] for unit, found in halves.items()}
                memory = {
                    f"recall@{k}": mean([one.recalls[k] for one in walked.needing]) for k in KS
                }
                return {**kept, "memory of 50%": {**memory, "tokens": walked.tokens}}

            results.once(f"transfer: {what}", seed, work)


def _halves(heads: dict[str, TrainedHead], logs: Sequence[EmbeddedLog]) -> Row:
    return {
        f"half of {unit}": {
            one.name: {
                **{mode: mean(found) for mode, found in one.recalls.items()},
                "tokens": one.tokens,
            }
            for one in compare_halves(logs, half_methods(heads), unit=unit)
        }
        for unit in ("tokens", "turns")
    }
