"""Which conversations are for training and which for evaluation.

Invariant: a split is by whole conversations. Questions of one conversation share their turns, so a
split by question would train on what it evaluates (`tests/data/test_splits.py`). May import errors
and `conversation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memograd.data.conversation import Conversation
from memograd.errors import BadInput


@dataclass(frozen=True)
class Split:
    """Two sets of conversations without a common member."""

    train: tuple[Conversation, ...]
    eval: tuple[Conversation, ...]


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
) -> Split:
    """The split by conversation ids; raises BadInput when an id is unknown or named twice."""
    named = [*train, *eval]
    for wanted in named:
        if named.count(wanted) > 1:
            raise BadInput(
                f"Conversation {wanted!r} is named more than once in the split: a conversation is"
                " either for training or for evaluation, once."
            )
    return Split(
        train=select_conversations(conversations, train),
        eval=select_conversations(conversations, eval),
    )
