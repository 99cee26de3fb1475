"""A language model that answers a question from what a memory found, the same always alike.

Each question is answered by itself and greedily: what else is in a batch changes the last digits,
and a run that is resumed would not repeat them. Answers are kept by a hash of model, question and
notes, in a file where one is given.

Invariants: the reader sees the notes, the question and its date, never gold; the same question over
the same notes is answered once; a policy's adapter is as it was before.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memograd.data import Question
from memograd.errors import BadInput, MemogradError
from memograd.evaluation.kept_rows import KeptRows
from memograd.memory.chat.chat_model import ChatMessage, ChatModel
from memograd.memory.language import Language
from memograd.rollout.types import Message

if TYPE_CHECKING:
    from memograd.policy.model_policy import ModelPolicy

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
        self._chat = chat
        self._known = _answers(cache)
        self.calls, self.seconds = 0, 0.0

    @contextmanager
    def kept_in(self, cache: Path) -> Iterator[None]:
        """Within this block answers are looked up and kept in that file."""
        before, self._known = self._known, _answers(cache)
        try:
            yield
        finally:
            self._known = before

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
        known = self._known.get(key)
        if known is None:
            began = time.perf_counter()
            said = self._chat.complete(messages, max_tokens=LONGEST_ANSWER)
            self.seconds += time.perf_counter() - began
            self.calls += 1
            known = {"answer": " ".join(said.split())}
            self._known.put(key, known)
        return str(known["answer"])


def _answers(cache: Path | None) -> KeptRows:
    again = "that question answered again"
    return KeptRows(cache, "answers", again, lambda row: isinstance(row["answer"], str))


class BaseModelChat:
    """A `ChatModel`: a language model without its adapter. An empty answer is one, too."""

    def __init__(self, model: ModelPolicy, name: str) -> None:
        self._model = model
        self.name = name

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
    ) -> str:
        """As of `ChatModel`, without a schema; raises BadInput for a chat that is too long."""
        if schema is not None:
            raise MemogradError(f"The reader {self.name} cannot be held to a JSON schema.")
        chat: list[Message] = [{"role": one["role"], "content": one["content"]} for one in messages]
        prompt = self._model.encode(chat)
        if len(prompt) + max_tokens > self._model.context_length:
            raise BadInput(
                f"A question with what it finds has {len(prompt)} tokens, too many for the "
                f"{self._model.context_length} of the reader {self.name}: show it less"
                " (build.token_budget, top_k)."
            )
        with self._model.untrained():
            [group] = self._model.sample(
                [prompt],
                num_generations=1,
                temperature=temperature,
                max_completion_length=max_tokens,
            )
        return group.texts[0]


def local_chat(named: str, device: str) -> BaseModelChat:
    """The local model of that name. Raises BadInput where there is none."""
    from memograd.config import LoraConfig
    from memograd.policy.language_model import LanguageModel

    model = LanguageModel.load(named, lora=LoraConfig(r=1), device=device, forward="rows")
    return BaseModelChat(model, named)
