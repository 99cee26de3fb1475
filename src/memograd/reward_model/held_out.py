"""How good a reward model is on pairs that it was not trained on, next to "longer wins".

A margin m = score(chosen) - score(rejected) claims that the chosen answer is better with the
probability sigmoid(m) (Bradley and Terry 1952; the loss that trains it is -log sigmoid(m)). Its
prediction is the answer of the higher score, its confidence sigmoid(|m|), between 0.5 and 1.
Calibration compares confidence with how often the prediction is right, in bins of equal width; the
expected calibration error is the mean gap, weighted by the pairs in each bin (Guo et al. 2017,
arXiv:1706.04599).

Invariants: the numbers are functions of the scores and answers of the pairs alone, and every
accuracy stands beside its baseline and its number of pairs. Every pair is in exactly one bin;
swapping chosen and rejected of all pairs turns accuracy a into 1 - a (a tie is half right).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memograd.data.record_files import as_lines
from memograd.errors import BadInput
from memograd.evaluation.bootstrap import bootstrap_interval
from memograd.evaluation.plots import BLUE, GREY, GRID, INK, new_figure, save_figure
from memograd.reward_model.api import Item, Prompt, Scorer
from memograd.reward_model.length import fit_slope, longer_wins, spearman

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class ScoredPair:
    """Two answers to one prompt and what each scored; `place` says which pair it is."""

    place: str
    chosen: str
    rejected: str
    chosen_score: float
    rejected_score: float

    @property
    def margin(self) -> float:
        """Score of the better answer minus that of the worse one."""
        return self.chosen_score - self.rejected_score

    @property
    def length_gap(self) -> int:
        """Characters by which the better answer is longer."""
        return len(self.chosen) - len(self.rejected)


@dataclass(frozen=True)
class Share:
    """An accuracy over some of the pairs; None where there are none."""

    accuracy: float | None
    pairs: int


@dataclass(frozen=True)
class LengthBias:
    """What length explains.

    Attributes:
        spearman: of score and length in characters, over all answers; None if undefined.
        longer_wins: accuracy of "the longer answer is better": the baseline. Below one half,
            1 - longer_wins ("shorter wins") is the one to beat.
        slope: score per character within these pairs.
        chosen_longer, chosen_shorter: the model's accuracy where length agrees and disagrees.
        controlled_slope: the slope that was taken out for the two numbers below; None: none known.
        controlled_accuracy, controlled_spearman: with length-controlled scores.
    """

    spearman: float | None
    longer_wins: float
    slope: float
    chosen_longer: Share
    chosen_shorter: Share
    controlled_slope: float | None
    controlled_accuracy: float | None
    controlled_spearman: float | None


@dataclass(frozen=True)
class HeldOutReport:
    """Everything measured on `pairs` pairs; the interval is the accuracy's 95% bootstrap."""

    model: str
    data: str
    pairs: int
    cut: int
    accuracy_low: float
    accuracy_high: float
    calibration: Calibration
    length: LengthBias

    def as_json(self) -> dict[str, Any]:
        """Plain values, as `held_out.json` has them."""
        return asdict(self)


def score_pairs(scorer: Scorer, pairs: Sequence[tuple[str, Prompt, str, str]]) -> list[ScoredPair]:
    """Score both answers of every (place, prompt, chosen, rejected)."""
    items = [Item(prompt, answer) for _, prompt, *answers in pairs for answer in answers]
    scores = iter(scorer.score(items))
    return [
        ScoredPair(place, chosen, rejected, next(scores), next(scores))
        for place, _, chosen, rejected in pairs
    ]


def held_out_report(
    pairs: Sequence[ScoredPair], *, model: str, data: str, slope: float | None, cut: int = 0
) -> HeldOutReport:
    """Measure scored pairs; `slope` is the price of length fitted on *other* pairs, if any.

    `cut` is how many of the pairs lost a part at the model's longest row. Raises BadInput without
    pairs.
    """
    if not pairs:
        raise BadInput(f"{data} has no pair to measure on.")
    margins = [pair.margin for pair in pairs]
    calibration = calibrate(margins)
    low, high = bootstrap_interval(pair_correct(margins))
    return HeldOutReport(
        model=model,
        data=data,
        pairs=len(pairs),
        cut=cut,
        accuracy_low=low,
        accuracy_high=high,
        calibration=calibration,
        length=_length_bias(pairs, slope),
    )


