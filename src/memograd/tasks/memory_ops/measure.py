"""The table of methods for memory-ops: the trained head beside everybody it must be better than.

Invariant: every method walks through the same logs, under the same budget of tokens, and the
novelty gate's threshold is chosen on training logs, of every language, from thresholds that reach
to keeping everything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memograd.evaluation.confusion import confusion_to_markdown, plot_confusion
from memograd.evaluation.memory_table import MethodResult, compare_methods, write_table
from memograd.evaluation.report import markdown_table, terminal_table
from memograd.memory.manager import RuleManager
from memograd.memory.manager.trained.files import TrainedHead
from memograd.tasks.base.progress import console
from memograd.tasks.memory_ops.baselines.deciders import (
    ByHead,
    ByManager,
    KeepAll,
    LongestFirst,
    MakeDecider,
    NoveltyGate,
    RandomChoice,
    RandomKeep,
    RawTurns,
)
from memograd.tasks.memory_ops.baselines.measure import Looked, MeasuredMethod, measure
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import EmbeddedLog
from memograd.tasks.memory_ops.rewards import OperationReward
from memograd.tasks.memory_ops.settings import OperationsConfig

TRAINED: Final = "trained head"
RAW_TURNS: Final = "raw turns (recent first)"
BUDGETS: Final = (None, 0.5, 0.25)
"""Shares of all statements' tokens that the memory may hold; None: all of them."""
# Up to where nearly everything is kept, for any embedder: e5's cosines lie close together.
GATES: Final = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99)
TUNING_LOGS: Final = 4


@dataclass(frozen=True)
class Ground:
    """What methods are measured on.

    unseen: the logs, in the policy's view. turns: the same logs with raw turns for statements;
    None: raw turns are not measured. ks: of evidence recall; none: the standard's. reward: of
    single operations, what the head was trained by; None where that was `delta_qa`.
    """

    unseen: Sequence[EmbeddedLog]
    standard: AnswerStandard
    turns: Sequence[EmbeddedLog] | None = None
    ks: Sequence[int] = ()
    reward: OperationReward | None = None


def methods_of(
    heads: Mapping[str, TrainedHead], tuning: Sequence[EmbeddedLog], standard: AnswerStandard
) -> dict[str, MakeDecider]:
    """Every method by the name that tables call it; `tuning` are logs that may be looked at."""
    places = tuning_places([one.log.language for one in tuning])
    gate = best_gate([tuning[place] for place in places], standard)
    found: dict[str, MakeDecider] = {
        "keep everything (recent first)": KeepAll,
        "keep everything (longest first)": LongestFirst,
        "keep everything (random leaves)": lambda: RandomKeep(0),
        "random operations": lambda: RandomChoice(0),
        f"novelty gate (cosine < {gate:g})": lambda: NoveltyGate(gate),
        "rules": lambda: ByManager(RuleManager()),
    }
    for name, head in heads.items():
        found[name] = lambda head=head: ByHead(head)  # type: ignore[misc]
    return found


def tuning_places(languages: Sequence[str]) -> list[int]:
    """Which of the training logs in these languages thresholds are chosen on: as many of each."""
    turn: dict[str, int] = {}
    rounds = []
    for place, language in enumerate(languages):
        turn[language] = turn.get(language, 0) + 1
        rounds.append((turn[language], place))
    return sorted(place for _, place in sorted(rounds)[:TUNING_LOGS])


def best_gate(logs: Sequence[EmbeddedLog], standard: AnswerStandard) -> float:
    """The threshold with which the novelty gate answers most on these logs."""

    def score(threshold: float) -> float:
        return measure("gate", lambda: NoveltyGate(threshold), logs, standard).score

    return max(GATES, key=score)


def measure_head(
    head: TrainedHead,
    tuning: Sequence[EmbeddedLog],
    unseen: Sequence[EmbeddedLog],
    config: OperationsConfig,
    reward: OperationReward | None = None,
) -> dict[str, list[MeasuredMethod]]:
    """Every method under every budget, on logs that nobody was trained on."""
    standard = AnswerStandard.of(config)
    methods = methods_of({TRAINED: head}, tuning, standard)
    return measure_methods(methods, Ground(unseen, standard, reward=reward), BUDGETS)


def measure_methods(
    methods: Mapping[str, MakeDecider], ground: Ground, budgets: Sequence[float | None]
) -> dict[str, list[MeasuredMethod]]:
    """Every method under every budget, by the budget's name."""
    # What the words of a statement mean is worked out once and kept: nobody shall pay for all.
    measure("warm up", KeepAll, ground.unseen, ground.standard)
    found: dict[str, list[MeasuredMethod]] = {}
    for share in budgets:
        rows = [
            measure(
                name,
                make,
                ground.unseen,
                ground.standard,
                budget_share=share,
                ks=ground.ks,
                reward=ground.reward,
            )
            for name, make in methods.items()
        ]
        if ground.turns is not None:
            rows.insert(1, _raw_turns(ground, ground.turns, share))
        found[budget_name(share)] = rows
    return found


