"""The table of presets in the docs is the table that the code uses."""

from __future__ import annotations

from pathlib import Path

from memograd.config.algorithms import ALGORITHMS

DOC = Path(__file__).resolve().parents[2] / "docs" / "algorithms.md"


def test_the_documented_presets_are_the_real_ones() -> None:
    rows = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in DOC.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    header = next(row for row in rows if row[:2] == ["algorithm", "advantage"])
    documented = {row[0]: row[1:] for row in rows if len(row) == len(header) and row != header}
    real = {
        name: ["none" if choices[key] is None else str(choices[key]) for key in header[1:]]
        for name, choices in ALGORITHMS.items()
    }
    assert documented == real
    assert set(header[1:]) == set(ALGORITHMS["grpo"])
