"""From what was said to what is remembered: read facts, relate, decide, write.

    turns --reader--> facts --(related items)--> manager --> operations --> journal

Decisions are made on a fork of the owner's state, so that each sees what the ones before it did,
and everything is written in one transaction. If another process changed one of the items meanwhile,
the decisions are made again on what it left. Updating and deleting close a version: the event keeps
it as `before` with its `valid_to` set.

Invariants: the journal gets all events of one call or none; folding these events gives the items
that the operations meant.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from memograd.errors import MemogradError
from memograd.memory.journal import Conflict
from memograd.memory.manager import MemoryManager, RelatedItem, StateManager
from memograd.memory.manager.trained.following import settled
from memograd.memory.reader import Fact, MemReader
from memograd.memory.records.events import Event, EventKind, NewEvent
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.operations import MemoryOp, OpKind
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.search import Query
from memograd.memory.search.related import find_related
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore


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


ATTEMPTS: Final = 20
STRICT_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Labels:
    """What the application says about everything that one call adds."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind | None = None
    categories: tuple[str, ...] = ()


def learn_verbatim(
    store: MemoryStore,
    turns: Sequence[RawTurn],
    scope: Scope,
    labels: Labels,
    *,
    categorise: Callable[[str], tuple[str, ...]],
    beside: Sequence[NewEvent] = (),
) -> list[Event]:
    """Remember every turn word for word, without reading or deciding; returns the operations.

    beside: events that are written with them.
    """
    now = store.now()
    events: list[NewEvent] = list(beside)
    for turn in turns:
        events.append(heard(turn, scope, verbatim=True))
        item = MemoryItem(
            id=str(uuid.uuid4()),
            text=turn.text,
            scope=scope,
            created_at=now,
            updated_at=now,
            kind=labels.kind or Kind.SEMANTIC,
            categories=labels.categories or categorise(turn.text),
            metadata=labels.metadata,
            sources=(turn.id,),
            valid_from=turn.time,
        )
        events.append(added(item, actor="user", reason="remembered word for word"))
    return _operations(store.write(scope.owner, events))


def learn(
    store: MemoryStore,
    reader: MemReader,
    manager: MemoryManager | StateManager,
    turns: Sequence[RawTurn],
    scope: Scope,
    labels: Labels,
    *,
    categorise: Callable[[str], tuple[str, ...]],
    beside: Sequence[NewEvent] = (),
) -> list[Event]:
    """Let the reader find facts and the manager decide on each; returns the operations.

    beside: events that are written before them, in the same transaction. The turns that told of
    what somebody asked to forget, and those that asked, are searched no more.
    """
    manager = settled(manager)
    facts = reader.read(turns)
    heard_events = [*(heard(turn, scope, verbatim=False) for turn in turns), *beside]
    heard_now = {turn.id for turn in turns}
    derivations = store.texts.derive(scope.owner, [fact.text for fact in facts])
    with store.writing(scope.owner):
        for attempt in range(ATTEMPTS):
            work = store.states.current(scope.owner)
            new: set[str] = set()  # items of this very call have no version to expect
            events: list[NewEvent] = list(heard_events)
            forgets: dict[str, NewEvent] = {}  # by the turn
            expect: dict[str, int] = {}
            for fact, (vector, terms) in zip(facts, derivations, strict=True):
                query = Query(fact.text, vector, terms)
                made = _decide(work, manager, fact, query, scope, labels, store.now(), categorise)
                if made.leans_on is not None and made.leans_on not in new:
                    expect[made.leans_on] = _version(store, made.leans_on, work.seq)
                made.apply(work, store)
                if made.before is None and made.after is not None:
                    new.add(made.after.id)
                events.append(made.event)
                if fact.forget:
                    told = made.before.sources if made.before else ()
                    why = {"actor": manager.actor, "reason": "somebody asked to forget it"}
                    forgets |= {
                        turn: forgotten(turn, scope, **why)
                        for turn in (*fact.sources, *told)
                        if turn in heard_now or turn in work.turns
                    }
            events += forgets.values()
            try:
                # At first nothing at all may have been written meanwhile, or two processes that
                # are told the same would both remember it; later it is enough that the items
                # that were decided on are as they were.
                last = work.seq if attempt < STRICT_ATTEMPTS else None
                written = store.write(scope.owner, events, expect=expect, expect_last=last)
                return _operations(written)
            except Conflict:
                store.step_aside(attempt)  # another writer was faster: decide again
    raise MemogradError(
        f"The memory of {scope.owner} was changed by others {ATTEMPTS} times while this call"
        " decided what to do: nothing was written, try again."
    )


