"""The trained ranker and how it is kept: one weight a feature, in a plain JSON file.

    score(candidate) = sum over features of weight * (value - mean) / scale
    P(hit) = P(the memory answers the question) * P(this is where | it does)

A `Ranker` has weights for turns and for items and, for each, a `Probability`: two logistic models,
of which the first reads facts of the question as a whole (how similar the best record is, how many
of its words any record holds), the second how far a hit is behind the best and which share of all
scores it has. A ranker may say, too, when an older item goes behind a newer one (`newer.py`); one
that learnt nothing of it leaves the order as it is. `RankerVersions` is a folder of rankers, of
which one is current: what `memograd learn` makes and takes back (`records/versions.py` says how).

Invariants: what `load_ranker` returns can rank: this version of the features, finite numbers, an
embedder by name; anything else is BadInput in one sentence. Probabilities are in (0, 1) and sorted
like the scores. A version names the contents of its file.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from memograd.errors import BadInput
from memograd.memory.records.versions import VersionsFolder
from memograd.memory.search.ranker.features import FEATURES, VERSION, group_of
from memograd.memory.search.ranker.lists import Lists, Seen
from memograd.memory.search.ranker.newer import PAIRS, Newer

FORMAT: Final = "memograd-ranker"
RANKER_FILE: Final = "ranker.json"
SHIPPED: Final = Path(__file__).parent / "weights" / "e5.json"
FACTS: Final = (
    "best_cosine", "second_cosine", "best_gap", "best_cover", "best_window_cover", "best_bm25",
    "unseen", "unseen_terms", "terms", "log_records", "match_gap", "agree", "margin",
)  # fmt: skip
MOST: Final = 1e12  # of a number in a file: scores of larger ones overflow
HIT_FACTS: Final = ("behind", "share", "log_candidates", "margin")


@dataclass(frozen=True)
class LinearRanking:
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
class Probability:
    """answerable: float64 `[facts + 1]`, hit: float64 `[hit facts + 1]`; the last is the bias."""

    answerable: np.ndarray
    hit: np.ndarray

    def of(self, scores: np.ndarray, facts: np.ndarray) -> np.ndarray:
        """float64 `[c]` of scores `[c]` and facts (`with_best`)."""
        rows = hit_facts(scores)
        answerable = _logistic(float(facts @ self.answerable[:-1] + self.answerable[-1]))
        probabilities: np.ndarray = answerable * _logistic(rows @ self.hit[:-1] + self.hit[-1])
        return probabilities


@dataclass(frozen=True)
class Ranker:
    """embedder: whose vectors it was trained on. newer: when an older item goes behind a newer one,
    None: never. made_from: what it says of its training."""

    embedder: str
    turns: LinearRanking
    items: LinearRanking
    turn_probability: Probability
    item_probability: Probability
    newer: Newer | None = None
    made_from: Mapping[str, Any] = field(default_factory=dict)


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
    except (ValueError, RecursionError):  # not JSON, or nested without end
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
        _newer(content, path),
        made_from,
    )


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
    if ranker.newer is not None:
        content["newer"] = {"pairs": list(PAIRS), "weights": _rounded(ranker.newer.weights)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


@cache
def shipped_ranker() -> Ranker:
    """The ranker that comes with the package."""
    return load_ranker(SHIPPED)


class RankerVersions(VersionsFolder):
    """The rankers in one folder; the folder is made with the first of them."""

    kind: ClassVar = "ranker"
    about_file: ClassVar = RANKER_FILE

    def load(self, version: str | None = None) -> Ranker:
        """A version, the current one by default."""
        return load_ranker(self.folder_of(version or self.current) / RANKER_FILE)

    def save(self, ranker: Ranker) -> str:
        """Keep a ranker beside the others without making it current; returns its version.

        Raises BadInput when it was trained on vectors of another embedder than the current one.
        """
        self._check_embedder(ranker)
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".new-") as beside:
            written = Path(beside) / "version"
            save_ranker(ranker, written / RANKER_FILE)
            version = hashlib.sha256((written / RANKER_FILE).read_bytes()).hexdigest()[:12]
            if version not in self.versions():
                written.rename(self.folder / version)
        return version

    def check_fits(self, version: str) -> None:
        """Raise BadInput when it is not here, or of another embedder than the current one."""
        self._check_embedder(self.load(version))

    def _check_embedder(self, ranker: Ranker) -> None:
        if not self.is_readable() or self.current not in self.versions():
            return
        ours = self.load()
        if ours.embedder != ranker.embedder:
            raise BadInput(
                f"The ranker was trained on vectors of {ranker.embedder!r}, those in {self.folder}"
                f" on {ours.embedder!r}: adopt it into another folder."
            )


def question_facts(own: Seen, turns: Seen, lists: Lists, match: np.ndarray) -> np.ndarray:
    """float64 `[facts - 2]`: what the lists say of the question as a whole.

    match: `who.match` of the candidates: somebody else may have said what is asked.
    """
    words, dense = own.scored.words, own.scored.dense
    at = lists.numbers
    candidates = np.sort(dense[at])[::-1]
    spread = own.scored.spread
    total = max(float(words.idf.sum()), 1e-9)
    some, none = dense[at][match > 0], dense[at][match < 0]
    gap = 0.0
    if len(some) and len(none):
        gap = min(max(float((some.max() - none.max()) / spread), -4.0), 4.0)
    cover = float(own.words.cover[at].max())
    return np.array(
        [
            10 * (candidates[0] - 0.8),
            10 * (candidates[min(2, len(candidates) - 1)] - 0.8),
            min(float((candidates[0] - own.scored.mean) / spread), 6.0),
            cover,
            max(float(turns.words.window_cover.max(initial=0.0)), cover),
            own.words.bm25[at].max() / max(words.ideal, 1e-9),
            float(words.idf[~words.known].sum()) / total,
            min(float((~words.known).sum()), 5.0),
            min(len(words.idf), 12) / 4,
            np.log(len(dense)) / 4,
            gap,
        ]
    )


def with_best(facts: np.ndarray, scores: np.ndarray, agree: np.ndarray) -> np.ndarray:
    """float64 `[facts]`: and how sure the scores are; agree: `fusion.agree3` of the candidates."""
    return np.concatenate([facts, [agree[scores.argmax()], _margin(scores)]])


def hit_facts(scores: np.ndarray) -> np.ndarray:
    """float64 `[c, hit facts]` of the scores of all candidates."""
    if not len(scores):
        return np.zeros((0, len(HIT_FACTS)))
    behind = scores - scores.max()
    share = behind - np.log(np.exp(behind).sum())
    rows = np.empty((len(scores), len(HIT_FACTS)))
    rows[:, 0], rows[:, 1] = behind, share
    rows[:, 2:] = np.log(len(scores)), _margin(scores)
    return rows


def _margin(scores: np.ndarray) -> float:
    """How far the fifth is behind the first."""
    top = np.sort(scores)[::-1]
    return float(top[0] - top[min(4, len(top) - 1)])


def _logistic(x: np.ndarray | float) -> np.ndarray:
    result: np.ndarray = 1.0 / (1.0 + np.exp(-np.maximum(np.minimum(x, 40), -40)))
    return result


def _written(linear: LinearRanking, probability: Probability) -> dict[str, Any]:
    numbers = {
        "mean": linear.mean, "scale": linear.scale, "weights": linear.weights,
        "answerable": probability.answerable, "hit": probability.hit,
    }  # fmt: skip
    return {name: _rounded(values) for name, values in numbers.items()}


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{one:.7g}") for one in values]


def _linear(content: Mapping[str, Any], part: str, path: Path) -> LinearRanking:
    read = [_numbers(content, part, name, len(FEATURES), path) for name in ("mean", "scale")]
    weights = _numbers(content, part, "weights", len(FEATURES), path)
    if not (read[1] >= 1 / MOST).all():
        raise BadInput(
            f"The ranker in {path} has a scale below {1 / MOST:.0e} in {part}: train it again with"
            " memograd train retrieval."
        )
    return LinearRanking(read[0], read[1], weights)


def _probability(content: Mapping[str, Any], part: str, path: Path) -> Probability:
    return Probability(
        _numbers(content, part, "answerable", len(FACTS) + 1, path),
        _numbers(content, part, "hit", len(HIT_FACTS) + 1, path),
    )


def _newer(content: Mapping[str, Any], path: Path) -> Newer | None:
    part = content.get("newer")
    if part is None:
        return None
    if not isinstance(part, dict) or part.get("pairs") != list(PAIRS):
        raise BadInput(
            f"The ranker in {path} learnt of newer items from other features than these: train it"
            " again with memograd train retrieval."
        )
    return Newer(_numbers(content, "newer", "weights", len(PAIRS) + 1, path))


def _numbers(
    content: Mapping[str, Any], part: str, name: str, count: int, path: Path
) -> np.ndarray:
    values = content.get(part, {}).get(name) if isinstance(content.get(part), dict) else None
    if (
        not isinstance(values, list)
        or len(values) != count
        or not all(isinstance(one, int | float) and abs(one) <= MOST for one in values)
    ):
        raise BadInput(
            f"The ranker in {path} needs {count} finite numbers of at most {MOST:.0e} as {name} of"
            f" {part}, which it does not have: train it again with memograd train retrieval."
        )
    return np.array(values, np.float64)
