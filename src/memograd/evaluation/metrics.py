"""Scores answers with the same functions that reward them in training.

One implementation for both, so a training curve and an evaluation table can be laid side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memograd.errors import BadInput
from memograd.rewards import WeightedReward, compute_rewards, get_reward

METRICS = ("locomo_f1", "mem0_f1", "mem0_bleu1")
"""What every evaluation reports, in the order of its tables."""


class ScoredQuestion(Protocol):
    """What scoring needs of a question: its gold answer and its category's name.

    Other answers that are as right stand in `accepted`, which a question may have.
    """

    @property
    def answer(self) -> str: ...

    @property
    def category(self) -> str: ...


def score_answers(
    answers: Sequence[str], questions: Sequence[ScoredQuestion]
) -> dict[str, list[float]]:
    """Every metric of `METRICS`, one score in [0, 1] per question, in the order given.

    Where several answers are right, each metric takes the best score among them.

    Raises:
        BadInput: there are not as many answers as questions.
        RewardError: an answer cannot be scored, e.g. because its category is unknown.
    """
    if len(answers) != len(questions):
        raise BadInput(f"There are {len(answers)} answers for {len(questions)} questions.")
    table = compute_rewards(
        [WeightedReward(name, get_reward(name)) for name in METRICS],
        rollout_ids=[f"answer-{number}" for number in range(1, len(questions) + 1)],
        prompts=[""] * len(questions),
        completions=answers,
        columns={
            "answer": [
                [question.answer, *getattr(question, "accepted", ())] for question in questions
            ],
            "category": [question.category for question in questions],
        },
    )
    return {name: table.applied(name) for name in METRICS}
