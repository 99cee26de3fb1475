"""Pictures as PNG files: training curves of runs, and what all our pictures share.

Curves are drawn from a run's `metrics.jsonl` and nothing else, in three panels, because one alone
misleads: the raw reward is what should rise; the normalised reward (group-relative advantages) has
mean 0 by construction, and its spread says whether groups still teach anything; the loss of GRPO is
no measure of progress and is there to show trouble, with the KL divergence beside it.

matplotlib's objects are used without `pyplot`, so there is no global state and no window.
Invariants: a picture is written whole, with the folders above it made; a metrics file that is
missing, empty or damaged is BadInput, never an empty picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memograd.errors import BadInput
from memograd.evaluation.run_log import column, moving_average, read_metrics, smoothing_window

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID = "#24292f", "#d8dee4"
BLUE, ORANGE, GREEN, GREY = "#2563eb", "#d97706", "#059669", "#8b949e"
# matplotlib's own font has no Han characters: add what is installed.
_CJK_FONTS = ("Noto Sans CJK SC", "Source Han Sans SC", "Microsoft YaHei", "PingFang SC", "SimHei")


def new_figure(width: float, height: float = 3.6) -> Figure:
    """An empty white figure of that size in inches, at 160 pixels an inch."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=160, facecolor="white")


def font_families() -> list[str]:
    """The fonts for names that users choose, which may be Chinese: those that are installed."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _CJK_FONTS if name in installed)]


def save_figure(figure: Figure, out_png: Path) -> None:
    """Lay the figure out and write it as PNG; missing folders are made. `BadInput` where it cannot
    be written.

    `savefig` with a layout that is computed while drawing draws everything twice.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    out_png = Path(out_png)
    canvas = FigureCanvasAgg(figure)
    figure.tight_layout(pad=0.9, w_pad=1.8)
    try:
        out_png.parent.mkdir(parents=True, exist_ok=True)
        canvas.print_png(out_png)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise BadInput(
            f"The picture {out_png} cannot be written ({error.strerror}); choose another place."
        ) from error


_RUN_COLOURS = (BLUE, ORANGE, GREEN, "#c026d3", "#dc2626", "#0891b2", "#65a30d", "#7c3aed")


def plot_curves(metrics_jsonl: Path, out_png: Path) -> None:
    """Draw one run: raw reward (mean ± std), normalised reward (mean ± std), loss and KL.

    Args:
        metrics_jsonl: one JSON object a line with `step`, `reward_mean`, `reward_std`,
            `reward_normalised_mean`, `reward_normalised_std`, `loss` and, optionally, `kl`.
        out_png: the picture to write; missing folders are made.

    Raises:
        BadInput: the metrics file is missing, empty or damaged, or lacks one of these keys.

    A run without rewards is supervised: each of its keys that ends in `loss` gets a panel.
    """
    metrics = read_metrics(metrics_jsonl)
    steps = column(metrics, "step", metrics_jsonl)
    if not any("reward_mean" in row for row in metrics):
        _plot_losses(metrics, steps, metrics_jsonl, out_png)
        return
    figure = new_figure(width=11.0)
    raw, normalised, loss = figure.subplots(1, 3)

    mean = _draw_band(raw, steps, metrics, "reward", metrics_jsonl, BLUE)
    window = smoothing_window(len(steps))
    if window > 1:
        smooth = moving_average(mean, window)
        raw.plot(steps, smooth, color=BLUE, linewidth=2.2, label=f"mean of {window} steps")
    _style(raw, "Raw reward", steps)
    _draw_band(normalised, steps, metrics, "reward_normalised", metrics_jsonl, GREEN)
    _style(normalised, "Normalised reward", steps)
    losses = column(metrics, "loss", metrics_jsonl)
    loss.plot(steps, losses, color=INK, label="loss", **_line(steps))
    _style(loss, "Loss", steps)
    if any(row.get("kl") is not None for row in metrics):
        _draw_kl(loss, steps, column(metrics, "kl", metrics_jsonl))
    for axes in (raw, normalised, loss):
        _add_legend(axes)
    save_figure(figure, out_png)


