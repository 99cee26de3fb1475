"""The demonstration: train a memory policy in about two minutes, show before and after.

Lives that it never saw, told in other words by people with other names: every method keeps a memory
of them with its own decisions and is asked the same questions. Invariant: what is shown was
measured in this very run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from memograd.memory.embedders import Embedder
from memograd.memory.manager.trained.files import TrainedHead, load_head
from memograd.memory.manager.trained.observation import operation_of
from memograd.memory.records.operations import MemoryOp, OpKind
from memograd.tasks.memory_ops.baselines.deciders import ByHead
from memograd.tasks.memory_ops.baselines.measure import MeasuredMethod, measure
from memograd.tasks.memory_ops.learning.head import OperationHead
from memograd.tasks.memory_ops.logs import evaluation_logs, open_embedder, training_logs
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs
from memograd.tasks.memory_ops.measure import TRAINED, methods_of
from memograd.tasks.memory_ops.recipe import standard_of, train
from memograd.tasks.memory_ops.settings import OperationsConfig
from memograd.tasks.memory_ops.walk import Walk

DEMO: Final = OperationsConfig(logs=24, eval_logs=4, steps=40)
UNTRAINED: Final = "untrained head"
SHOWN: Final = 3
"""Examples of each operation."""

console = Console(markup=False, highlight=False, soft_wrap=True)


def demo(data: Path | None, steps: int | None, out: Path | None) -> Path:
    """Train on generated lives (or on those in `data`), measure on others; returns the run."""
    config = DEMO.model_copy(
        update={
            "data": [data] if data else [],
            "steps": steps or DEMO.steps,
            "out": out or Path("runs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}",
        }
    )
    embedder = open_embedder(config.embedder)
    run = train(config, embedder=embedder)
    show(run, config, embedder)
    console.print(
        "\nThe policy is what a memory uses:"
        f'\n  Memory.open("memories/", policy="{run}/final", embedder="{config.embedder}")'
        f"\n\nThe run's curves: {run / 'curves.png'}"
        f"\nTo look at the run in a browser: memograd serve --runs {run.parent}"
    )
    return run


def show(run: Path, config: OperationsConfig, embedder: Embedder) -> None:
    """Before and after beside the baselines, and what the trained head does, in words."""
    material = embed_logs(training_logs(config), embedder, view=config.view)
    unseen = embed_logs(evaluation_logs(config), embedder, view=config.view)
    trained = load_head(run / "final")
    fresh = OperationHead(trained.shape, seed=config.seed)
    untrained = fresh.trained(trained.embedder, {})
    standard = standard_of(config)
    methods = methods_of({UNTRAINED: untrained, TRAINED: trained}, material, standard)
    rows = [measure(name, make, unseen, standard) for name, make in methods.items()]
    console.print(_table(rows))
    for kind, examples in examples_of(trained, unseen, config).items():
        console.print(f"\n{kind}")
        for example in examples:
            console.print(f"  {example}")


def examples_of(
    head: TrainedHead, logs: Sequence[EmbeddedLog], config: OperationsConfig
) -> dict[OpKind, list[str]]:
    """Some decisions of the head on these logs, one sentence each; the last ones of each kind."""
    found: dict[OpKind, list[str]] = {kind: [] for kind in OpKind}
    for log in logs:
        walk, decider = Walk(log, standard_of(config), asks=False), ByHead(head)
        while not walk.over:
            action = decider.decide(walk)
            point = walk.point
            op = operation_of(action, point.fact, point.hits)
            found[op.kind].append(_in_words(op, walk))
            walk.take(action)
    return {kind: sentences[-SHOWN:] for kind, sentences in found.items()}


def _in_words(op: MemoryOp, walk: Walk) -> str:
    point = walk.point
    item = next((hit.record.text for hit in point.hits if hit.record.id == op.item_id), None)
    return point.fact.text if item is None else f"{point.fact.text}   instead of   {item}"


def _table(rows: Sequence[MeasuredMethod]) -> Table:
    table = Table(title="The same questions about the same unseen lives, asked of each memory")
    table.add_column("method", no_wrap=True)
    for name in ("answer %", "found %", "misled %", "right op %", "items"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.name,
            _percent(row.scores),
            _percent([one.asked.recall for one in row.needing]),
            _percent([float(one.asked.misled) for one in row.misleadable]),
            _percent(row.hits()),
            f"{row.items:.0f}",
            style="bold" if row.name == TRAINED else None,
        )
    return table


def _percent(values: Sequence[float]) -> str:
    return f"{100 * sum(values) / len(values):.1f}" if values else "-"