@dataclass(frozen=True, slots=True)
class _Made:
    """A decision carried out: its event and the versions of the item around it.

    leans_on: the item whose present version the decision depends on.
    """

    event: NewEvent
    before: MemoryItem | None = None
    after: MemoryItem | None = None
    leans_on: str | None = None

    def apply(self, state: MemoryState, store: MemoryStore) -> None:
        """Do to the fork what the event will do to the owner's state."""
        if self.after is not None:
            [(vector, terms)] = store.texts.derive(self.after.scope.owner, [self.after.text])
            change = state.add_item if self.before is None else state.replace_item
            change(self.after, vector, terms)
        elif self.before is not None:
            state.remove_item(self.before.id)


def _decide(
    state: MemoryState,
    manager: MemoryManager | StateManager,
    fact: Fact,
    query: Query,
    scope: Scope,
    labels: Labels,
    now: datetime,
    categorise: Callable[[str], tuple[str, ...]],
) -> _Made:
    wanted = scope.ids().items()
    hits = find_related(
        state.items, query, eligible=lambda item: wanted <= item.scope.ids().items()
    )
    if isinstance(manager, StateManager):
        decision = manager.decide_in(state, fact, query, hits)
    else:
        related = [RelatedItem(hit.record, hit.why.similarity) for hit in hits]
        decision = manager.decide(fact, related)
    op, why = decision.op, {"actor": manager.actor, "reason": decision.reason}
    if op.kind is OpKind.NONE:
        known = op.item_id if any(hit.record.id == op.item_id for hit in hits) else None
        event = declined(fact.text, scope, sources=fact.sources, item_id=known, **why)
        return _Made(event, leans_on=known)
    if op.kind is OpKind.ADD:
        item = MemoryItem(
            id=str(uuid.uuid4()),
            text=_text(op),
            scope=scope,
            created_at=now,
            updated_at=now,
            kind=labels.kind or fact.kind,
            categories=labels.categories or fact.categories or categorise(fact.text),
            metadata=labels.metadata,
            sources=fact.sources,
            valid_from=fact.valid_from,
        )
        return _Made(added(item, **why), after=item)
    before = next((hit.record for hit in hits if hit.record.id == op.item_id), None)
    if before is None:
        raise MemogradError(
            f"The manager {manager.actor!r} decided {op.kind} of the item {op.item_id!r}, which is"
            " not among the related items that it was shown."
        )
    if op.kind is OpKind.DELETE:
        at = fact.valid_from or now
        event = deleted(before, at=at, sources=fact.sources, **why)
        return _Made(event, before=before, leans_on=before.id)
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
    )
    return _Made(updated(before, after, **why), before=before, after=after, leans_on=before.id)


def _text(op: MemoryOp) -> str:
    assert op.text is not None  # MemoryOp refuses an ADD or UPDATE without text
    return op.text


def _version(store: MemoryStore, item_id: str, folded: int) -> int:
    """The latest event of an item as the decision saw it: 0, a conflict, if a later one exists."""
    latest = store.journal.latest(item_id)
    return latest.seq if latest is not None and latest.seq <= folded else 0


def _operations(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.kind.value in OpKind.__members__]