def fitted_slope(pairs: Sequence[ScoredPair]) -> float:
    """Score per character within these pairs."""
    return fit_slope([pair.margin for pair in pairs], [pair.length_gap for pair in pairs])


def _length_bias(pairs: Sequence[ScoredPair], slope: float | None) -> LengthBias:
    gaps = [pair.length_gap for pair in pairs]
    lengths = [len(answer) for pair in pairs for answer in (pair.chosen, pair.rejected)]
    scores = [score for pair in pairs for score in (pair.chosen_score, pair.rejected_score)]
    accuracy = correlation = None
    if slope is not None:
        accuracy = _share([pair.margin - slope * pair.length_gap for pair in pairs]).accuracy
        correlation = spearman(
            [score - slope * n for score, n in zip(scores, lengths, strict=True)], lengths
        )
    return LengthBias(
        spearman=spearman(scores, lengths),
        longer_wins=longer_wins(gaps),
        slope=fitted_slope(pairs),
        chosen_longer=_share([pair.margin for pair in pairs if pair.length_gap > 0]),
        chosen_shorter=_share([pair.margin for pair in pairs if pair.length_gap < 0]),
        controlled_slope=slope,
        controlled_accuracy=accuracy,
        controlled_spearman=correlation,
    )


def _share(margins: Sequence[float]) -> Share:
    correct = pair_correct(margins)
    return Share(sum(correct) / len(correct) if correct else None, len(correct))


def report_markdown(report: HeldOutReport) -> str:
    """The report as a page: accuracy against the baseline, margins, calibration, length."""
    found, length = report.calibration, report.length
    rows = [
        (
            "accuracy",
            f"{_percent(found.accuracy)} ({_percent(report.accuracy_low)} to "
            f"{_percent(report.accuracy_high)})",
        ),
        (
            "longer wins, shorter wins (baselines)",
            f"{_percent(length.longer_wins)}, {_percent(1 - length.longer_wins)}",
        ),
        ("accuracy where the better answer is longer", _share_text(length.chosen_longer)),
        ("accuracy where it is shorter", _share_text(length.chosen_shorter)),
        ("accuracy, length-controlled", _percent(length.controlled_accuracy)),
        ("margin, mean ± std", f"{found.margin_mean:.3f} ± {found.margin_std:.3f}"),
        ("log loss (nats; knowing nothing is 0.693)", f"{found.log_loss:.3f}"),
        ("expected calibration error", _percent(found.ece)),
        ("Spearman of score and length", _number(length.spearman)),
        ("the same, length-controlled", _number(length.controlled_spearman)),
        ("score per 100 characters, within pairs", f"{100 * length.slope:+.3f}"),
    ]
    table = "".join(f"| {name} | {value} |\n" for name, value in rows)
    cut = f" {report.cut} of them were cut at the model's longest row." if report.cut else ""
    return (
        f"# Reward model on held-out pairs\n\n{report.model} on {report.data}: "
        f"{report.pairs} pairs.{cut}\n\n| | |\n|---|---|\n{table}"
    )


