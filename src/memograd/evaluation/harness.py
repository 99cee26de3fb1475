"""Asking a policy all questions of an evaluation, greedily, and scoring what it says.

Invariant: the report of a policy does not depend on the batch size; every question is asked once,
and its scores stand in the order of the scenarios.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memograd.evaluation.metrics import score_answers
from memograd.evaluation.report import EvaluationReport
from memograd.policy.protocol import Policy
from memograd.rewards.matching import accepted_answers
from memograd.rollout.types import Scenario


@dataclass(frozen=True)
class PolicyAnswers:
    """A report and the answers behind it, in the order of the scenarios."""

    report: EvaluationReport
    answers: tuple[str, ...]


@dataclass(frozen=True)
class _Gold:
    answer: str
    category: str
    accepted: tuple[str, ...] = ()


def evaluate_policy(
    policy: Policy,
    scenarios: Sequence[Scenario],
    *,
    method: str,
    max_completion_length: int,
    batch_size: int,
    on_progress: Callable[[int], None] = lambda done: None,
) -> PolicyAnswers:
    """Answer every scenario greedily; `method` names the report.

    Scenarios need the columns `answer` (one, or a list of right ones) and `category`, by which an
    answer is scored. They may have `kind`, by which results are shown where that is another, and
    `conversation`, whose question it is. `on_progress` hears how many are done.
    """
    start = time.perf_counter()
    answers = greedy_answers(
        policy,
        scenarios,
        max_completion_length=max_completion_length,
        batch_size=batch_size,
        on_progress=on_progress,
    )
    seconds = time.perf_counter() - start
    return scored_answers(answers, scenarios, method=method, seconds=seconds)


def greedy_answers(
    policy: Policy,
    scenarios: Sequence[Scenario],
    *,
    max_completion_length: int,
    batch_size: int,
    on_progress: Callable[[int], None],
) -> list[str]:
    """One answer to each scenario, so many at once; `on_progress` hears how many are done."""
    prompts = [policy.encode(scenario.prompt) for scenario in scenarios]
    answers: list[str] = []
    for first in range(0, len(prompts), batch_size):
        groups = policy.sample(
            prompts[first : first + batch_size],
            num_generations=1,
            temperature=0.0,
            max_completion_length=max_completion_length,
            generator=None,
        )
        answers.extend(group.texts[0] for group in groups)
        on_progress(len(answers))
    return answers


def scored_answers(
    answers: Sequence[str], scenarios: Sequence[Scenario], *, method: str, seconds: float
) -> PolicyAnswers:
    """The report of answers that are there already; `scenarios` as `evaluate_policy` has them."""
    golds = []
    for scenario in scenarios:
        answer, *accepted = accepted_answers(scenario.columns["answer"])
        golds.append(_Gold(answer, str(scenario.columns["category"]), tuple(accepted)))
    report = EvaluationReport(
        method=method,
        question_ids=[scenario.id for scenario in scenarios],
        categories=[
            str(scenario.columns.get("kind", scenario.columns["category"]))
            for scenario in scenarios
        ],
        scores=score_answers(answers, golds),
        seconds=seconds,
        groups=[str(scenario.columns.get("conversation", "")) for scenario in scenarios],
    )
    return PolicyAnswers(report, tuple(answers))
