"""Other people's data: half of the tokens, kept by each method, and what is found there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from memograd.data.lifelog import Lifelog
from memograd.evaluation.bootstrap import clustered_interval
from memograd.memory.embedders import Embedder
from memograd.memory.manager.trained.files import TrainedHead
from memograd.tasks.memory_ops.baselines.deciders import ByHead
from memograd.tasks.memory_ops.baselines.keep_half import compare_halves, half_methods
from memograd.tasks.memory_ops.baselines.measure import measure
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs, logs_of_files, training_logs
from memograd.tasks.memory_ops.measure import methods_of
from memograd.tasks.memory_ops.settings import OperationsConfig
from policies_bench.learning import config_of, trained_head
from policies_bench.results import KS, Results, Row, mean
from policies_bench.transfer import REAL_COPIES

WALKED = "memory of "


def other_data(
    named: Sequence[str],
    limit: int | None,
    heard: bool,
    locomo: Path | None,
    seeds: int,
    base: OperationsConfig,
    results: Results,
    embedder: Embedder,
) -> None:
    """Trained elsewhere, measured on the files: half of the tokens, kept by each method."""
    [name, *files] = named
    logs = [log for path in files for log in logs_of_files([Path(path)])[:limit]]
    logs = [heard_alone(log) for log in logs] if heard else logs
    unseen = embed_logs([log for log in logs if log.probes], embedder)
    name = f"{name}, {len(unseen)} conversations" + ", users only" * heard
    real = [log for log in logs_of_files([locomo]) if log.id == "conv-26"] if locomo else []
    tuning = embed_logs(training_logs(base)[:4], embedder, view="turns")
    for kept in _kept_halves({}, unseen):
        results.once(f"{name}: {kept}", 0, lambda kept=kept: _kept_halves({}, unseen)[kept])
    for method, make in methods_of({}, tuning, AnswerStandard.of(base)).items():
        results.once(f"{name}: {WALKED}{method}", 0, lambda make=make: _walked(make, unseen, base))
    for seed in range(seeds):
        for what in ("grpo", "supervised"):
            config = config_of(what, seed, base)
            trained: list[TrainedHead] = []
            also = real * REAL_COPIES if what != "supervised" else []  # it has no gold operations

            def head_of(
                config: OperationsConfig = config, trained: Any = trained, also: Any = also
            ) -> TrainedHead:
                if not trained:
                    taught = [*training_logs(config), *also]
                    material = embed_logs(taught, embedder, view="turns")
                    trained.append(trained_head(config, material, [], embedder)[0])
                head: TrainedHead = trained[0]
                return head

            results.once(
                f"{name}: {what}, half",
                seed,
                lambda what=what, head_of=head_of: _kept_halves({what: head_of()}, unseen)[
                    f"{what}, half"
                ],
            )
            results.once(
                f"{name}: {WALKED}{what}",
                seed,
                lambda head_of=head_of: _walked(lambda: ByHead(head_of()), unseen, base),
            )
    print(_table(results, name, [log.log.id for log in unseen for one in log.probes if one.needed]))


def heard_alone(log: Lifelog) -> Lifelog:
    """The log without what an assistant says, and without questions that only that answers."""
    unheard = {turn.id for turn in log.turns if turn.speaker in ("assistant", "助手")}
    statements = tuple(one for one in log.statements if one.turn_id not in unheard)
    left = {one.id for one in statements}
    probes = (replace(p, needed=tuple(n for n in p.needed if n in left)) for p in log.probes)
    return replace(log, statements=statements, probes=tuple(p for p in probes if p.needed))


def _kept_halves(heads: dict[str, TrainedHead], logs: Sequence[EmbeddedLog]) -> dict[str, Row]:
    """By method: recall of every question by the number of items found, and tokens kept."""
    found: dict[str, Row] = {}
    for k in KS:
        for one in compare_halves(logs, half_methods(heads), top_k=k):
            row = found.setdefault(one.name, {"of half": {"tokens": one.tokens}, "asked": {}})
            row["asked"][f"recall@{k}"] = one.recalls["dense"]
            row["of half"][f"recall@{k}"] = mean(one.recalls["dense"])
    return found


def _walked(make: Any, logs: Sequence[EmbeddedLog], config: OperationsConfig) -> Row:
    """The same of the memory that a method keeps, never with more than half of all tokens."""
    walked = measure("x", make, logs, AnswerStandard.of(config), budget_share=0.5, ks=KS)
    # Questions of one conversation come in the order in which they are asked; here it has one.
    asked = {f"recall@{k}": [one.recalls[k] for one in walked.needing] for k in KS}
    means = {name: mean(values) for name, values in asked.items()}
    return {"of half": {**means, "tokens": walked.tokens}, "asked": asked}


def _table(results: Results, name: str, conversations: Sequence[str]) -> str:
    """Markdown: mean over seeds with the 95% interval over questions, and tokens kept."""
    lines = ["| " + " | ".join(("method", "seeds", *(f"recall@{k}" for k in KS), "tokens")) + " |"]
    lines.append("|---" * (3 + len(KS)) + "|")
    for what in dict.fromkeys(row["what"] for row in results.rows):
        if not what.startswith(f"{name}: "):
            continue
        rows = [row for row in results.rows if row["what"] == what]
        cells = [what.removeprefix(f"{name}: "), str(len(rows))]
        for k in KS:
            each = np.mean([row["asked"][f"recall@{k}"] for row in rows], axis=0).tolist()
            low, high = clustered_interval(each, conversations)
            cells.append(f"{100 * np.mean(each):.1f} [{100 * low:.1f}, {100 * high:.1f}]")
        cells.append(f"{np.mean([row['of half']['tokens'] for row in rows]):.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([f"\n{name}: evidence recall, half of the tokens\n", *lines, ""])
