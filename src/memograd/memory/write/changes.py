"""What happened, as events for the journal: heard, added, updated, deleted, forgotten, declined.

Updating and deleting close a version: the event keeps it as `before` with its `valid_to` set.
Invariant: folding these events gives the items that they were made of. Pure.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memograd.memory.records.events import EventKind, NewEvent
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn


def heard(turn: RawTurn, scope: Scope, *, verbatim: bool) -> NewEvent:
    """A raw turn. verbatim: an item repeats it word for word, so it needs no search of its own."""
    after = {"turn": turn.to_json(), "verbatim": verbatim}
    return NewEvent(EventKind.TURN, scope, turn.id, after=after)


def added(item: MemoryItem, *, actor: str, reason: str) -> NewEvent:
    """A new item."""
    return NewEvent(
        EventKind.ADD, item.scope, item.id, after=item.to_json(), actor=actor, reason=reason
    )


def updated(before: MemoryItem, after: MemoryItem, *, actor: str, reason: str) -> NewEvent:
    """A new version of an item; if it says something else, the old one is true until then."""
    closed = before
    if after.text != before.text:
        ends = [
            moment for moment in (after.valid_from or after.updated_at, before.valid_from) if moment
        ]
        closed = replace(before, valid_to=max(ends))  # never before it began
    return NewEvent(
        EventKind.UPDATE,
        before.scope,
        before.id,
        before=closed.to_json(),
        after=after.to_json(),
        actor=actor,
        reason=reason,
    )


def deleted(
    item: MemoryItem, *, at: datetime, actor: str, reason: str, sources: Sequence[str] = ()
) -> NewEvent:
    """An item that is true no longer; history and `as_of` still know it.

    sources: the raw turns that took it back; they belong to its history from now on.
    """
    known = tuple(dict.fromkeys((*item.sources, *sources)))
    closed = replace(item, valid_to=item.valid_to or at, sources=known)
    return NewEvent(
        EventKind.DELETE, item.scope, item.id, before=closed.to_json(), actor=actor, reason=reason
    )


def forgotten(turn_id: str, scope: Scope, *, actor: str, reason: str) -> NewEvent:
    """A raw turn that is searched no more; `as_of` and a purge still know it."""
    return NewEvent(EventKind.FORGET, scope, turn_id, actor=actor, reason=reason)


def declined(
    text: str,
    scope: Scope,
    *,
    sources: Sequence[str],
    item_id: str | None,
    actor: str,
    reason: str,
) -> NewEvent:
    """A fact that was not worth an operation; `item_id` is the item that says it already."""
    after = {"text": text, "sources": list(sources), "item_id": item_id}
    return NewEvent(
        EventKind.NONE, scope, str(uuid.uuid4()), after=after, actor=actor, reason=reason
    )
