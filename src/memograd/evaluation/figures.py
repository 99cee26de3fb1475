"""What all pictures share: colours, a figure without global state, fonts that know Chinese.

Uses matplotlib's objects without `pyplot`, so no global state and no window. Invariant: a picture
is written whole, with the folders above it made.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, GRID = "#24292f", "#d8dee4"
BLUE, ORANGE, GREEN, GREY = "#2563eb", "#d97706", "#059669", "#8b949e"
# matplotlib's own font has no Han characters: add what is installed.
_CJK_FONTS = ("Noto Sans CJK SC", "Source Han Sans SC", "Microsoft YaHei", "PingFang SC", "SimHei")


def new_figure(width: float, height: float = 3.6) -> Figure:
    """An empty white figure of that size in inches, at 160 pixels an inch."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08, wspace=0.03)
    figure = Figure(figsize=(width, height), dpi=160, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    return figure


def font_families() -> list[str]:
    """The fonts for names that users choose, which may be Chinese: those that are installed."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _CJK_FONTS if name in installed)]


def save_figure(figure: Figure, out_png: Path) -> None:
    """Write the figure as PNG; missing folders are made."""
    out_png = Path(out_png)
    out_png.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out_png, format="png")