def write_report(report: HeldOutReport, folder: Path, name: str = "held_out") -> None:
    """Write `name`.json, `name`.md and `name`.png (the plots) into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report.as_json(), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    (folder / f"{name}.md").write_text(report_markdown(report), encoding="utf-8")
    plot_held_out(report, folder / f"{name}.png")


def write_pairs(pairs: Sequence[ScoredPair], folder: Path) -> None:
    """Write `held_out_pairs.jsonl` into `folder`: each pair's scores and answers' lengths."""
    lines = [
        {
            "place": pair.place,
            "chosen_score": pair.chosen_score,
            "rejected_score": pair.rejected_score,
            "chosen_length": len(pair.chosen),
            "rejected_length": len(pair.rejected),
        }
        for pair in pairs
    ]
    (folder / "held_out_pairs.jsonl").write_text(as_lines(lines), encoding="utf-8")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def _share_text(share: Share) -> str:
    return f"{_percent(share.accuracy)} of {share.pairs}"


BINS = 10


@dataclass(frozen=True)
class Bin:
    """Pairs whose confidence lies in [low, high): how many, their mean confidence, how many right.

    The means are None in an empty bin; the last bin includes 1.
    """

    low: float
    high: float
    pairs: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Calibration:
    """Margins of pairs, summed up.

    Attributes:
        accuracy: share of pairs in which chosen scores higher; a tie counts one half.
        margin_mean, margin_std: of the margins, in the model's own unit.
        log_loss: mean of -log sigmoid(margin), nats; 0.693 says nothing is known.
        ece: expected calibration error, 0 to 1.
        bins: the reliability diagram.
    """

    accuracy: float
    margin_mean: float
    margin_std: float
    log_loss: float
    ece: float
    bins: list[Bin]


def pair_correct(margins: Sequence[float]) -> list[float]:
    """1 where the margin is above 0, 0 where it is below, one half for a tie."""
    signs_N = np.sign(np.asarray(margins, dtype=np.float64))
    return [float(sign + 1) / 2 for sign in signs_N]


def calibrate(margins: Sequence[float], bins: int = BINS) -> Calibration:
    """Sum up the margins [n] of pairs, chosen minus rejected.

    Raises BadInput without margins, for one that is not finite, or without a bin.
    """
    margins_N = np.asarray(margins, dtype=np.float64)
    if margins_N.ndim != 1 or not margins_N.size or not np.isfinite(margins_N).all() or bins < 1:
        raise BadInput("Calibration needs at least one bin and at least one pair, all finite.")
    correct_N = np.asarray(pair_correct(margins))
    confidence_N = 1 / (1 + np.exp(-np.abs(margins_N)))
    place_N = np.minimum((2 * bins * (confidence_N - 0.5)).astype(int), bins - 1)
    found = []
    ece = 0.0
    for place in range(bins):
        inside_N = place_N == place
        count = int(inside_N.sum())
        edges = 0.5 + place / (2 * bins), 0.5 + (place + 1) / (2 * bins)
        if not count:
            found.append(Bin(*edges, 0, None, None))
            continue
        sure, right = float(confidence_N[inside_N].mean()), float(correct_N[inside_N].mean())
        found.append(Bin(*edges, count, sure, right))
        ece += count / margins_N.size * abs(right - sure)
    return Calibration(
        accuracy=float(correct_N.mean()),
        margin_mean=float(margins_N.mean()),
        margin_std=float(margins_N.std()),
        log_loss=float(np.logaddexp(0, -margins_N).mean()),
        ece=ece,
        bins=found,
    )


def plot_held_out(report: HeldOutReport, out_png: Path) -> None:
    """Draw the reliability diagram of `report`, and where its pairs lie, as PNG.

    Left: how often the higher score is right against how sure the margin claims to be; a calibrated
    model is on the diagonal. Right: how many pairs are in each bin, without which the left side
    misleads.
    """
    figure = new_figure(width=8.0)
    left, right = figure.subplots(1, 2)
    found = report.calibration
    shown = [one for one in found.bins if one.pairs]
    left.plot([0.5, 1], [0.5, 1], color=GREY, linewidth=1, linestyle="--", label="calibrated")
    left.plot(
        [one.confidence for one in shown],
        [one.accuracy for one in shown],
        color=BLUE,
        marker="o",
        markersize=4,
        label=f"{report.pairs} pairs, ECE {100 * found.ece:.1f}%",
    )
    left.set_ylim(-0.03, 1.03)
    left.legend(frameon=False, fontsize=8.5, loc="lower right")
    _style(left, "Reliability", "sigmoid(|margin|)", "share that is right")
    width = found.bins[0].high - found.bins[0].low
    right.bar(
        [one.low for one in found.bins],
        [one.pairs for one in found.bins],
        width=0.92 * width,
        align="edge",
        color=BLUE,
    )
    _style(right, "Pairs", "sigmoid(|margin|)", "pairs")
    save_figure(figure, out_png)


def _style(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=11, fontweight="bold", color=INK, loc="left")
    axes.set_xlabel(x, fontsize=9.5, color=INK)
    axes.set_ylabel(y, fontsize=9.5, color=INK)
    axes.set_xlim(0.49, 1.01)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
