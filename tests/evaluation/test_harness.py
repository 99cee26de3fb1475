"""Evaluation asks everything once, greedily, whatever the batch size."""

from __future__ import annotations

import pytest

from memograd.config import LoraConfig
from memograd.evaluation import score_answers
from memograd.evaluation.metrics import evaluate_policy
from memograd.policy.language_model import LanguageModel
from memograd.rollout import Message, Scenario


@pytest.fixture(scope="module")
def policy(tiny_model_folder) -> LanguageModel:
    return LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=2), device="cpu")


@pytest.fixture(scope="module")
def questions() -> list[Scenario]:
    return [
        Scenario(
            id=f"q{number}",
            messages=(Message(role="user", content="why? " * number),),
            columns={"answer": "a b", "category": "temporal" if number % 2 else "single-hop"},
        )
        for number in range(1, 8)
    ]


def test_the_batch_size_changes_nothing(policy, questions) -> None:
    heard: list[int] = []
    whole, pieces = (
        evaluate_policy(
            policy,
            questions,
            method="m",
            max_completion_length=5,
            batch_size=size,
            on_progress=heard.append,
        )
        for size in (7, 3)
    )
    assert whole.answers == pieces.answers
    assert whole.report.scores == pieces.report.scores
    assert heard == [7, 3, 6, 7]


def test_scores_stand_in_the_order_of_the_questions(policy, questions) -> None:
    result = evaluate_policy(policy, questions, method="m", max_completion_length=5, batch_size=4)
    assert list(result.report.question_ids) == [scenario.id for scenario in questions]
    assert result.report.n == 7

    class Gold:
        def __init__(self, scenario: Scenario) -> None:
            self.answer = str(scenario.columns["answer"])
            self.category = str(scenario.columns["category"])

    assert result.report.scores == score_answers(result.answers, [Gold(s) for s in questions])
