"""Which conversations are for training and which for evaluation.

Invariants: a split is by whole conversations, since questions of one conversation share their
turns, and a split by question would train on what it evaluates; a conversation is the same whatever
its id is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memograd.data.conversation import Conversation
from memograd.errors import BadInput
from memograd.memory import RawTurn

Told = tuple[str, Sequence[str]]  # an id, and what is said under it


@dataclass(frozen=True)
class ConversationSplit:
    """Two sets of conversations without a common member."""

    train: tuple[Conversation, ...]
    eval: tuple[Conversation, ...]


class HasTurns(Protocol):
    """A `Conversation`, a `Lifelog`."""

    @property
    def id(self) -> str: ...

    @property
    def turns(self) -> tuple[RawTurn, ...]: ...


def told_in(one: HasTurns) -> Told:
    """A conversation as `in_common` compares it."""
    return one.id, [turn.text for turn in one.turns]


def in_common(known: Iterable[Told], held_out: Iterable[Told]) -> list[str]:
    """Ids of what is held out and known too: by its id, or word for word under another id."""
    ids, said = set(), set()
    for identity, texts in known:
        ids.add(identity)
        if texts:
            said.add(_words(texts))
    return [
        identity
        for identity, texts in held_out
        if identity in ids or (texts and _words(texts) in said)
    ]


def _words(texts: Sequence[str]) -> str:
    return "\n".join(" ".join(text.split()) for text in texts)


def select_conversations(
    conversations: Sequence[Conversation], ids: Sequence[str]
) -> tuple[Conversation, ...]:
    """The conversations of these ids, in this order; raises BadInput when one is not there."""
    by_id = {conversation.id: conversation for conversation in conversations}
    for wanted in ids:
        if wanted not in by_id:
            raise BadInput(
                f"There is no conversation {wanted!r} in the data: choose from {', '.join(by_id)}."
            )
    return tuple(by_id[wanted] for wanted in ids)


def split_by_conversation(
    conversations: Sequence[Conversation], train: Sequence[str], eval: Sequence[str]
) -> ConversationSplit:
    """The split by conversation ids.

    Raises BadInput when an id is unknown or named twice, or when both sides say the same.
    """
    named = [*train, *eval]
    for wanted in named:
        if named.count(wanted) > 1:
            raise BadInput(
                f"Conversation {wanted!r} is named more than once in the split: a conversation is"
                " either for training or for evaluation, once."
            )
    split = ConversationSplit(
        train=select_conversations(conversations, train),
        eval=select_conversations(conversations, eval),
    )
    if common := in_common(map(told_in, split.train), map(told_in, split.eval)):
        raise BadInput(
            f"Conversation {common[0]!r} is there word for word under another id, which is to be"
            " trained on: leave one of the two out of the split."
        )
    return split
