"""Fitting a ranker (listwise softmax, or Plackett-Luce by reward alone), and judging it.

Supervised: every evidence candidate against all candidates that are none, the mean over evidence
and then over questions, with a ridge on standardised weights. GRPO: the policy draws an order of
`k` candidates (Plackett-Luce, drawn by adding Gumbel noise to the scores), the reward is the share
of the evidence among them or how well a reader answers from them, and the advantage is the reward
minus the mean of the question's group. Weights of features in `RISING` stay at 0 or above, so no
better match ever counts against a candidate.

Recall at k is the mean over questions of the share of a question's evidence turns that the first k
candidates show. The guard: weights are adopted where their recall over all held-out questions is
above that of rank fusion among turns and not below it among items.

When an older item goes behind a newer one (`memory/search/ranker/newer.py`) is learnt from
questions whose evidence names the newest value: written dialogues, half of which leave old values
as they are, and the conversations beside them. Of the first ten items by a ranker's scores every
older one above a newer one is a pair, where exactly one of the two is evidence; a logistic model
learns which, each question counting the same.

Invariants: the gradients are those of the losses (`tests/tasks/test_retrieval.py`); ranker and
fusion rank the same candidates of the same questions; what a pair is seen by is what search
computes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from memograd.evaluation import bootstrap_interval
from memograd.memory.search.ranker.features import FALLING, FEATURES, RISING, Features
from memograd.memory.search.ranker.files import (
    FACTS,
    HIT_FACTS,
    LinearRanking,
    Probability,
    hit_facts,
    with_best,
)
from memograd.memory.search.ranker.newer import (
    PAIRS,
    Newer,
    asks_before,
    pair_rows,
    speech_of,
)
from memograd.tasks.retrieval.material import Candidates, Row

LEAST_SCALE: Final = 1e-6
LOGISTIC_STEPS: Final = 3000
LOGISTIC_CLOSE: Final = 1e-7
AGREE: Final = FEATURES.index("fusion.agree3")
RISING_COLUMNS: Final = np.array([name.startswith(RISING) for name in FEATURES])
FALLING_COLUMNS: Final = np.array([name.startswith(FALLING) for name in FEATURES])
Part = Callable[[Row], Candidates | None]


def turns_part(row: Row) -> Candidates | None:
    """The turns of a row."""
    return row.turns


def items_part(row: Row) -> Candidates | None:
    """The items of a row."""
    return row.items


@dataclass(frozen=True)
class Packed:
    """The candidates of all questions below each other.

    features float32 `[n, f]`, hit bool `[n]`, starts and sizes int64 `[q]`, weight float64 `[q]`.
    """

    features: np.ndarray
    hit: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    weight: np.ndarray

    @property
    def question(self) -> np.ndarray:
        """int64 `[n]`: whose candidate it is."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def learnt_from(rows: Sequence[Row], part: Part) -> list[tuple[Row, Candidates]]:
    """Questions to learn from: some of their candidates are evidence and some are not."""
    return [
        (row, found)
        for row in rows
        if (found := part(row)) is not None and found.hit.any() and not found.hit.all()
    ]


def pack(rows: Sequence[Row], part: Part) -> Packed:
    """The questions of `learnt_from`, below each other.

    A set of rows weighs as the square root of its size: a long one more, but not all.
    """
    chosen = [(row.set, found) for row, found in learnt_from(rows, part)]
    counts: dict[str, int] = {}
    for name, _ in chosen:
        counts[name] = counts.get(name, 0) + 1
    total = sum(np.sqrt(count) for count in counts.values())
    sizes = np.array([len(found.hit) for _, found in chosen], np.int64)
    nothing = np.zeros((0, len(FEATURES)), np.float32)
    return Packed(
        np.concatenate([nothing, *(found.features for _, found in chosen)]),
        np.concatenate([np.zeros(0, bool), *(found.hit for _, found in chosen)]),
        np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
        sizes,
        np.array([len(chosen) / np.sqrt(counts[name]) / total for name, _ in chosen]),
    )


def loss_and_slope(scores: np.ndarray, packed: Packed) -> tuple[float, np.ndarray]:
    """The listwise loss of scores float64 `[n]`, and its gradient by them."""
    of = packed.question
    highest = np.maximum.reduceat(scores, packed.starts)[of]
    power = np.exp(np.clip(scores - highest, -60, 0))
    others = np.add.reduceat(np.where(packed.hit, 0, power), packed.starts)[of]
    evidence = np.add.reduceat(packed.hit.astype(float), packed.starts)[of]
    weight = packed.weight[of] / evidence
    chance = power / (power + others)
    loss = -(weight * np.log(np.maximum(chance, 1e-12)))[packed.hit].sum()
    shares = np.where(packed.hit, weight / (power + others), 0)
    pressed = np.add.reduceat(shares, packed.starts)[of]
    slope = np.where(packed.hit, -weight * (1 - chance), power * pressed)
    return float(loss), slope


