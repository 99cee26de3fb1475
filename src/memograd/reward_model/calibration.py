"""Whether a reward model's margins mean what they say.

A margin m = score(chosen) - score(rejected) claims that the chosen answer is better with the
probability sigmoid(m) (Bradley and Terry 1952; the loss that trains it is -log sigmoid(m)). Its
prediction is the answer of the higher score, its confidence sigmoid(|m|), between 0.5 and 1.
Reliability compares confidence with how often the prediction is right, in bins of equal width; the
expected calibration error is the mean gap, weighted by the pairs in each bin (Guo et al. 2017,
arXiv:1706.04599).

Invariants: every pair is in exactly one bin; swapping chosen and rejected of all pairs turns
accuracy a into 1 - a (a tie is half right).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memograd.errors import BadInput

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
