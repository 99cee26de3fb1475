"""Every number that compares an answer with the gold one by its words, in English and Chinese.

| name | what it is |
|---|---|
| `squad_em`, `squad_f1` | equality and F1 of words as in SQuAD; characters in Chinese |
| `locomo_f1` | LoCoMo's own F1: stems, and a rule per category |
| `mem0_f1`, `mem0_bleu1` | mem0's F1 over sets of words, and BLEU-1 |
| `rouge_l` | F of the longest common subsequence (Lin 2004), stemmed; characters in Chinese |

`score_answers` scores with the very functions that reward answers in training, so a training curve
and a table can be laid side by side. Each number looks at words alone: a right answer in other
words scores low, and so does a long answer that holds the gold; that is what the judge is for
(`judge.py`). ROUGE-L is computed by the library rouge-score with a tokenizer of ours, because the
library's knows ASCII only and would give a Chinese answer no token at all.

`evaluate_policy` asks a policy all questions of an evaluation, greedily, and scores what it says.

Invariants: scores lie in [0, 1]; an answer equal to the gold scores 1 wherever it has a word; for
ASCII, ROUGE-L is the library's own number. The report of a policy does not depend on the batch
size; every question is asked once, and its scores stand in the order of the scenarios.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol, get_args

import regex

from memograd.errors import BadInput
from memograd.evaluation.report import EvaluationReport
from memograd.memory.language import Language
from memograd.policy.protocol import Policy
from memograd.rewards import WeightedReward, compute_rewards, get_reward
from memograd.rewards.matching import accepted_answers, separate_cjk
from memograd.rewards.overlap import bleu1, locomo_score, set_f1, squad_em, squad_f1
from memograd.rollout.types import Scenario

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


ANSWER_METRICS: Final = (
    *("squad_em", "squad_f1", "locomo_f1"),
    *("mem0_f1", "mem0_bleu1", "rouge_l"),
)
"""What `answer_scores` gives, in the order of the tables."""

_STEMMED_FROM = 4  # letters; rouge-score leaves shorter words as they are
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")


def answer_scores(
    prediction: str, gold: str, language: Language, *, category: str = "single-hop"
) -> dict[str, float]:
    """All of `ANSWER_METRICS` for one answer, each in [0, 1].

    category: LoCoMo's name for the kind of question, which only `locomo_f1` looks at; the default
    is its plain F1, for questions of other data sets. Raises BadInput for another language or
    category.
    """
    if language not in get_args(Language):
        raise BadInput(
            f'Answers are compared in {" or ".join(get_args(Language))}, not "{language}".'
        )
    return {
        "squad_em": squad_em(prediction, gold, language),
        "squad_f1": squad_f1(prediction, gold, language),
        "locomo_f1": locomo_score(prediction, gold, category),
        "mem0_f1": set_f1(prediction, gold),
        "mem0_bleu1": bleu1(prediction, gold),
        "rouge_l": rouge_l(prediction, gold),
    }


def rouge_l(prediction: str, gold: str) -> float:
    """ROUGE-L's F (beta 1) in [0, 1]; 0 when either has no word."""
    return float(_scorer().score(gold, prediction)["rougeL"].fmeasure)


def rouge_words(text: str) -> list[str]:
    """Lower-case words of letters and digits, Porter-stemmed; a Han character is a word."""
    stem = _stemmer().stem
    words = _WORD.findall(separate_cjk(text).lower())
    return [stem(word) if len(word) >= _STEMMED_FROM else word for word in words]


class _Tokenizer:
    """What rouge-score asks of a tokenizer."""

    def tokenize(self, text: str) -> list[str]:
        return rouge_words(text)


@cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], tokenizer=_Tokenizer())


@cache
def _stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


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