def budget_name(share: float | None) -> str:
    """`all` or `50%`."""
    return "all" if share is None else f"{share:.0%}"


def result_of(measured: MeasuredMethod) -> MethodResult:
    """One row of the table; questions and decisions are grouped by their log."""
    metrics: dict[str, list[float]] = {"answerable": measured.scores}
    asked = {"answerable": measured.looked}
    for k in measured.looked[0].recalls if measured.needing else ():
        metrics[f"evidence recall@{k}"] = [one.recalls[k] for one in measured.needing]
        asked[f"evidence recall@{k}"] = tuple(measured.needing)
    if measured.misleadable:
        metrics["misled"] = [float(one.asked.misled) for one in measured.misleadable]
        asked["misled"] = tuple(measured.misleadable)
    groups = {name: [one.log for one in questions] for name, questions in asked.items()}
    weights: dict[str, list[float]] = {}
    if measured.decided:
        metrics["operations"] = metrics["operations, balanced"] = measured.hits()
        decided_in = [one.log for one in measured.decided]
        groups["operations"] = groups["operations, balanced"] = decided_in
        weights["operations, balanced"] = measured.balance()
    totals = {
        "items": measured.items,
        "tokens": measured.tokens,
        "ms a decision": 1e3 * measured.seconds,
        "LLM calls a decision": measured.calls,
        "failures": float(measured.failures),
    }
    if measured.reward is not None:
        totals["reward"] = measured.reward
    return MethodResult(measured.name, metrics, totals, groups, weights)


def report(
    measured: Mapping[str, Sequence[MeasuredMethod]],
    folder: Path,
    *,
    more: Sequence[str] = (),
) -> None:
    """Write and show the tables of all budgets, the confusions, and answers by category.

    more: further parts of `evaluation.md`, Markdown each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for budget, rows in measured.items():
        table = compare_methods([result_of(row) for row in rows], baseline=rows[0].name)
        written = write_table(table, folder, stem=f"methods-{budget.removesuffix('%')}")
        text = written[1].read_text(encoding="utf-8")
        parts.append(f"## Memory of {budget} of the tokens\n\n{text}")
    first = next(iter(measured.values()))
    confusions = {row.name: found for row in first if (found := row.confusion())}
    if confusions:
        tables = (confusion_to_markdown(found, name) for name, found in confusions.items())
        parts.append("## Operations\n\n" + "\n".join(tables))
        if TRAINED in confusions:
            plot_confusion(confusions[TRAINED], folder / "operations.png")
    parts.append(f"## By kind of question\n\n{_categories(first)}")
    failed = [row for row in first if row.failures]
    parts += [f"{row.name}: {row.failures} failures, such as: {row.failure}" for row in failed]
    parts += more
    (folder / "evaluation.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    by_category = {row.name: row.by_category() for row in first}
    (folder / "categories.json").write_text(
        json.dumps(by_category, ensure_ascii=False, indent=2), encoding="utf-8"
    )
    for budget, rows in measured.items():
        _show(budget, rows)
    console.print(f"All tables are in {folder / 'evaluation.md'}")


def spread(looked: Sequence[Looked], limit: int) -> list[Looked]:
    """At most so many of the questions, evenly over all of them."""
    if len(looked) <= limit:
        return list(looked)
    return [looked[number * len(looked) // limit] for number in range(limit)]


def _show(budget: str, rows: Sequence[MeasuredMethod]) -> None:
    """The means alone, so that a terminal holds them; intervals are in the files."""
    results = [result_of(row) for row in rows]
    metrics = list(results[0].per_item)
    shortly = [name.removeprefix("evidence ").removeprefix("operations, ") for name in metrics]
    table = terminal_table(
        f"Memory of {budget} of the tokens, means in points",
        ["method", *shortly, "tokens"],
        [
            [
                result.name,
                *(
                    f"{100 * _weighted(result.per_item[name], result.weights.get(name)):.1f}"
                    for name in metrics
                ),
                f"{result.totals['tokens']:.0f}",
            ]
            for result in results
        ],
    )
    console.print(table)


def _weighted(values: Sequence[float], weights: Sequence[float] | None) -> float:
    counts = weights or [1.0] * len(values)
    return sum(w * value for w, value in zip(counts, values, strict=True)) / sum(counts)


def _raw_turns(ground: Ground, turns: Sequence[EmbeddedLog], share: float | None) -> MeasuredMethod:
    return measure(
        RAW_TURNS,
        RawTurns,
        turns,
        ground.standard,
        budget_share=share,
        budget_of=ground.unseen,
        ks=ground.ks,
        reward=ground.reward,
    )


def _categories(rows: Sequence[MeasuredMethod]) -> str:
    by_method = {row.name: row.by_category() for row in rows}
    names = list(next(iter(by_method.values())))
    cells = [
        [method, *(f"{100 * found[name]:.1f}" for name in names)]
        for method, found in by_method.items()
    ]
    table = markdown_table(["method", *names], cells)
    return f"answerable, points (0 to 100)\n\n{table}"
