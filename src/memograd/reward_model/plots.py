"""The reliability diagram of a reward model, and where its pairs lie, as one PNG.

Left: how often the higher score is right against how sure the margin claims to be; a calibrated
model is on the diagonal. Right: how many pairs are in each bin, without which the left side
misleads. Uses matplotlib's objects without `pyplot`, so no global state and no window.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from memograd.reward_model.held_out import HeldOutReport

_INK, _GRID, _GREY, _BLUE = "#24292f", "#d8dee4", "#8b949e", "#2563eb"


def plot_held_out(report: HeldOutReport, out_png: Path) -> None:
    """Draw the calibration of `report` into `out_png`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.6), dpi=160, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    found = report.calibration
    shown = [one for one in found.bins if one.pairs]
    left.plot([0.5, 1], [0.5, 1], color=_GREY, linewidth=1, linestyle="--", label="calibrated")
    left.plot(
        [one.confidence for one in shown],
        [one.accuracy for one in shown],
        color=_BLUE,
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
        color=_BLUE,
    )
    _style(right, "Pairs", "sigmoid(|margin|)", "pairs")
    figure.savefig(out_png, format="png")


def _style(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=11, fontweight="bold", color=_INK, loc="left")
    axes.set_xlabel(x, fontsize=9.5, color=_INK)
    axes.set_ylabel(y, fontsize=9.5, color=_INK)
    axes.set_xlim(0.49, 1.01)
    axes.tick_params(colors=_INK, labelsize=9, length=0)
    axes.grid(True, color=_GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
