"""From a decision to its event: heard, added, updated, deleted, forgotten, declined.

Updating and deleting close a version: the event keeps it as `before` with its `valid_to` set. What
the items of one call have in common stands in `Labels` and `Filing`. Something that ends by itself
takes nothing along that would have stayed: what is said with an expiration date changes only items
that end no later, and what is said again without one stays. What a framework keeps under a name is
the framework's: no talk changes it.

Invariants: folding the events gives the items that they were made of; a decision names only items
that its manager was shown; an item ends no earlier than what it says was told to.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from memograd.errors import MemogradError
from memograd.memory.analysis import analyse
from memograd.memory.reader import Fact
from memograd.memory.records.documents import is_document
from memograd.memory.records.events import EventKind, NewEvent, said_again
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, OpKind, reason
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore


@dataclass(frozen=True, slots=True)
class Labels:
    """metadata, kind, categories: of the items. expires_at: from when on they are hidden."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind | None = None
    categories: tuple[str, ...] = ()
    expires_at: datetime | None = None

    def linked(self, item_id: str | None) -> Labels:
        """The same, naming an item that the new one may have changed."""
        if item_id is None:
            return self
        return replace(self, metadata={**self.metadata, "may_change": item_id})


def heard(turn: RawTurn, scope: Scope) -> NewEvent:
    """A raw turn.

    Journals of older versions say `verbatim` of those that an item repeats word for word, and did
    not search them; but an item knows neither who spoke nor what was said before it.
    """
    after = {"turn": turn.to_json(), "verbatim": False}
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
    """A fact that was not worth an operation; `item_id` is the item that says it already.

    The sources are behind that item from now on: what hides or erases it takes them along.
    """
    after = {"text": text, "sources": list(sources), "item_id": item_id}
    return NewEvent(
        EventKind.NONE, scope, str(uuid.uuid4()), after=after, actor=actor, reason=reason
    )


@dataclass(frozen=True, slots=True)
class Filing:
    """scope, labels: of the items of a call. categorise: the categories of a text that was given
    none. turns: those of the call, by their ids."""

    scope: Scope
    labels: Labels
    categorise: Callable[[str], tuple[str, ...]]
    turns: Mapping[str, RawTurn] = field(default_factory=dict)

    def linked(self, item_id: str | None) -> Filing:
        """The same for an item that may have changed another."""
        return self if item_id is None else replace(self, labels=self.labels.linked(item_id))

    def may_speak_of(self, now: datetime, *, forget: bool) -> Callable[[MemoryItem], bool]:
        """Which items a message of the call may change; where it asks to forget, all but
        documents."""
        wanted, until = self.scope.ids().items(), self.labels.expires_at

        def eligible(item: MemoryItem) -> bool:
            if is_document(item) or not wanted <= item.scope.ids().items():
                return False
            if item.expires_at is not None and item.expires_at <= now:
                return False
            return forget or not _outlives(item.expires_at, until)

        return eligible

    def item(
        self, text: str, sources: Sequence[str], kind: Kind, now: datetime, **more: Any
    ) -> MemoryItem:
        """A new item of the call; the turn it came from says who spoke."""
        turn = self.turns.get(sources[-1]) if sources else None
        told: dict[str, Any] = {"metadata": self.labels.metadata, **more}
        return MemoryItem(
            id=str(uuid.uuid4()),
            text=text,
            scope=self.scope,
            created_at=now,
            updated_at=now,
            kind=self.labels.kind or kind,
            sources=tuple(sources),
            expires_at=self.labels.expires_at,
            role=turn.role if turn else None,
            actor_id=turn.speaker if turn and turn.speaker != turn.role else None,
            **told,
        )


@dataclass(frozen=True, slots=True)
class Made:
    """A decision carried out: its events and the versions of the item around it.

    again: that the fact said what the item says, where it also changed it.
    """

    event: NewEvent
    before: MemoryItem | None = None
    after: MemoryItem | None = None
    again: NewEvent | None = None

    @property
    def events(self) -> list[NewEvent]:
        """All that is to be written down, in order."""
        return [self.event] if self.again is None else [self.event, self.again]

    def apply(self, state: MemoryState, store: MemoryStore, *, compared_later: bool) -> None:
        """Do to the fork what the event will do to the owner's state.

        compared_later: whether anything will be compared with the item by meaning; else it gets no
        vector in this fork, and the one in the owner's state is computed behind the answer.
        """
        if self.after is not None:
            owner, text = self.after.scope.owner, self.after.text
            if compared_later:
                [(vector, terms)] = store.texts.derive(owner, [text])
            else:
                vector, terms = np.zeros(state.items.dimension, np.float32), analyse(text)
            change = state.add_item if self.before is None else state.replace_item
            change(self.after, vector, terms)
        elif self.before is not None:
            state.remove_item(self.before.id)
        for event in self.events:
            if (told := said_again(event)) is not None:
                state.say_again(*told)


def carry_out(
    decision: Decision,
    fact: Fact,
    items: Sequence[MemoryItem],
    actor: str,
    filing: Filing,
    now: datetime,
) -> Made:
    """The decision as an event; `items` are those that it may name."""
    op, why = decision.op, {"actor": actor, "reason": decision.reason}
    labels = filing.labels
    before = next((item for item in items if item.id == op.item_id), None)
    if op.kind is OpKind.NONE:
        known = before.id if before else None
        event = declined(fact.text, filing.scope, sources=fact.sources, item_id=known, **why)
        if before is not None and _outlives(labels.expires_at, before.expires_at):
            now = max(now, before.updated_at)
            after = replace(before, expires_at=labels.expires_at, updated_at=now)
            why["reason"] = reason("stays", before.text)
            return Made(updated(before, after, **why), before=before, after=after, again=event)
        return Made(event)
    if op.kind is OpKind.ADD:
        item = filing.item(
            _text(op),
            fact.sources,
            fact.kind,
            now,
            categories=labels.categories or fact.categories or filing.categorise(fact.text),
            valid_from=fact.valid_from,
        )
        return Made(added(item, **why), after=item)
    if before is None:
        raise MemogradError(
            f"The manager {actor!r} decided {op.kind} of the item {op.item_id!r}, which is"
            " not among the related items that it was shown."
        )
    if op.kind is OpKind.DELETE:
        at = fact.valid_from or now
        event = deleted(before, at=at, sources=fact.sources, **why)
        return Made(event, before=before)
    now = max(now, before.updated_at)  # the clock may have gone back
    after = replace(
        before,
        text=_text(op),
        updated_at=now,
        kind=labels.kind or before.kind,
        categories=labels.categories or before.categories,
        metadata={**before.metadata, **labels.metadata},
        sources=tuple(dict.fromkeys((*before.sources, *fact.sources))),
        valid_from=fact.valid_from or now,
        valid_to=None,
        expires_at=before.expires_at if fact.forget else _later(before, labels),
    )
    return Made(updated(before, after, **why), before=before, after=after)


def _outlives(one: datetime | None, other: datetime | None) -> bool:
    """Whether the first ends after the second; None never ends."""
    return other is not None and (one is None or one > other)


def _later(before: MemoryItem, labels: Labels) -> datetime | None:
    if _outlives(before.expires_at, labels.expires_at):
        return before.expires_at
    return labels.expires_at


def _text(op: MemoryOp) -> str:
    assert op.text is not None  # MemoryOp refuses an ADD or UPDATE without text
    return op.text
