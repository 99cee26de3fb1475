"""What scores answers, a model in this process or a server somewhere, and what goes over the wire.

Invariants: one finite number per item, in the order of the items, and what cannot be scored raises
(held by `RewardModel` and by `RemoteRewardModel`); a request that does not fit is refused (422)
before a model sees it, and a message is a role and a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat

from memograd.rollout.types import Message

Prompt = str | Sequence[Message]
"""A prompt: a text, or chat messages."""


class Item(NamedTuple):
    """An answer and what it answers."""

    prompt: Prompt
    answer: str


class Scorer(Protocol):
    """Gives every answer a number; only differences between answers to one prompt mean anything."""

    def score(self, items: Sequence[Item]) -> list[float]:
        """One finite score per item, in their order."""
        ...

    def length_slope(self) -> float:
        """What one character of an answer was found to earn by itself; `BadInput` if unknown."""
        ...


MAX_ITEMS = 256
"""Answers in one request, at most."""


def _is_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half a character (a lone surrogate) is no text") from None
    return text


Text = Annotated[str, AfterValidator(_is_text)]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class PromptMessage(_Wire):
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: Text


class ScoredPrompt(_Wire):
    """What every request has: the prompt, and how scores are wanted."""

    prompt: Text | Annotated[list[PromptMessage], Field(min_length=1)]
    """A text, or the messages so far."""
    length_control: bool = False
    """Take out what the answer's length earns by itself."""

    def item(self, answer: str) -> Item:
        """The prompt with this answer."""
        if isinstance(self.prompt, str):
            return Item(self.prompt, answer)
        messages = [Message(role=one.role, content=one.content) for one in self.prompt]
        return Item(messages, answer)


class ScoreRequest(ScoredPrompt):
    """One answer."""

    answer: Text


class PairRequest(ScoredPrompt):
    """Two answers to the same prompt."""

    first: Text
    second: Text


class BatchItem(_Wire):
    """An answer of a batch, with its prompt."""

    prompt: Text | Annotated[list[PromptMessage], Field(min_length=1)]
    answer: Text


class BatchRequest(_Wire):
    """Many answers."""

    items: Annotated[list[BatchItem], Field(min_length=1, max_length=MAX_ITEMS)]
    length_control: bool = False

    def asked(self) -> list[Item]:
        """The items as a scorer takes them."""
        return [ScoredPrompt(prompt=one.prompt).item(one.answer) for one in self.items]


class ScoreResponse(BaseModel):
    """The score of one answer."""

    score: FiniteFloat


class PairResponse(BaseModel):
    """Two scores; `probability` is that of `first` being better, sigmoid(margin)."""

    first: float
    second: float
    margin: float
    probability: float
    better: Literal["first", "second", "tie"]


class BatchResponse(BaseModel):
    """One score per item, in their order."""

    scores: list[FiniteFloat]


class Health(BaseModel):
    """Who answers, and whether it knows a price of length (None: it does not)."""

    status: Literal["ok"]
    model: str
    length_slope: float | None
