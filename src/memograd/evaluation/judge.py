"""A chat model as judge: is this answer right, given the gold one?

Words do not tell a right answer in other words from a wrong one; a judge does, and is fooled in
other ways: policies trained on a judge grow longer, not better. So a judge's score stands beside
the word metrics (`text_metrics.py`) and never replaces them, and its model and prompt are named.

The judge sees question, gold and answer as JSON, so no answer can pass for an instruction of ours.
Its reply is checked, and asked for once more with the fault named; a reply that stays unusable, or
an endpoint that fails, is an error that names the question. Verdicts are kept by a hash of model,
prompt and texts, so judging goes on where it stopped.

Invariant: every score is a verdict that the model gave for exactly these texts, never a default;
what was judged once is not asked again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from memograd.errors import BadInput, MemogradError
from memograd.evaluation.judge_cache import JudgeCache
from memograd.evaluation.judge_prompts import JUDGE_PROMPTS, Strictness
from memograd.memory.chat.chat_answers import UnusableAnswer, ask_checked
from memograd.memory.chat.chat_model import ChatMessage, ChatModel
from memograd.memory.language import Language
from memograd.rewards.squad import squad_f1

VERDICT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "correct": {"type": "boolean"}},
    "required": ["reason", "correct"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """An answer to judge. `id` names it in errors; the texts alone make the verdict's key."""

    id: str
    question: str
    gold: str
    answer: str
    language: Language


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right, and the judge's reason in one sentence."""

    correct: bool
    reason: str


class Judge:
    """Judges answers with one chat model and one of the named prompts.

    strictness: `strict` or `lenient`, see `judge_prompts.py`. cache: the JSONL file of verdicts,
    None for this process alone. max_tokens: bound of one reply. Raises BadInput for another
    strictness or a damaged cache.
    """

    def __init__(
        self,
        chat: ChatModel,
        strictness: Strictness,
        *,
        cache: Path | None = None,
        max_tokens: int = 300,
    ) -> None:
        if strictness not in get_args(Strictness):
            known = " or ".join(get_args(Strictness))
            raise BadInput(f'There is no judge prompt "{strictness}"; use {known}.')
        self._chat = chat
        self._strictness: Strictness = strictness
        self._cache = JudgeCache(cache)
        self._max_tokens = max_tokens
        self.calls = 0
        """How many answers were given to the model, and not found in the cache."""

    @property
    def name(self) -> str:
        """What a table calls it: `judge strict, <model>`."""
        return f"judge {self._strictness}, {self._chat.name}"

    def verdict(self, asked: AnsweredQuestion) -> Verdict:
        """The verdict on one answer; MemogradError with its id when there is none to be had."""
        told = JUDGE_PROMPTS[self._strictness, asked.language]
        shown = {"question": asked.question, "gold": asked.gold, "answer": asked.answer}
        data = json.dumps(shown, ensure_ascii=False)
        key = hashlib.sha256(json.dumps([self._chat.name, told, data]).encode()).hexdigest()
        known = self._cache.get(key)
        if known is not None:
            return _verdict(known)
        messages: list[ChatMessage] = [
            {"role": "system", "content": told},
            {"role": "user", "content": data},
        ]
        self.calls += 1
        try:
            found = ask_checked(
                self._chat, messages, _verdict, schema=VERDICT_SCHEMA, max_tokens=self._max_tokens
            )
        except MemogradError as error:
            raise MemogradError(f"The answer to {asked.id} was not judged: {error}") from error
        row = {"model": self._chat.name, "prompt": self._strictness, "id": asked.id}
        self._cache.put(key, {**row, "correct": found.correct, "reason": found.reason})
        return found

    def scores(self, asked: Sequence[AnsweredQuestion]) -> list[float]:
        """1 for each answer that is right and 0 for each that is not, in their order."""
        return [float(self.verdict(one).correct) for one in asked]


@dataclass(frozen=True)
class ResponseQuality:
    """One score in [0, 1] per answer, and what gave it, as a table must say."""

    measured_by: str
    scores: list[float]


def response_quality(
    asked: Sequence[AnsweredQuestion], judge: Judge | None = None
) -> ResponseQuality:
    """How good the answers are: the judge's scores where there is one, else `squad_f1`.

    One measure for all answers of a table, never a mixture; `measured_by` is its name.
    """
    if judge is not None:
        return ResponseQuality(judge.name, judge.scores(asked))
    return ResponseQuality("squad_f1", [squad_f1(a.answer, a.gold, a.language) for a in asked])


def _verdict(reply: Mapping[str, Any]) -> Verdict:
    correct, reason = reply.get("correct"), reply.get("reason")
    if not isinstance(correct, bool):
        raise UnusableAnswer('"correct" must be true or false.')
    if not isinstance(reason, str):
        raise UnusableAnswer('"reason" must be a text.')
    return Verdict(correct, " ".join(reason.split()))
