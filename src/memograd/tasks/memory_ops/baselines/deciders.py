"""Who decides what becomes of a statement: the trained head, and everybody it must be better than.

A `Decider` chooses an action at each point of a walk, and names the item that leaves when a memory
is over its budget. Baselines (no training): keep everything, raw turns, random, recency window,
longest first, novelty gate, rules, and a chat model by the prompt of the running memory's
`ChatManager`. What that one writes is the statement itself, also where the model words it
otherwise, so that all methods are compared on which operation they choose.

Invariants: only what a running memory knows is looked at, never the log's questions or gold
operations; a decision that a chat model failed to give changes nothing and is counted as a failure,
never taken for a NONE.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from memograd.errors import BadInput, MemogradError
from memograd.memory.chat.chat_model import ChatMessage, ChatModel
from memograd.memory.manager import ChatManager, MemoryManager
from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.network import Batch, logits_BA, writing_worth
from memograd.memory.manager.trained.observation import ADD, NONE, SLOTS, action_of
from memograd.tasks.memory_ops.walk import Walk


class Decider(Protocol):
    """One for each walk; it may remember what it did.

    calls: of a language model so far. failures: decisions that could not be had; failure: the last
    one in words.
    """

    @property
    def calls(self) -> int: ...

    @property
    def failures(self) -> int: ...

    @property
    def failure(self) -> str: ...

    def decide(self, walk: Walk) -> int:
        """The action at the walk's point."""
        ...

    def evict(self, walk: Walk) -> str:
        """The item that leaves a memory over its budget."""
        ...


MakeDecider = Callable[[], Decider]


class KeepAll:
    """Remembers every statement (but no request to forget); the oldest leave first."""

    calls, failures, failure = 0, 0, ""

    def decide(self, walk: Walk) -> int:
        """ADD."""
        return NONE if walk.point.fact.retracts else ADD

    def evict(self, walk: Walk) -> str:
        """The item that was not touched for longest."""
        return next(iter(walk.memory.carried))


class RawTurns(KeepAll):
    """Keeps what was said, word for word, requests to forget too; for logs in the view of turns."""

    def decide(self, walk: Walk) -> int:
        """ADD."""
        return ADD


class LongestFirst(KeepAll):
    """Remembers everything; the shortest statements leave first."""

    def evict(self, walk: Walk) -> str:
        """The item with the fewest tokens."""
        tokens = walk.log.tokens_N
        return min(walk.memory.carried, key=lambda item: tokens[walk.memory.carried[item]])


class RandomChoice(KeepAll):
    """Any allowed operation with equal probability; any item leaves."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def decide(self, walk: Walk) -> int:
        """Any."""
        return int(self._rng.choice(np.flatnonzero(walk.observe().allowed_A)))

    def evict(self, walk: Walk) -> str:
        """Any."""
        return self._rng.choice(list(walk.memory.carried))


class RandomKeep(RandomChoice):
    """Remembers everything; any item leaves."""

    def decide(self, walk: Walk) -> int:
        """ADD."""
        return KeepAll.decide(self, walk)


class NoveltyGate(KeepAll):
    """Remembers what is less similar to every item than a threshold on the cosine."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def decide(self, walk: Walk) -> int:
        """ADD or NONE."""
        if walk.point.fact.retracts:
            return NONE
        near = max((hit.why.similarity for hit in walk.point.hits), default=-1.0)
        return ADD if near < self._threshold else NONE


class ByManager(KeepAll):
    """A manager of the running memory, such as the rules; its updates carry the new statement."""

    def __init__(self, manager: MemoryManager) -> None:
        self._manager = manager

    def decide(self, walk: Walk) -> int:
        """What the manager says."""
        point = walk.point
        op = self._manager.decide(walk.memory.state, point.fact, point.query, point.hits).op
        action = action_of(op, point.hits)
        assert action is not None, "managers name related items only"
        # A note that merely says the item again, as rules give to a request to forget, is nothing.
        return action if walk.observe().allowed_A[action] else NONE


class ByHead(KeepAll):
    """The trained head; the items whose writing it was least sure of leave first."""

    def __init__(self, head: TrainedHead) -> None:
        self._head = head
        self._worth: dict[str, float] = {}

    def decide(self, walk: Walk) -> int:
        """The most probable action."""
        logits_A = logits_BA(self._head.weights, self._head.shape, Batch.of([walk.observe()]))[0]
        action = int(logits_A.argmax())
        point = walk.point
        if action == ADD:
            self._worth[walk.log.log.statements[point.number].id] = writing_worth(logits_A)
        elif 2 <= action < 2 + SLOTS:
            self._worth[point.hits[action - 2].record.id] = writing_worth(logits_A)
        return action

    def evict(self, walk: Walk) -> str:
        """The item that is worth least; of equal ones the oldest."""
        return min(walk.memory.carried, key=lambda item: self._worth[item])


class CountedChat:
    """Passes chats on and counts them. with_schema: whether the model can be held to JSON."""

    def __init__(self, chat: ChatModel, *, with_schema: bool = True) -> None:
        self._chat, self._with_schema = chat, with_schema
        self.name = chat.name
        self.calls = 0

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
    ) -> str:
        """As of `ChatModel`."""
        self.calls += 1
        return self._chat.complete(
            messages,
            max_tokens=max_tokens,
            temperature=temperature,
            schema=schema if self._with_schema else None,
        )


class ByChat(ByManager):
    """Asks a chat model; the oldest items leave first.

    with_schema: see `CountedChat`; without, the prompt alone asks for JSON. Raises BadInput when
    the model cannot be asked at all.
    """

    def __init__(self, chat: ChatModel, *, with_schema: bool = True) -> None:
        self._chat = CountedChat(chat, with_schema=with_schema)
        super().__init__(ChatManager(self._chat))

    @property
    def calls(self) -> int:  # type: ignore[override]
        """Questions to the model so far; an answer that cannot be used is asked for again."""
        return self._chat.calls

    def decide(self, walk: Walk) -> int:
        """What the model says; nothing where it fails."""
        try:
            return super().decide(walk)
        except BadInput:
            raise
        except MemogradError as error:
            self.failures += 1
            self.failure = str(error)
            return NONE
