"""What a score owes to mere length, and how to take that out.

Length is counted in characters of the answer, so that it means the same with any tokenizer. The
*slope* is the least-squares price of one more character within pairs, where the prompt is the same:

    slope = sum(ds * dl) / sum(dl * dl),   ds, dl = score and length, chosen minus rejected

and the length-controlled score is `score - slope * length`: what is left is uncorrelated with
length within the pairs it was fitted on. That also removes what is truly better *because* it is
longer; it is the price of not inviting verbosity (compare Dubois et al. 2024, arXiv:2404.04475).

Invariants: after the control, the refitted slope is 0; a score that is length alone is controlled
to a constant.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from memograd.errors import BadInput

LENGTH_FILE = "length_control.json"


@dataclass(frozen=True)
class LengthControl:
    """The fitted price of a character, and on how many pairs it was fitted."""

    slope: float
    pairs: int

    def save(self, folder: Path) -> None:
        """Write it into `folder`."""
        text = json.dumps(asdict(self), indent=2, allow_nan=False)
        (folder / LENGTH_FILE).write_text(text, encoding="utf-8")

    @classmethod
    def of(cls, model: Path) -> LengthControl | None:
        """That of a saved model, which a checkpoint's run holds; None if nobody fitted one."""
        in_run = (model.parent / "run.json").is_file()
        path = (model.parent if in_run else model) / LENGTH_FILE
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return cls(float(found["slope"]), int(found["pairs"]))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{path} is damaged ({error!r}); remove it or train anew.") from error


def fit_slope(score_gaps: Sequence[float], length_gaps: Sequence[float]) -> float:
    """Score per character, fitted on pairs: gaps [n] are chosen minus rejected.

    0 if every pair has answers of equal length: nothing is known about length then. Raises BadInput
    for lists of different length.
    """
    if len(score_gaps) != len(length_gaps):
        raise BadInput(f"{len(score_gaps)} gaps of scores do not fit {len(length_gaps)} of length.")
    gaps_N = np.asarray(length_gaps, dtype=np.float64)
    squares = float(gaps_N @ gaps_N)
    return float(np.asarray(score_gaps, dtype=np.float64) @ gaps_N) / squares if squares else 0.0


def controlled(score: float, answer: str, slope: float) -> float:
    """The score without what the answer's length earns by itself."""
    return score - slope * len(answer)


def longer_wins(length_gaps: Sequence[float]) -> float:
    """How often "the longer answer is better" is right; equal lengths count one half."""
    if not len(length_gaps):
        raise BadInput("Longer wins needs at least one pair.")
    return float((0.5 + 0.5 * np.sign(np.asarray(length_gaps, dtype=np.float64))).mean())


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rank correlation of two lists [n]; equal values share their mean rank.

    None where it is undefined: fewer than two values, or one of the lists constant.
    """
    if len(first) != len(second):
        raise BadInput(f"{len(first)} and {len(second)} values cannot be correlated.")
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    _, place_N, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: np.ndarray = (last - (counts - 1) / 2)[place_N]
    return ranks
