"""Which operation was chosen where which was right: accuracy in two senses, and the confusion.

`kind` accuracy asks whether ADD, UPDATE, DELETE or NONE was right; `strict` accuracy asks for the
right item too, where the operation has one (UPDATE, DELETE). A NONE needs no target: whether it
names the statement that said it already changes nothing in the memory.

Most statements of a life are ADD or NONE, so a policy that always says ADD looks good in accuracy.
`balanced_accuracy`, the mean recall of the kinds that occur, does not flatter it, and stands in
every table beside the other two.

Invariants: strict <= kind; rows of the matrix sum to the gold operations; an operation always
chosen has balanced accuracy 1 / (kinds that occur) at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from memograd.errors import BadInput
from memograd.evaluation.plots import INK, font_families, new_figure, save_figure
from memograd.evaluation.report import markdown_table
from memograd.memory.records.operations import OpKind

KINDS: Final = tuple(OpKind)
_POINTING: Final[tuple[OpKind, ...]] = (OpKind.UPDATE, OpKind.DELETE)


class TargetedOp(Protocol):
    """An operation and what it is done to, by any ids; `data.lifelog.GoldOp` is one."""

    @property
    def kind(self) -> OpKind: ...

    @property
    def target(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class ChosenOp:
    """What a method chose; `target` in the same ids as the gold operations."""

    kind: OpKind
    target: str | None = None


@dataclass(frozen=True)
class Confusion:
    """How chosen operations stand to gold ones.

    kind_hits, strict_hits [n]: 1 where the kind was right, and where the target was right too, in
    the order of the statements; made for the bootstrap. counts: (gold, chosen) -> how many.
    right_targets: of the hits of UPDATE and DELETE, how many have the right target.
    """

    kind_hits: tuple[float, ...]
    strict_hits: tuple[float, ...]
    counts: dict[tuple[OpKind, OpKind], int]
    right_targets: dict[OpKind, int]

    @property
    def n(self) -> int:
        """How many statements were decided."""
        return len(self.kind_hits)

    @property
    def kind_accuracy(self) -> float:
        """Share of statements whose kind of operation was right."""
        return sum(self.kind_hits) / self.n

    @property
    def strict_accuracy(self) -> float:
        """Share of statements whose operation and target were right."""
        return sum(self.strict_hits) / self.n

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the kinds that occur among the gold operations."""
        found = [recall for kind in KINDS if (recall := self.recall(kind)) is not None]
        return sum(found) / len(found)

    def recall(self, kind: OpKind) -> float | None:
        """Of the gold operations of a kind, the share chosen so; None where there are none."""
        gold = sum(self.counts[kind, chosen] for chosen in KINDS)
        return self.counts[kind, kind] / gold if gold else None

    def precision(self, kind: OpKind) -> float | None:
        """Of the chosen operations of a kind, the share that was right; None without any."""
        chosen = sum(self.counts[gold, kind] for gold in KINDS)
        return self.counts[kind, kind] / chosen if chosen else None


def compare_operations(gold: Sequence[TargetedOp], chosen: Sequence[TargetedOp]) -> Confusion:
    """Compare the operations chosen for statements with the gold ones, in the same order.

    Raises BadInput when there are none, or not as many of one as of the other.
    """
    if not gold or len(gold) != len(chosen):
        raise BadInput(
            "Each statement needs one gold and one chosen operation; "
            f"got {len(gold)} and {len(chosen)}."
        )
    counted = Counter((right.kind, made.kind) for right, made in zip(gold, chosen, strict=True))
    kind_hits, strict_hits = [], []
    right_targets: dict[OpKind, int] = dict.fromkeys(_POINTING, 0)
    for right, made in zip(gold, chosen, strict=True):
        hit = right.kind is made.kind
        strict = hit and (right.kind not in _POINTING or right.target == made.target)
        kind_hits.append(float(hit))
        strict_hits.append(float(strict))
        if strict and right.kind in _POINTING:
            right_targets[right.kind] += 1
    return Confusion(
        tuple(kind_hits),
        tuple(strict_hits),
        {(one, other): counted[one, other] for one in KINDS for other in KINDS},
        right_targets,
    )


def confusion_to_markdown(found: Confusion, method: str) -> str:
    """The matrix as a Markdown table with recall, precision and the accuracies above it."""
    caption = (
        f"**{method}**: {found.n} operations, strict accuracy {100 * found.strict_accuracy:.1f}, "
        f"kind only {100 * found.kind_accuracy:.1f}, balanced over kinds "
        f"{100 * found.balanced_accuracy:.1f}. Rows: gold, columns: chosen."
    )
    header = ["gold", *KINDS, "recall", "right target"]
    rows = [
        [
            str(gold),
            *(str(found.counts[gold, chosen]) for chosen in KINDS),
            _points(found.recall(gold)),
            _target_share(found, gold),
        ]
        for gold in KINDS
    ]
    rows.append(["precision", *(_points(found.precision(kind)) for kind in KINDS), "", ""])
    return f"{caption}\n\n{markdown_table(header, rows)}\n"


def plot_confusion(found: Confusion, out_png: Path, title: str = "Operations") -> None:
    """A heat map as PNG: each row shaded by its shares, each cell with its count."""
    figure = new_figure(width=4.6, height=4.0)
    axes = figure.subplots()
    rows = [[found.counts[gold, chosen] for chosen in KINDS] for gold in KINDS]
    shares = [[count / max(1, sum(row)) for count in row] for row in rows]
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    for y, row in enumerate(rows):
        for x, count in enumerate(row):
            colour = "white" if shares[y][x] > 0.55 else INK
            axes.text(x, y, str(count), ha="center", va="center", color=colour, fontsize=10)
    axes.set_xticks(range(len(KINDS)), list(KINDS))
    axes.set_yticks(range(len(KINDS)), list(KINDS))
    axes.set_xlabel("chosen", color=INK)
    axes.set_ylabel("gold", color=INK)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.set_title(title, fontsize=11, color=INK, loc="left", fontfamily=font_families())
    for spine in axes.spines.values():
        spine.set_visible(False)
    save_figure(figure, out_png)


def _points(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _target_share(found: Confusion, kind: OpKind) -> str:
    if kind not in _POINTING:
        return ""
    return f"{found.right_targets[kind]} of {found.counts[kind, kind]}"