def standard(packed: Packed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, scale (the spread within questions) and which features are used, each `[f]`."""
    sums = np.add.reduceat(packed.features, packed.starts, dtype=np.float64)
    means = sums / packed.sizes[:, None]
    spread = np.sqrt(((packed.features - means[packed.question]) ** 2).mean(axis=0))
    used = spread > LEAST_SCALE
    return sums.sum(axis=0) / len(packed.hit), np.where(used, spread, 1.0), used


def bounded(weights: np.ndarray) -> np.ndarray:
    """Weights with those of `RISING` at least 0 and those of `FALLING` at most."""
    weights = np.where(RISING_COLUMNS, np.maximum(weights, 0), weights)
    return np.where(FALLING_COLUMNS, np.minimum(weights, 0), weights)


RewardOf = Callable[[np.ndarray], np.ndarray]
"""The rewards `[samples]` of orders, int64 `[samples, k]` of candidates."""


def evidence_shown(shows: np.ndarray) -> RewardOf:
    """The share of the evidence that the drawn candidates show; shows: bool `[c, evidence]`."""
    return lambda order: np.asarray(shows[order].any(axis=1).mean(axis=1))


@dataclass
class PlackettLuce:
    """The policy of GRPO: an order of `k` candidates, drawn one after the other by their scores."""

    k: int = 10
    samples: int = 16
    temperature: float = 1.0

    def slope(
        self, scores: np.ndarray, reward_of: RewardOf, draw: np.random.Generator
    ) -> tuple[np.ndarray, float]:
        """The gradient of the expected reward by the scores `[c]`, and the mean reward."""
        scores = scores / self.temperature
        k = min(self.k, len(scores))
        noise = draw.gumbel(size=(self.samples, len(scores)))
        order = np.argsort(-(scores + noise), axis=1)[:, :k]
        reward = reward_of(order)
        advantage = reward - reward.mean()
        if not advantage.any():
            return np.zeros(len(scores)), float(reward.mean())
        total = np.zeros(len(scores))
        power = np.exp(scores - scores.max())
        for one, push in zip(order, advantage, strict=True):
            drawn = power[one]
            left = power.sum() - np.concatenate([[0.0], np.cumsum(drawn)[:-1]])
            left = np.maximum(left, 1e-12)
            # d log P = 1 for what was drawn, minus its share in every draw that it was left for.
            inverse = np.cumsum(1 / left)
            slope = -power * inverse[-1]
            slope[one] = 1.0 - drawn * inverse
            total += push * slope
        return total / self.samples / self.temperature, float(reward.mean())


_HITS: Final = 10  # of a question, by which the probability of a hit is learnt
_RIDGE: Final = 1.0


def fit_probability(linear: LinearRanking, rows: Sequence[Row], part: Part) -> Probability:
    """The probabilities of a ranker's scores, by logistic regression."""
    facts, answered, hits, is_hit = [], [], [], []
    for row in rows:
        found = part(row)
        if found is None:
            continue
        scores = linear.scores(found.features)
        facts.append(with_best(found.facts, scores, found.features[:, AGREE]))
        answered.append(bool(found.hit.any()))
        if found.hit.any():
            best = np.argsort(-scores, kind="stable")[:_HITS]
            hits.append(hit_facts(scores)[best])
            is_hit.append(found.hit[best])
    rising = np.array([True, True, False, False])
    rows_of_facts = np.array(facts, np.float64).reshape(-1, len(FACTS))
    answerable = logistic_fit(rows_of_facts, np.array(answered), _RIDGE, FACT_SIGNS)
    rows_of_hits = np.concatenate(hits) if hits else np.zeros((0, len(HIT_FACTS)))
    labels = np.concatenate(is_hit) if is_hit else np.zeros(0, bool)
    hit = logistic_fit(rows_of_hits, labels, _RIDGE, np.where(rising, 1.0, 0.0))
    return Probability(answerable, hit)


FACT_SIGNS: Final = np.array(
    [
        {"best_cosine": 1.0, "best_cover": 1.0, "best_window_cover": 1.0, "best_bm25": 1.0,
         "unseen": -1.0, "unseen_terms": -1.0, "match_gap": 1.0}.get(name, 0.0)
        for name in FACTS
    ]
)  # fmt: skip
"""1: more of it never makes an answer less probable; -1: never more; 0: either."""


def logistic_fit(
    x: np.ndarray,
    y: np.ndarray,
    ridge: float,
    signs: np.ndarray,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """Weights and bias for raw values `[n, f]`; signs: what a weight must be, 0 for either.

    weight: float64 `[n]`, how much each counts; None: 1 for all.

    By accelerated projected gradients (Beck and Teboulle, *A Fast Iterative Shrinkage-Thresholding
    Algorithm*, 2009), with a step of one over the largest curvature.
    """
    count = x.shape[1]
    if not len(x) or y.all() or not y.any():
        share = (y.sum() + 1) / (len(y) + 2)
        return np.append(np.zeros(count), np.log(share / (1 - share)))
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), LEAST_SCALE)
    rows = np.column_stack([(x - mean) / scale, np.ones(len(x))])
    pull = np.append(np.full(count, ridge), 0.0)
    weighed = rows if weight is None else rows * weight[:, None]
    step = 1.0 / (0.25 * float(np.linalg.eigvalsh(weighed.T @ rows)[-1]) + ridge)
    lowest = np.append(np.where(signs > 0, 0.0, -np.inf), -np.inf)
    highest = np.append(np.where(signs < 0, 0.0, np.inf), np.inf)
    found = ahead = np.zeros(count + 1)
    momentum = 1.0
    for _ in range(LOGISTIC_STEPS):
        chance = 1 / (1 + np.exp(-(rows @ ahead)))
        slope = weighed.T @ (chance - y) + pull * ahead
        moved = np.clip(ahead - step * slope, lowest, highest)
        if np.abs(moved - found).max() < LOGISTIC_CLOSE:
            break
        after = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / after * (moved - found)
        found, momentum = moved, after
    weights = found[:-1] / scale
    return np.append(weights, found[-1] - float(weights @ mean))


