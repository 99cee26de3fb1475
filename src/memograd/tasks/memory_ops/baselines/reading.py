"""Answers from what a memory found: a chat model reads the items, and its answers are scored.

Evidence recall says what could be answered; a reader says what is. A small reader is wrong about
most of it, whatever the memory, so its scores stand beside recall and never in place of it.

Invariant: a question with several right answers gets the best score among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memograd.data import Question
from memograd.evaluation.judge import AnsweredQuestion, Judge
from memograd.evaluation.text_metrics import ANSWER_METRICS, answer_scores
from memograd.memory.language import Language
from memograd.rewards import CATEGORIES
from memograd.tasks.base.reading import Reader
from memograd.tasks.memory_ops.baselines.measure import Looked


@dataclass(frozen=True)
class ReaderAnswers:
    """Scores of answers by metric, one per question, and the answers; quality: of the judge."""

    scores: dict[str, list[float]]
    answers: list[str]
    quality: list[float]
    measured_by: str


def read_and_score(
    looked: Sequence[Looked],
    languages: Mapping[str, Language],
    reader: Reader,
    judge: Judge | None = None,
) -> ReaderAnswers:
    """Answer each question from the texts that it found, and score the answers.

    languages: by id of the log. Response quality is the judge's verdict where there is a judge, and
    SQuAD's F1 where there is none.
    """
    scores: dict[str, list[float]] = {metric: [] for metric in ANSWER_METRICS}
    answers, quality = [], []
    for one in looked:
        question, language = one.asked.probe.probe.question, languages[one.log]
        said = reader.answer(question, one.texts, language)
        best = best_scores(said, question, language)
        answers.append(said)
        for metric in ANSWER_METRICS:
            scores[metric].append(best[metric])
        if judge is None:
            quality.append(best["squad_f1"])
        else:
            golds = (question.answer, *question.accepted)
            judged = (
                AnsweredQuestion(question.id, question.text, gold, said, language) for gold in golds
            )
            quality.append(float(any(judge.verdict(one).correct for one in judged)))
    return ReaderAnswers(scores, answers, quality, judge.name if judge else "squad_f1")


def best_scores(said: str, question: Question, language: Language) -> dict[str, float]:
    """All of `ANSWER_METRICS`, each the best over the answers that count as right."""
    category = question.category if question.category in CATEGORIES else "single-hop"
    if question.adversarial:
        category = "single-hop"  # LoCoMo's rule for these looks for its own phrase, not the answer
    each = [
        answer_scores(said, gold, language, category=category)
        for gold in (question.answer, *question.accepted)
    ]
    return {metric: max(scores[metric] for scores in each) for metric in ANSWER_METRICS}
