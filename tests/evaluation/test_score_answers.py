"""Evaluation scores are the training rewards, question by question."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from memograd.errors import BadInput
from memograd.evaluation import METRICS, score_answers
from memograd.rewards import RewardError, get_reward


@dataclass(frozen=True)
class Asked:
    answer: str
    category: str


QUESTIONS = [
    Asked("pottery, swimming", "multi-hop"),
    Asked("7 May 2023", "temporal"),
    Asked("她喜欢画画", "single-hop"),
]
ANSWERS = ["swimming", "7 May", "画画"]


def test_scores_by_hand() -> None:
    scores = score_answers(ANSWERS, QUESTIONS)
    assert list(scores) == list(METRICS)
    assert scores["locomo_f1"] == pytest.approx([0.5, 0.8, 2 * 2 / 7])
    assert scores["mem0_f1"][1] == pytest.approx(0.8)


def test_scores_are_the_rewards() -> None:
    scores = score_answers(ANSWERS, QUESTIONS)
    columns = {
        "answer": [question.answer for question in QUESTIONS],
        "category": [question.category for question in QUESTIONS],
    }
    for metric in METRICS:
        assert scores[metric] == get_reward(metric)([""] * 3, ANSWERS, **columns)


def test_other_lengths_are_refused() -> None:
    with pytest.raises(BadInput, match="2 answers for 3 questions"):
        score_answers(ANSWERS[:2], QUESTIONS)


def test_an_unknown_category_is_an_error() -> None:
    with pytest.raises(RewardError, match=r"locomo_f1 raised BadInput.*fun.*answer-1"):
        score_answers(["x"], [Asked("x", "fun")])
