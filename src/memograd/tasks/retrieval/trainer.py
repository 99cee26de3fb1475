"""The training loop of a ranker: Adam on the weights of turns and of items, side by side.

Invariant: a state that is saved and loaded goes on to the same weights, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from memograd.data import Question
from memograd.memory.language import language_of
from memograd.memory.search.ranker.features import FEATURES
from memograd.memory.search.ranker.files import LinearRanking
from memograd.rewards.overlap import squad_f1
from memograd.tasks.base.reading import Reader
from memograd.tasks.retrieval.learning import (
    Part,
    PlackettLuce,
    RewardOf,
    bounded,
    evidence_shown,
    items_part,
    learnt_from,
    loss_and_slope,
    pack,
    standard,
    turns_part,
)
from memograd.tasks.retrieval.material import Row
from memograd.tasks.retrieval.settings import RetrievalConfig

PARTS: Final[tuple[Part, ...]] = (turns_part, items_part)
BETA1: Final = 0.9
BETA2: Final = 0.99
EPSILON: Final = 1e-8
SAMPLED: Final = 200  # questions that the curve of a supervised run is measured on
FUSION_START: Final = 2.0
"""Weight of `fusion.log` that GRPO begins with: it learns from a ranking, not from chance. What no
question teaches stays there."""


class RankerTrainer:
    """Weights `[2, features]` of turns and items, their moments, and the step they are at."""

    def __init__(
        self, rows: Sequence[Row], config: RetrievalConfig, reader: Reader | None = None
    ) -> None:
        """reader: who answers with reward=answer; rows are then those with a right answer."""
        self.config = config
        if reader is not None:
            rows = [row for row in rows if row.asked is not None and row.asked.answer]
        self._packed = [pack(rows, part) for part in PARTS]
        self._shown = [shown_evidence(rows, part) for part in PARTS]
        self._rewards: list[list[RewardOf]] = [
            [evidence_shown(shows) for shows in one] for one in self._shown
        ]
        if reader is not None:
            self._rewards = [answered(rows, part, reader) for part in PARTS]
        self.step = 0
        self.weights = np.zeros((2, len(FEATURES)))
        for number, packed in enumerate(self._packed):
            if config.algorithm == "grpo" or not len(packed.sizes):
                self.weights[number, FEATURES.index("fusion.log")] = FUSION_START
        self._first, self._second = np.zeros_like(self.weights), np.zeros_like(self.weights)
        self._scales: list[tuple[np.ndarray, np.ndarray]] = []
        self._values: list[np.ndarray] = []
        for packed in self._packed:
            if not len(packed.sizes):
                none = np.zeros(len(FEATURES))
                self._scales.append((none, none + 1))
                self._values.append(packed.features)
                continue
            mean, scale, used = standard(packed)
            self._scales.append((mean, scale))
            # Half of the memory and of the time of float64; sums over questions stay float64.
            values = np.where(used, (packed.features - mean) / scale, 0.0)
            self._values.append(values.astype(np.float32))

    @property
    def questions(self) -> int:
        """How many questions turns are learnt from."""
        return len(self._packed[0].sizes)

    def advance(self) -> dict[str, float]:
        """One step; returns what was measured on the way."""
        measured: dict[str, float] = {}
        slopes = np.zeros_like(self.weights)
        for number, name in enumerate(("turns", "items")):
            if not len(self._packed[number].sizes):
                continue
            if self.config.algorithm == "supervised":
                slope, value = self._supervised(number)
                measured[f"loss_{name}"] = value
                measured[f"reward_{name}"] = self._share_found(number)
            else:
                slope, value = self._reinforced(number)
                measured[f"reward_{name}"] = value
            count = len(self._packed[number].sizes)
            slopes[number] = slope + self.config.ridge / count * self.weights[number]
        self.step += 1
        self._first = BETA1 * self._first + (1 - BETA1) * slopes
        self._second = BETA2 * self._second + (1 - BETA2) * slopes**2
        mean = self._first / (1 - BETA1**self.step)
        spread = np.sqrt(self._second / (1 - BETA2**self.step))
        share = (self.step - 1) / self.config.steps
        rate = self.config.learning_rate * 0.5 * (1 + math.cos(math.pi * share))
        moved = self.weights - rate * mean / (spread + EPSILON)
        self.weights = np.stack([bounded(one) for one in moved])
        return measured

    def linear(self, number: int) -> LinearRanking:
        """The ranker of turns (0) or items (1) as it stands."""
        mean, scale = self._scales[number]
        return LinearRanking(mean, scale, self.weights[number].copy())

    def _supervised(self, number: int) -> tuple[np.ndarray, float]:
        packed, values = self._packed[number], self._values[number]
        scores = values @ self.weights[number].astype(np.float32)
        loss, slope = loss_and_slope(scores.astype(np.float64), packed)
        count = len(packed.sizes)
        by_weights: np.ndarray = slope.astype(np.float32) @ values / count
        return by_weights.astype(np.float64), loss / count

    def _share_found(self, number: int) -> float:
        """The share of the evidence among the first `top_k`, over the first `SAMPLED` questions."""
        packed, shares = self._packed[number], []
        scores = self._values[number][: int(packed.sizes[:SAMPLED].sum())] @ self.weights[number]
        for question, shows in enumerate(self._shown[number][:SAMPLED]):
            start = packed.starts[question]
            own = scores[start : start + packed.sizes[question]]
            best = np.argsort(-own, kind="stable")[: self.config.top_k]
            shares.append(float(shows[best].any(axis=0).mean()))
        return float(np.mean(shares))

    def _reinforced(self, number: int) -> tuple[np.ndarray, float]:
        config, packed = self.config, self._packed[number]
        draw = np.random.default_rng((config.seed, self.step, number))
        policy = PlackettLuce(config.top_k, config.samples)
        chances = packed.weight / packed.weight.sum()
        drawn = draw.choice(len(packed.sizes), size=config.questions_per_step, p=chances)
        total, rewards = np.zeros(len(FEATURES)), []
        for question in drawn.tolist():
            own = slice(packed.starts[question], packed.starts[question] + packed.sizes[question])
            values = self._values[number][own]
            reward_of = self._rewards[number][question]
            slope, reward = policy.slope(values @ self.weights[number], reward_of, draw)
            total -= values.T @ slope
            rewards.append(reward)
        return total / len(drawn), float(np.mean(rewards))

    def state(self) -> dict[str, Any]:
        """All that going on needs."""
        return {
            "step": np.array(self.step),
            "weights": self.weights,
            "first": self._first,
            "second": self._second,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.step = int(state["step"])
        self.weights = np.array(state["weights"])
        self._first, self._second = np.array(state["first"]), np.array(state["second"])


def shown_evidence(rows: Sequence[Row], part: Part) -> list[np.ndarray]:
    """Of every packed question, which evidence each candidate shows: bool `[c, evidence]`."""
    shown = []
    for row, found in learnt_from(rows, part):
        shows = np.zeros((len(found.hit), row.evidence), bool)
        for at, turns in enumerate(found.sources):
            shows[at, list(turns)] = True
        shown.append(shows)
    return shown


def answered(rows: Sequence[Row], part: Part, reader: Reader) -> list[RewardOf]:
    """Of every packed question, the F1 of what the reader answers from drawn candidates.

    It sees them in the order in which they were said, so an order is judged by what it brings.
    """
    return [_f1_of(row.asked, found.lines, reader) for row, found in learnt_from(rows, part)]


def _f1_of(question: Question | None, lines: Sequence[str], reader: Reader) -> RewardOf:
    assert question is not None  # rows without are left out above
    language = language_of(question.text)

    def reward_of(order: np.ndarray) -> np.ndarray:
        rewards = []
        for drawn in np.sort(order, axis=1):
            said = reader.answer(question, [lines[int(at)] for at in drawn], language)
            golds = (question.answer, *question.accepted)
            rewards.append(max(squad_f1(said, gold, language) for gold in golds))
        return np.array(rewards)

    return reward_of
