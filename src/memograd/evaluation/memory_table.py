"""Methods against metrics: the table that every comparison of memory policies ends in.

A method has scores in [0, 1] per item (a statement, a question), which get a mean with its 95%
bootstrap interval, and totals, plain numbers such as tokens kept or seconds per add, which get
none. Shown against a `baseline`, the difference of each other method is bootstrapped over the same
items, so that how hard an item is cancels out.

Items may belong to `groups` (the conversation that a question is about): intervals then draw groups
first and items within them. Items may have `weights`: the mean is then a weighted one, as balanced
accuracy is. The interval speaks of other items of the same kind, not of another training seed: give
each seed's run as a method of its own, or the mean of the seeds per item.

Invariants: JSON, Markdown and picture show the same estimates; methods are compared item by item or
not at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from memograd.errors import BadInput
from memograd.evaluation.bootstrap import (
    bootstrap_interval,
    clustered_interval,
)
from memograd.evaluation.plots import (
    BLUE,
    GRID,
    INK,
    font_families,
    new_figure,
    save_figure,
)
from memograd.evaluation.report import Estimate, markdown_table, points

CAPTION = "points (0 to 100), mean [95% bootstrap interval over items]; totals as they are"
GROUPED_CAPTION = CAPTION.replace("over items", "over conversations and their items")


@dataclass(frozen=True)
class MethodResult:
    """What one method reached.

    name: what the tables call it. per_item: metric -> one score in [0, 1] per item; different
    metrics may have different items, the same metric has the same ones in every method, in the same
    order. totals: name -> any finite number. groups, weights: metric -> the group and the weight of
    each item, where it has them; the same in every method. Raises BadInput for a metric without
    items, a score outside [0, 1], or a total that is not finite.
    """

    name: str
    per_item: Mapping[str, Sequence[float]]
    totals: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    weights: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for metric, scores in self.per_item.items():
            if len(scores) == 0 or not all(0 <= score <= 1 for score in scores):
                raise BadInput(
                    f'"{metric}" of "{self.name}" needs at least one score, all between 0 and 1; '
                    "other numbers go into the totals."
                )
        for total, value in self.totals.items():
            if not abs(value) < float("inf"):
                raise BadInput(f'The total "{total}" of "{self.name}" is {value}.')


@dataclass(frozen=True)
class MemoryTable:
    """Methods with their estimates, in the order given.

    estimates: metric -> method -> mean and interval. differences: metric -> method -> mean of
    (method - baseline) over the same items and its interval, empty without a baseline.
    """

    methods: tuple[MethodResult, ...]
    baseline: str | None
    estimates: dict[str, dict[str, Estimate]]
    differences: dict[str, dict[str, Estimate]]

    @property
    def totals(self) -> list[str]:
        """The names of all totals, as they first appear."""
        return list(dict.fromkeys(name for method in self.methods for name in method.totals))


def compare_methods(methods: Sequence[MethodResult], *, baseline: str | None = None) -> MemoryTable:
    """Estimate every metric of every method, and its difference to `baseline`.

    Raises BadInput for no methods, a name twice, a baseline that is not among them, or a metric
    that has not the same number of items in all methods that have it.
    """
    names = [method.name for method in methods]
    if not names or len(set(names)) < len(names):
        raise BadInput(f"A table needs at least one method, and each name once; got {names}.")
    if baseline is not None and baseline not in names:
        raise BadInput(f'There is no method "{baseline}" to compare with; there is {names}.')
    estimates: dict[str, dict[str, Estimate]] = {}
    differences: dict[str, dict[str, Estimate]] = {}
    for metric in dict.fromkeys(metric for method in methods for metric in method.per_item):
        scores = {m.name: m.per_item[metric] for m in methods if metric in m.per_item}
        sizes = {name: len(values) for name, values in scores.items()}
        if len(set(sizes.values())) > 1:
            raise BadInput(f'"{metric}" must be of the same items in every method; got {sizes}.')
        by_name = {method.name: method for method in methods}
        estimates[metric] = {
            name: _estimate(by_name[name], metric, values) for name, values in scores.items()
        }
        if baseline in scores:
            before = scores[baseline]
            differences[metric] = {
                name: _estimate(by_name[name], metric, np.subtract(after, before).tolist())
                for name, after in scores.items()
                if name != baseline
            }
    return MemoryTable(tuple(methods), baseline, estimates, differences)


def table_to_json(table: MemoryTable) -> str:
    """Indented JSON: estimates, totals, differences, and the score of every item."""
    document: dict[str, Any] = {
        "methods": [
            {
                "name": method.name,
                "metrics": {
                    metric: {**asdict(found[method.name]), "scores": list(method.per_item[metric])}
                    for metric, found in table.estimates.items()
                    if method.name in found
                },
                "totals": dict(method.totals),
            }
            for method in table.methods
        ],
        "baseline": table.baseline,
        "differences": {
            metric: {name: asdict(estimate) for name, estimate in found.items()}
            for metric, found in table.differences.items()
        },
    }
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)


def table_to_markdown(table: MemoryTable) -> str:
    """The table of methods, and below it that of the differences to the baseline."""
    columns = [f"{metric} (n={_n(found)})" for metric, found in table.estimates.items()]
    rows = [
        [
            method.name,
            *(_cell(found.get(method.name)) for found in table.estimates.values()),
            *(_number(method.totals.get(total)) for total in table.totals),
        ]
        for method in table.methods
    ]
    grouped = any(len(set(ids)) > 1 for one in table.methods for ids in one.groups.values())
    caption = GROUPED_CAPTION if grouped else CAPTION
    text = f"{caption}\n\n{markdown_table(['method', *columns, *table.totals], rows)}\n"
    if not table.differences:
        return text
    compared = [
        [
            method.name,
            *(_cell(found.get(method.name), True) for found in table.differences.values()),
        ]
        for method in table.methods
        if method.name != table.baseline
    ]
    header = ["method", *table.differences]
    below = f"Difference to {table.baseline} over the same items, in points:"
    return f"{text}\n{below}\n\n{markdown_table(header, compared)}\n"


def plot_table(table: MemoryTable, out_png: Path) -> None:
    """A bar per method and a panel per metric, with the intervals, as PNG.

    Raises BadInput for a table that has totals only.
    """
    shown = list(table.estimates)
    names = [method.name for method in table.methods]
    if not shown:
        raise BadInput("The table has no metric to plot, only totals.")
    figure = new_figure(width=2.4 + 2.6 * len(shown), height=1.2 + 0.32 * len(names))
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, metric in zip(panels, shown, strict=True):
        found = table.estimates[metric]
        places = [y for y, name in enumerate(names) if name in found]
        drawn = [found[names[y]] for y in places]
        rows = [(one.mean, one.low, one.high) for one in drawn]
        means, lows, highs = (100 * np.asarray(rows)).T
        axes.barh(places, means, color=BLUE, alpha=0.75, height=0.66)
        axes.hlines(places, lows, highs, color=INK, linewidth=1.6)
        axes.set_title(metric, fontsize=10, color=INK, loc="left", fontfamily=font_families())
        axes.set_xlim(left=0)
        axes.grid(True, axis="x", color=GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.tick_params(colors=INK, labelsize=8.5, length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
    panels[0].set_yticks(range(len(names)), names, fontfamily=font_families())
    panels[0].invert_yaxis()
    save_figure(figure, out_png)


def write_table(table: MemoryTable, folder: Path, stem: str = "comparison") -> list[Path]:
    """Write `stem`.json, `stem`.md and, where it has a metric, `stem`.png; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.json", folder / f"{stem}.md"]
    paths[0].write_text(table_to_json(table) + "\n", encoding="utf-8")
    paths[1].write_text(table_to_markdown(table), encoding="utf-8")
    if table.estimates:
        paths.append(folder / f"{stem}.png")
        plot_table(table, paths[-1])
    return paths


def _estimate(method: MethodResult, metric: str, values: Sequence[float]) -> Estimate:
    """Of scores, or of differences of scores."""
    weights, groups = method.weights.get(metric), method.groups.get(metric)
    if weights is None and groups is None:
        return Estimate(sum(values) / len(values), *bootstrap_interval(values), len(values))
    counts = weights or [1.0] * len(values)
    mean = sum(w * value for w, value in zip(counts, values, strict=True)) / sum(counts)
    interval = clustered_interval(values, groups or [""] * len(values), weights=weights)
    return Estimate(mean, *interval, len(values))


def _n(found: Mapping[str, Estimate]) -> int:
    return next(iter(found.values())).n


def _cell(estimate: Estimate | None, sign: bool = False) -> str:
    return "-" if estimate is None else points(estimate, sign=sign)


def _number(value: float | None) -> str:
    """Whole numbers whole, others with three digits that count."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"