def _plot_losses(
    metrics: Sequence[Mapping[str, Any]], steps: np.ndarray, path: Path, out_png: Path
) -> None:
    keys = [key for key in metrics[0] if key.endswith("loss")]
    if not keys:
        raise BadInput(f"{path} has neither rewards nor a loss: there is nothing to plot.")
    figure = new_figure(width=3.7 * len(keys))
    panels = figure.subplots(1, len(keys), squeeze=False)[0]
    for axes, key in zip(panels, keys, strict=True):
        losses = column(metrics, key, path)
        axes.plot(steps, losses, color=INK, alpha=0.35, **_line(steps))
        window = smoothing_window(len(steps))
        if window > 1:
            smooth = moving_average(losses, window)
            axes.plot(steps, smooth, color=BLUE, linewidth=2.2, label=f"mean of {window} steps")
        _style(axes, key.replace("_", " ").capitalize(), steps)
        _add_legend(axes)
    save_figure(figure, out_png)


def plot_comparison(runs: Mapping[str, Path], out_png: Path) -> None:
    """Draw the raw reward of several runs, e.g. seeds: faint as measured, bold smoothed.

    The label of each run says over how many steps its bold line is the mean.

    Args:
        runs: label -> the run's metrics file (keys as for `plot_curves`: `step`, `reward_mean`).
        out_png: the picture to write; missing folders are made.

    Raises:
        BadInput: no runs, or as for `plot_curves`.
    """
    if not runs:
        raise BadInput("There is no run to plot; name at least one metrics file.")
    figure = new_figure(width=7.0)
    axes = figure.subplots()
    all_steps: list[float] = []
    for index, (label, path) in enumerate(runs.items()):
        metrics = read_metrics(path)
        steps, rewards = column(metrics, "step", path), column(metrics, "reward_mean", path)
        colour = _RUN_COLOURS[index % len(_RUN_COLOURS)]
        axes.plot(steps, rewards, color=colour, alpha=0.25, linewidth=1.0)
        window = smoothing_window(len(steps))
        smooth = moving_average(rewards, window)
        shown = f"{label} (mean of {window} steps)" if window > 1 else label
        axes.plot(steps, smooth, color=colour, label=shown, **{**_line(steps), "linewidth": 2.0})
        all_steps.extend(steps)
    _style(axes, "Raw reward by run", np.asarray(all_steps))
    _add_legend(axes)
    save_figure(figure, out_png)


def _line(steps: np.ndarray) -> dict[str, Any]:
    """Line style; short runs get dots, without which one step would be invisible."""
    return {"linewidth": 1.3, "marker": "o" if len(steps) < 6 else "", "markersize": 4}


def _draw_band(
    axes: Axes,
    steps: np.ndarray,
    metrics: Sequence[Mapping[str, Any]],
    key: str,
    path: Path,
    colour: str,
) -> np.ndarray:
    """Draw `key`_mean with a band of one `key`_std on either side; returns the means [n]."""
    mean, std = column(metrics, f"{key}_mean", path), column(metrics, f"{key}_std", path)
    shade: dict[str, Any] = {"color": colour, "alpha": 0.14, "label": "± 1 std"}
    if len(steps) == 1:
        axes.vlines(steps, mean - std, mean + std, linewidth=14, **shade)
    else:
        axes.fill_between(steps, mean - std, mean + std, linewidth=0, **shade)
    alpha = 0.45 if smoothing_window(len(steps)) > 1 and key == "reward" else 1.0
    axes.plot(steps, mean, color=colour, alpha=alpha, label="mean", **_line(steps))
    return mean


def _draw_kl(axes: Axes, steps: np.ndarray, kl: np.ndarray) -> None:
    """Draw the KL divergence over the loss on an axis of its own, at the right."""
    twin = axes.twinx()
    (line,) = twin.plot(steps, kl, color=ORANGE, **_line(steps))
    twin.tick_params(colors=ORANGE, labelsize=9, length=0)
    for spine in twin.spines.values():
        spine.set_visible(False)
    # The legend belongs to the axes of the loss: name the line there as well, without points.
    axes.plot([], [], color=ORANGE, linewidth=line.get_linewidth(), label="KL (right axis)")


def _style(axes: Axes, title: str, steps: np.ndarray) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(title, fontsize=11, fontweight="bold", color=INK, loc="left")
    axes.set_xlabel("step", fontsize=9.5, color=INK)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    if steps.min() < steps.max():
        axes.margins(x=0.01)
    else:
        axes.set_xlim(steps[0] - 1, steps[0] + 1)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GREY)


def _add_legend(axes: Axes) -> None:
    """A row of labels under the panel, where it can hide no data; none where no line has one."""
    if not axes.get_legend_handles_labels()[0]:
        return
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=3,
        frameon=False,
        handlelength=1.4,
        columnspacing=1.4,
        prop={"family": font_families(), "size": 8.5},
    )