def recalls(rows: Sequence[Row], part: Part, linear: LinearRanking | None, k: int) -> np.ndarray:
    """float64 `[answerable questions]`; linear: None for rank fusion."""
    return np.array([recall(row, part(row), linear, k) for row in rows if row.evidence])


def recall(row: Row, found: Candidates | None, linear: LinearRanking | None, k: int) -> float:
    """The share of one question's evidence among the first k."""
    if found is None:
        return 0.0
    scores = found.fused if linear is None else linear.scores(found.features)
    best = np.argsort(-scores, kind="stable")[:k]
    return len({turn for at in best for turn in found.sources[at]}) / row.evidence


def guard(
    rows: Sequence[Row], turns: LinearRanking, items: LinearRanking, k: int
) -> dict[str, Any]:
    """What held-out rows say of a ranker: of turns and, where they have some, of items.

    It is adopted where it finds more turns than fusion and no fewer items.
    """
    judged = beside_fusion(rows, turns_part, turns, k)
    of_items = beside_fusion([row for row in rows if row.items], items_part, items, k)
    better = judged["questions"] > 0 and judged["gain"] > 0
    if of_items["questions"]:
        judged["items"] = of_items
        better = better and of_items["gain"] >= 0
    return {**judged, "adopted": better}


def beside_fusion(rows: Sequence[Row], part: Part, linear: LinearRanking, k: int) -> dict[str, Any]:
    """Recall of fusion and of the ranker on held-out rows, the gain with its interval, by set."""
    fused, trained = recalls(rows, part, None, k), recalls(rows, part, linear, k)
    if not len(fused):
        return {"questions": 0}
    low, high = bootstrap_interval((trained - fused).tolist())
    names = np.array([row.set for row in rows if row.evidence])
    return {
        "questions": len(fused),
        f"fusion_recall_at_{k}": round(float(fused.mean()), 4),
        f"trained_recall_at_{k}": round(float(trained.mean()), 4),
        "gain": round(float((trained - fused).mean()), 4),
        "gain_interval": [round(low, 4), round(high, 4)],
        "sets": {
            str(name): [
                round(float(fused[names == name].mean()), 4),
                round(float(trained[names == name].mean()), 4),
            ]
            for name in sorted(set(names.tolist()))
        },
    }


FIRST: Final = 10  # items whose pairs are learnt from
PAIR_RIDGE: Final = 2.0


def fit_newer(linear: LinearRanking, rows: Sequence[Row]) -> Newer | None:
    """What these questions teach of older and newer items; None where they hold no pair."""
    found = [(pairs, right) for row in rows for pairs, right in _pairs(linear, row)]
    if not found:
        return None
    seen = np.concatenate([pairs for pairs, _ in found])
    right = np.concatenate([right for _, right in found])
    weight = np.concatenate([np.full(len(right), 1.0 / len(right)) for _, right in found])
    return Newer(logistic_fit(seen, right, PAIR_RIDGE, np.zeros(len(PAIRS)), weight))


def _pairs(linear: LinearRanking, row: Row) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The pairs of a question, if there are some, and whether the newer one is evidence."""
    items = row.items
    if items is None or items.told is None or items.alike is None or row.cues is None:
        return
    if asks_before(row.cues):
        return
    scores = linear.scores(items.features)
    first = np.argsort(-scores, kind="stable")[:FIRST]
    above, below = np.triu_indices(len(first), 1)
    older, newer = first[above], first[below]
    told, hit = items.told, items.hit
    chosen = (told[older] >= 0) & (told[newer] > told[older]) & (hit[older] != hit[newer])
    older, newer = older[chosen], newer[chosen]
    if not len(older):
        return
    evidence, other = np.where(hit[newer], newer, older), np.where(hit[newer], older, newer)
    alike = items.alike[np.cumsum(hit)[evidence] - 1, other].astype(np.float64)
    speech = speech_of(Features(np.arange(len(hit)), items.features.astype(np.float64)))
    gaps = scores[older] - scores[newer]
    yield pair_rows(gaps, alike, row.cues, speech[newer]), hit[newer]
