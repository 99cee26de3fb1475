"""Curves are drawn, complete and at README size; without a metrics file there is no picture."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from memograd.errors import BadInput
from memograd.evaluation import plot_comparison, plot_curves

BLUE, ORANGE, GREEN = (0x25, 0x63, 0xEB), (0xD9, 0x77, 0x06), (0x05, 0x96, 0x69)


def write_run(path: Path, steps: int, kl: bool = True) -> Path:
    rng = np.random.default_rng(steps)
    rows = [
        {
            "step": step,
            "reward_mean": 0.4 * step / steps + rng.normal(0, 0.02),
            "reward_std": 0.1,
            "reward_normalised_mean": 0.0,
            "reward_normalised_std": 0.8,
            "loss": rng.normal(0, 0.01),
            "kl": 0.001 * step if kl else None,
            "seconds": {"sample": 1.0},
        }
        for step in range(1, steps + 1)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def pixels(picture: Path) -> np.ndarray:
    return np.rint(imread(picture)[..., :3] * 255).astype(int)


def count(colour: tuple[int, int, int], panel: np.ndarray) -> int:
    """How many pixels have that colour, give or take antialiasing."""
    return int((np.abs(panel - np.array(colour)).max(axis=-1) < 8).sum())


def test_three_panels_with_their_curves(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder" / "curves.png"
    plot_curves(write_run(tmp_path / "metrics.jsonl", 40), out)
    image = pixels(out)
    assert image.shape == (576, 1760, 3)
    third = image.shape[1] // 3
    raw, normalised, loss = image[:, :third], image[:, third : 2 * third], image[:, 2 * third :]
    assert count(BLUE, raw) > 200
    assert count(GREEN, normalised) > 200
    assert count(ORANGE, loss) > 200


def test_no_kl_no_second_curve(tmp_path: Path) -> None:
    out = tmp_path / "curves.png"
    plot_curves(write_run(tmp_path / "metrics.jsonl", 40, kl=False), out)
    assert count(ORANGE, pixels(out)) == 0


@pytest.mark.filterwarnings("error")
def test_one_step_is_visible(tmp_path: Path) -> None:
    out = tmp_path / "curves.png"
    plot_curves(write_run(tmp_path / "metrics.jsonl", 1), out)
    image = pixels(out)
    for colour in (BLUE, GREEN, ORANGE):
        assert count(colour, image) > 20


def test_runs_of_different_length_in_one_panel(tmp_path: Path) -> None:
    out = tmp_path / "seeds.png"
    runs = {f"seed {n}": write_run(tmp_path / f"{n}.jsonl", n) for n in (30, 7)}
    plot_comparison(runs, out)
    image = pixels(out)
    assert count(BLUE, image) > 200
    assert count(ORANGE, image) > 50


def test_nothing_to_draw_is_refused_and_leaves_no_picture(tmp_path: Path) -> None:
    out = tmp_path / "curves.png"
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    half = tmp_path / "half.jsonl"
    half.write_text('{"step": 1, "reward_mean": 0.5}\n', encoding="utf-8")
    with pytest.raises(BadInput, match="is empty"):
        plot_curves(empty, out)
    with pytest.raises(BadInput, match="Cannot read"):
        plot_curves(tmp_path / "none.jsonl", out)
    with pytest.raises(BadInput, match="needs a number under `reward_std`"):
        plot_curves(half, out)
    with pytest.raises(BadInput, match="no run to plot"):
        plot_comparison({}, out)
    assert not out.exists()


@pytest.mark.slow
def test_drawing_leaves_no_global_state(tmp_path: Path) -> None:
    run = write_run(tmp_path / "metrics.jsonl", 3)
    code = (
        "import sys; from pathlib import Path; from memograd.evaluation import plot_curves; "
        "assert 'matplotlib' not in sys.modules; "
        "plot_curves(Path(sys.argv[1]), Path(sys.argv[2])); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    command = [sys.executable, "-c", code, str(run), str(tmp_path / "curves.png")]
    subprocess.run(command, check=True)
