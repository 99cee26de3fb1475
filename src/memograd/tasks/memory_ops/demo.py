"""The demonstration: train a memory policy in about two minutes, show before and after.

Lives that it never saw, told in other words by people with other names: every method keeps a memory
of them with its own decisions and is asked the same questions. One of those lives is also told to a
real memory, before and after training, to be looked at in a browser. Invariant: what is shown was
measured in this very run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from rich.table import Table

from memograd.data.record_files import as_lines
from memograd.evaluation.run_log import read_metrics
from memograd.grpo.run_folder import unnamed
from memograd.memory import Memory, RawTurn
from memograd.memory.embedders import Embedder
from memograd.memory.embedders.load import open_embedder
from memograd.memory.manager.trained.files import TrainedHead, load_head, save_head
from memograd.memory.manager.trained.observation import operation_of
from memograd.memory.reader.fact import Fact
from memograd.memory.records.operations import MemoryOp, OpKind
from memograd.tasks.base.progress import console
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
from memograd.tasks.memory_ops.measure import TRAINED, methods_of
from memograd.tasks.memory_ops.recipe import train
from memograd.tasks.memory_ops.settings import OperationsConfig
from memograd.tasks.memory_ops.walk import Walk

DEMO: Final = OperationsConfig(logs=24, eval_logs=4, steps=40)
UNTRAINED: Final = "untrained head"
SHOWN: Final = 3
"""Examples of each operation, and items that are found for a question."""
MEMORY: Final = "memory"
NOTHING: Final = "(nothing)"
BARS: Final = "▁▂▃▄▅▆▇█"


def demo(data: Path | None, steps: int | None, out: Path | None) -> Path:
    """Train on generated lives (or on those in `data`), measure on others; returns the run."""
    config = DEMO.model_copy(
        update={
            "data": [data] if data else [],
            "steps": steps or DEMO.steps,
            "out": out or unnamed("demo"),
        }
    )
    embedder = open_embedder(config.embedder)
    run = train(config, embedder=embedder)
    show(run, config, embedder)
    remember(run, config, embedder)
    console.print(
        f"\n{curve(run)}   all curves: {run / 'curves.png'}"
        "\n\nThe policy is what a memory uses:"
        f'\n  Memory.open("memories/", policy="{run}/final", embedder="{config.embedder}")'
        "\n\nWhat one unseen life left in a memory, why, and what training changed:"
        f"\n  memograd serve{'' if run.parent == Path('runs') else f' --runs {run.parent}'}"
        "\nor, where there is a memory of your own already:"
        f"\n  MEMOGRAD_EMBEDDER={config.embedder} MEMOGRAD_POLICY={run}/final \\"
        f"\n    memograd serve --path {run / MEMORY} --runs {run.parent}"
        "\nOpen the address that it prints; the run is at"
        f" http://127.0.0.1:8322/page/runs/{quote(run.name)}"
    )
    return run


def show(run: Path, config: OperationsConfig, embedder: Embedder) -> None:
    """Before and after beside the baselines, and what the trained head does, in words."""
    material = embed_logs(training_logs(config), embedder, view=config.view)
    unseen = embed_logs(evaluation_logs(config), embedder, view=config.view)
    trained = load_head(run / "final")
    fresh = OperationHead(trained.shape, seed=config.seed)
    untrained = fresh.trained(trained.embedder, {})
    standard = AnswerStandard.of(config)
    methods = methods_of({UNTRAINED: untrained, TRAINED: trained}, material, standard)
    rows = [measure(name, make, unseen, standard) for name, make in methods.items()]
    console.print(_table(rows))
    for kind, examples in examples_of(trained, unseen, config).items():
        console.print(f"\n{kind}")
        for example in examples:
            console.print(f"  {example}")


def remember(run: Path, config: OperationsConfig, embedder: Embedder) -> None:
    """Tell the first unseen life to a memory twice, under the untrained and the trained head.

    Both stand in the run's folder `memory`, each under a user of its own; what each finds first
    for the life's questions, asked when their time comes, is written beside as `answers.jsonl`.
    """
    [log, *_] = embed_logs(evaluation_logs(config)[:1], embedder, view=config.view)
    trained = load_head(run / "final")
    fresh = OperationHead(trained.shape, seed=config.seed).trained(trained.embedder, {})
    found: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        save_head(fresh, Path(folder) / "final")
        for name, policy in ((UNTRAINED, Path(folder) / "final"), (TRAINED, run / "final")):
            with Memory.open(
                run / MEMORY,
                embedder=embedder,
                reader=_AsToldIn(log),
                manager="rules",
                policy=policy,
                ranking="fusion",
            ) as memory:
                found[name] = _told(log, memory, f"{log.log.speakers[0]}, {name}")
    asked = [probe.probe.question for probe in log.probes]
    records: list[dict[str, Any]] = [
        {
            "id": question.id,
            "question": question.text,
            "gold": question.answer,
            "answers": {name: said[question.id] for name, said in found.items()},
        }
        for question in asked
    ]
    records.sort(key=lambda one: len(set(one["answers"].values())) == 1)  # what differs is first
    (run / "answers.jsonl").write_text(as_lines(records), encoding="utf-8")


def _told(log: EmbeddedLog, memory: Memory, user: str) -> dict[str, str]:
    """Tell a life, asking each question when its time has come; what was found, by question."""
    found: dict[str, str] = {}
    told = zip(log.facts, log.log.statements, strict=True)
    waiting = sorted(log.probes, key=lambda one: one.probe.asked_at)
    for fact, statement in [*told, (None, None)]:
        while waiting and (statement is None or waiting[0].probe.asked_at < statement.told_at):
            question = waiting.pop(0).probe.question
            hits = memory.search(question.text, user_id=user, top_k=SHOWN)["results"]
            found[question.id] = "\n".join(hit["memory"] for hit in hits) or NOTHING
        if fact is not None and statement is not None:
            memory.add(fact.text, user_id=user, timestamp=statement.told_at)
    return found


class _AsToldIn:
    """A reader that finds in each message the very fact of the log that it was made of, so that
    the policy decides about what it was trained to decide about."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._facts = {fact.text: fact for fact in log.facts}

    def read(self, turns: Sequence[RawTurn]) -> list[Fact]:
        """The fact of each turn."""
        return [replace(self._facts[turn.text], sources=(turn.id,)) for turn in turns]


def curve(run: Path) -> str:
    """The mean reward of every step as one line of bars, with its first and last value."""
    rewards = [float(row["reward_mean"]) for row in read_metrics(run / "metrics.jsonl")]
    least, most = min(rewards), max(rewards)
    share = (lambda value: (value - least) / (most - least)) if most > least else (lambda _: 0.0)
    bars = "".join(BARS[round(share(value) * (len(BARS) - 1))] for value in rewards)
    return f"reward {bars} {rewards[0]:.3f} → {rewards[-1]:.3f}"


def examples_of(
    head: TrainedHead, logs: Sequence[EmbeddedLog], config: OperationsConfig
) -> dict[OpKind, list[str]]:
    """Some decisions of the head on these logs, one sentence each; the last ones of each kind."""
    found: dict[OpKind, list[str]] = {kind: [] for kind in OpKind}
    for log in logs:
        walk, decider = Walk(log, AnswerStandard.of(config), asks=False), ByHead(head)
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
