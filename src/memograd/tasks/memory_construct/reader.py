"""Who answers questions from the memory that is built, where `build.reader` asks for it.

The model is the policy's own base, its adapter off, or another one. Answers are kept in
`reader.jsonl` of the run folder, so that nothing is answered twice, also after a kill.

Invariant: within a run the same question over the same notes has one answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memograd.data import Question
from memograd.memory.language import Language
from memograd.policy.model_policy import ModelPolicy
from memograd.tasks.base.reading import BaseModelChat, Reader, local_chat

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


def open_reader(named: str, policy: ModelPolicy, device: str) -> RunReader:
    """The reader of that name: `base` is the policy's own base model.

    Raises:
        BadInput: there is no such model.
    """
    if named == BASE:
        return RunReader(BaseModelChat(policy, f"{BASE}:{policy.name}"))
    return RunReader(local_chat(named, device))
