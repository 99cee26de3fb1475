"""From scores to the probability that a hit holds what was asked.

    P(hit) = P(the memory answers the question) * P(this is where | it does)

Two logistic models: the first reads facts of the question as a whole (how similar the best record
is, how many of its words any record holds), the second how far a hit is behind the best and which
share of all scores it has. The second never falls with the score, so probabilities order hits as
scores do. Invariant: in (0, 1), and sorted like the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from memograd.memory.search.ranker.lists import Lists, Seen

FACTS: Final = (
    "best_cosine", "second_cosine", "best_gap", "best_cover", "best_window_cover", "best_bm25",
    "unseen", "unseen_terms", "terms", "log_records", "match_gap", "agree", "margin",
)  # fmt: skip
HIT_FACTS: Final = ("behind", "share", "log_candidates", "margin")


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


def hit_facts(scores: np.ndarray) -> np.ndarray:
    """float64 `[c, hit facts]` of the scores of all candidates."""
    if not len(scores):
        return np.zeros((0, len(HIT_FACTS)))
    behind = scores - scores.max()
    share = behind - np.log(np.exp(behind).sum())
    same = np.ones(len(scores))
    return np.stack([behind, share, same * np.log(len(scores)), same * _margin(scores)], axis=1)


def _margin(scores: np.ndarray) -> float:
    """How far the fifth is behind the first."""
    top = np.sort(scores)[::-1]
    return float(top[0] - top[min(4, len(top) - 1)])


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
        gap = float(np.clip((some.max() - none.max()) / spread, -4, 4))
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
    return np.append(facts, [agree[int(scores.argmax())], _margin(scores)])


def _logistic(x: np.ndarray | float) -> np.ndarray:
    result: np.ndarray = 1.0 / (1.0 + np.exp(-np.clip(x, -40, 40)))
    return result
