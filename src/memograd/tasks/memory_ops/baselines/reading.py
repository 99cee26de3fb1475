"""Answers from what a memory found: a chat model reads the items, and its answers are scored.

Evidence recall says what could be answered; a reader says what is. A small reader is wrong about
most of it, whatever the memory, so its scores stand beside recall and never in place of it.

Invariants: the reader sees the items found, the question and its date, never gold; the same chat is
answered once, then from the file; a question with several right answers gets the best score among
them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memograd.data import Question
from memograd.errors import BadInput
from memograd.evaluation.judge import AnsweredQuestion, Judge
from memograd.evaluation.judge_cache import append_line
from memograd.evaluation.text_metrics import ANSWER_METRICS, answer_scores
from memograd.memory.chat.chat_model import ChatMessage, ChatModel
from memograd.memory.language import Language
from memograd.rewards import CATEGORIES
from memograd.tasks.memory_ops.baselines.measure import Looked

LONGEST_ANSWER: Final = 32  # tokens
_TOLD: Final[Mapping[str, str]] = {
    "en": "Answer the question from the notes in as few words as possible. If the notes do not"
    " tell, answer: I don't know",
    "zh": "根据笔记,用尽量少的字回答问题。笔记里没有答案时,回答:不知道",
}
_ASKED: Final[Mapping[str, str]] = {
    "en": "Notes:\n{notes}\n\n{today}Question: {question}",
    "zh": "笔记:\n{notes}\n\n{today}问题:{question}",
}
_TODAY: Final[Mapping[str, str]] = {
    "en": "Today is {:%Y-%m-%d}.\n",
    "zh": "今天是{:%Y-%m-%d}。\n",
}


class Reader:
    """Answers questions from notes. cache: the JSONL file of answers, None for this process alone.

    calls, seconds: of the model, what was found in the file not counted. Raises BadInput when the
    file is damaged.
    """

    def __init__(self, chat: ChatModel, *, cache: Path | None = None) -> None:
        self._chat, self._cache = chat, cache
        self._known = _read(cache) if cache is not None else {}
        self.calls, self.seconds = 0, 0.0

    @property
    def name(self) -> str:
        """The model's."""
        return self._chat.name

    def answer(self, question: Question, notes: Sequence[str], language: Language) -> str:
        """The answer, on one line. Raises MemogradError when the model fails."""
        messages: list[ChatMessage] = [
            {"role": "system", "content": _TOLD[language]},
            {
                "role": "user",
                "content": _ASKED[language].format(
                    notes="\n".join(f"- {' '.join(note.split())}" for note in notes) or "-",
                    today=_TODAY[language].format(question.asked_at) if question.asked_at else "",
                    question=question.text,
                ),
            },
        ]
        asked = json.dumps([self._chat.name, messages], ensure_ascii=False)
        key = hashlib.sha256(asked.encode()).hexdigest()
        if key not in self._known:
            began = time.perf_counter()
            said = self._chat.complete(messages, max_tokens=LONGEST_ANSWER)
            self.seconds += time.perf_counter() - began
            self.calls += 1
            self._known[key] = " ".join(said.split())
            if self._cache is not None:
                row = {"key": key, "answer": self._known[key]}
                line = json.dumps(row, ensure_ascii=False) + "\n"
                append_line(self._cache, line.encode("utf-8"))
        return self._known[key]


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


def _read(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    known: dict[str, str] = {}
    lines = path.read_bytes().split(b"\n")[:-1]  # behind the last line break: cut off by a crash
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            known[row["key"]] = row["answer"]
        except (ValueError, KeyError, TypeError):
            raise BadInput(
                f"Line {number} of the answers {path} is damaged: remove it to have that question"
                " answered again."
            ) from None
    return known
