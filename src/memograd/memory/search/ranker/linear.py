"""The trained ranker: one weight a feature. A plain JSON file holds it.

    score(candidate) = sum over features of weight * (value - mean) / scale

Two sets of weights, for turns and for items, and the calibration that makes probabilities of
scores (`probability.py`). Invariant: what `load_ranker` returns can rank: this version of the
features, finite numbers, an embedder by name; anything else is BadInput in one sentence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from memograd.errors import BadInput
from memograd.memory.search.ranker.features import FEATURES, VERSION, group_of
from memograd.memory.search.ranker.probability import FACTS, HIT_FACTS, Probability

FORMAT: Final = "memograd-ranker"
RANKER_FILE: Final = "ranker.json"
SHIPPED: Final = Path(__file__).parent / "weights" / "e5.json"


@dataclass(frozen=True)
class Linear:
    """mean, scale, weights: float64 `[features]`; a weight of 0 leaves its feature out."""

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """float64 `[c]` of features `[c, features]`; higher is better, no unit."""
        scores: np.ndarray = (rows - self.mean) @ (self.weights / self.scale)
        return scores

    def contributions(self, row: np.ndarray, others: np.ndarray) -> dict[str, float]:
        """By group, what the features of one candidate add beyond the mean of `others` `[c, f]`."""
        parts = (row - others.mean(axis=0)) * self.weights / self.scale
        found: dict[str, float] = {}
        for name, part in zip(FEATURES, parts.tolist(), strict=True):
            found[group_of(name)] = found.get(group_of(name), 0.0) + part
        return found


@dataclass(frozen=True)
class Ranker:
    """embedder: whose vectors it was trained on. made_from: what it says of its training."""

    embedder: str
    turns: Linear
    items: Linear
    turn_probability: Probability
    item_probability: Probability
    made_from: Mapping[str, Any] = field(default_factory=dict)


def save_ranker(ranker: Ranker, path: Path) -> None:
    """Write the ranker as JSON."""
    content = {
        "format": FORMAT,
        "features_version": VERSION,
        "embedder": ranker.embedder,
        "made_from": dict(ranker.made_from),
        "features": list(FEATURES),
        "turns": _written(ranker.turns, ranker.turn_probability),
        "items": _written(ranker.items, ranker.item_probability),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _written(linear: Linear, probability: Probability) -> dict[str, Any]:
    numbers = {
        "mean": linear.mean, "scale": linear.scale, "weights": linear.weights,
        "answerable": probability.answerable, "hit": probability.hit,
    }  # fmt: skip
    return {name: [float(f"{one:.7g}") for one in values] for name, values in numbers.items()}


def load_ranker(path: Path | str) -> Ranker:
    """The ranker in a JSON file, or in the folder `final` of a run.

    Raises BadInput where there is none, it is of another version, or a number in it is none.
    """
    path = Path(path)
    if path.is_dir():
        path = path / RANKER_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"There is no ranker at {path} ({error.strerror}).") from None
    except ValueError:
        raise BadInput(f"{path} is not a ranker: it is not JSON.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BadInput(f"{path} is not a ranker of memograd train retrieval.")
    version, features = content.get("features_version"), content.get("features")
    if version != VERSION or features != list(FEATURES):
        raise BadInput(
            f"The ranker in {path} was trained on version {version} of the features, and this is"
            f" version {VERSION}: train it again with memograd train retrieval."
        )
    embedder, made_from = content.get("embedder"), content.get("made_from", {})
    if not isinstance(embedder, str) or not isinstance(made_from, dict):
        raise BadInput(f"The ranker in {path} does not say which embedder it was trained on.")
    return Ranker(
        embedder,
        _linear(content, "turns", path),
        _linear(content, "items", path),
        _probability(content, "turns", path),
        _probability(content, "items", path),
        made_from,
    )


@cache
def shipped_ranker() -> Ranker:
    """The ranker that comes with the package."""
    return load_ranker(SHIPPED)


def _linear(content: Mapping[str, Any], part: str, path: Path) -> Linear:
    read = [_numbers(content, part, name, len(FEATURES), path) for name in ("mean", "scale")]
    weights = _numbers(content, part, "weights", len(FEATURES), path)
    if not (read[1] > 0).all():
        raise BadInput(f"The ranker in {path} has a scale that is not above 0 in {part}.")
    return Linear(read[0], read[1], weights)


def _probability(content: Mapping[str, Any], part: str, path: Path) -> Probability:
    return Probability(
        _numbers(content, part, "answerable", len(FACTS) + 1, path),
        _numbers(content, part, "hit", len(HIT_FACTS) + 1, path),
    )


def _numbers(
    content: Mapping[str, Any], part: str, name: str, count: int, path: Path
) -> np.ndarray:
    values = content.get(part, {}).get(name) if isinstance(content.get(part), dict) else None
    if (
        not isinstance(values, list)
        or len(values) != count
        or not all(isinstance(one, int | float) and math.isfinite(one) for one in values)
    ):
        raise BadInput(
            f"The ranker in {path} needs {count} finite numbers as {name} of {part}, which it does"
            " not have: train it again with memograd train retrieval."
        )
    return np.array(values, np.float64)
