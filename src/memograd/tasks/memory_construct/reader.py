"""Who answers questions from the memory that is built, where `build.reader` asks for it.

The model is the policy's own base, its adapter off, or another one. Each question is answered by
itself and greedily: what else is in a batch changes the last digits, and a run that is resumed
would not repeat them. Answers are kept in `reader.jsonl` of the run folder by a hash of model,
question and notes, so that nothing is answered twice, also after a kill.

Invariants: within a run the same question over the same notes has one answer, and the policy's
adapter is as it was before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from memograd.config import LoraConfig
from memograd.data import Question
from memograd.errors import BadInput, MemogradError
from memograd.memory.chat.chat_model import ChatMessage
from memograd.memory.language import Language
from memograd.policy.language_model import LanguageModel
from memograd.rollout.types import Message
from memograd.tasks.memory_ops.baselines.reading import Reader

BASE: Final = "base"
ANSWERS: Final = "reader.jsonl"


class RunReader:
    """A `NoteReader`, whose answers are kept in a run folder while that is open."""

    def __init__(self, chat: BaseModelChat) -> None:
        self._chat = chat
        self._reader = Reader(chat)

    @property
    def name(self) -> str:
        """The model's."""
        return self._chat.name

    @contextmanager
    def opened(self, folder: Path) -> Iterator[None]:
        """Within this block answers are looked up and kept in the file of the folder."""
        self._reader = Reader(self._chat, cache=folder / ANSWERS)
        try:
            yield
        finally:
            self._reader = Reader(self._chat)

    def answer(self, question: Question, notes: Sequence[str], language: Language) -> str:
        """As of `NoteReader`."""
        return self._reader.answer(question, notes, language)


class BaseModelChat:
    """A `ChatModel`: a language model without its adapter. An empty answer is one, too."""

    def __init__(self, model: LanguageModel, name: str) -> None:
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
                f"{self._model.context_length} of the reader {self.name}: lower build.token_budget."
            )
        with self._model.untrained():
            [group] = self._model.sample(
                [prompt],
                num_generations=1,
                temperature=temperature,
                max_completion_length=max_tokens,
            )
        return group.texts[0]


def open_reader(named: str, policy: LanguageModel, device: str) -> RunReader:
    """The reader of that name: `base` is the policy's own base model.

    Raises:
        BadInput: there is no such model.
    """
    if named == BASE:
        return RunReader(BaseModelChat(policy, f"{BASE}:{policy.name}"))
    model = LanguageModel.load(named, lora=LoraConfig(r=1), device=device, forward="rows")
    return RunReader(BaseModelChat(model, named))
