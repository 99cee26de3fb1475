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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from memograd.errors import MemogradError
from memograd.memory.journal import Conflict
from memograd.memory.manager import MemoryManager, MessageManager, RelatedItem, StateManager
from memograd.memory.manager.trained.following import settled
from memograd.memory.reader import Fact, Heard, MemReader, MessageReader
from memograd.memory.records.events import Event, EventKind, NewEvent
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, OpKind
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.search import Query, retrieve
from memograd.memory.search.related import RELATED_ITEMS, find_related
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore

if TYPE_CHECKING:
    import numpy as np


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


ATTEMPTS: Final = 100
BEFORE_TURNS: Final = 3
RECENT_ITEMS: Final = 32
MOST_ITEMS: Final = 12  # that one message of several facts is compared with


@dataclass(frozen=True, slots=True)
class Labels:
    """What the application says about everything that one call adds."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind | None = None
    categories: tuple[str, ...] = ()

    def linked(self, item_id: str | None) -> Labels:
        """The same, naming an item that the new one may have changed."""
        if item_id is None:
            return self
        return replace(self, metadata={**self.metadata, "may_change": item_id})


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
    if isinstance(reader, MessageReader) and isinstance(manager, MessageManager):
        return _learn_messages(
            store, reader, manager, turns, scope, labels, categorise=categorise, beside=beside
        )
    facts = reader.read(turns)
    heard_events = [*(heard(turn, scope, verbatim=False) for turn in turns), *beside]
    heard_now = {turn.id for turn in turns}
    derivations = store.texts.derive(scope.owner, [fact.text for fact in facts])
    with store.writing(scope.owner):
        for attempt in range(ATTEMPTS):
            work = store.states.current(scope.owner)
            events: list[NewEvent] = list(heard_events)
            forgets: dict[str, NewEvent] = {}  # by the turn
            for fact, (vector, terms) in zip(facts, derivations, strict=True):
                query = Query(fact.text, vector, terms)
                made = _decide(work, manager, fact, query, scope, labels, store.now(), categorise)
                made.apply(work, store)
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
                # A decision rests on all that is remembered: what somebody else wrote meanwhile
                # may be the very item that this fact changes.
                written = store.write(scope.owner, events, expect_last=work.seq)
                return _operations(written)
            except Conflict:
                store.step_aside(attempt)  # another writer was faster: decide again
    raise MemogradError(
        f"The memory of {scope.owner} was changed by others {ATTEMPTS} times while this call"
        " decided what to do: nothing was written, try again."
    )


def _learn_messages(
    store: MemoryStore,
    reader: MessageReader,
    manager: MessageManager,
    turns: Sequence[RawTurn],
    scope: Scope,
    labels: Labels,
    *,
    categorise: Callable[[str], tuple[str, ...]],
    beside: Sequence[NewEvent],
) -> list[Event]:
    """`learn`, message by message: each is decided on as a whole.

    The turns behind what a message changed or took back are searched no more, unless something
    else that still holds came from them.
    """
    owner = scope.owner
    before = store.states.current(owner).last_turns(BEFORE_TURNS)
    messages = reader.hear(turns, before)
    listed = list(dict.fromkeys(text for one in messages for text in _queries(one)))
    derived = dict(zip(listed, store.texts.derive(owner, listed), strict=True))
    heard_events = [*(heard(turn, scope, verbatim=False) for turn in turns), *beside]
    with store.writing(owner):
        for attempt in range(ATTEMPTS):
            work = store.states.current(owner)
            told = _Told(work, turns, before)
            events: list[NewEvent] = list(heard_events)
            for message in messages:
                items = _items_for(work, message, scope, derived, told)
                changes = manager.decide_heard(message, items, told.just_before(message.turn))
                if message.everything:
                    events.append(_asked_for_everything(message, scope, manager.actor))
                for change in changes:
                    made = _carry_out(
                        change.decision,
                        change.fact,
                        items,
                        manager.actor,
                        scope,
                        labels.linked(change.may_change),
                        store.now(),
                        categorise,
                    )
                    made.apply(work, store)
                    events.append(made.event)
                    told.note(made, hide=change.hide, request=message.forget)
                if message.secret or message.everything or message.forget:
                    told.hide(message.turn.id)
            events += told.forgets(work, scope, manager.actor)
            try:
                # A decision rests on all that is remembered: what somebody else wrote meanwhile
                # may be the very item that this message changes.
                return _operations(store.write(owner, events, expect_last=work.seq))
            except Conflict:
                store.step_aside(attempt)  # another writer was faster: decide again
    raise MemogradError(
        f"The memory of {owner} was changed by others {ATTEMPTS} times while this call"
        " decided what to do: nothing was written, try again."
    )


def _queries(heard: Heard) -> list[str]:
    return [heard.turn.index_text(), *(fact.text for fact in heard.facts)]


def _items_for(
    work: MemoryState,
    heard: Heard,
    scope: Scope,
    derived: Mapping[str, tuple[np.ndarray, tuple[str, ...]]],
    told: _Told,
) -> list[MemoryItem]:
    """The living items that a message may speak of: what was just told, then the nearest ones."""
    wanted = scope.ids().items()

    def eligible(item: MemoryItem) -> bool:
        return wanted <= item.scope.ids().items()

    recent = told.just_before(heard.turn)
    found = {item.id: item for item in work.items.last(RECENT_ITEMS, eligible) if item.id in recent}
    rankings = [
        [
            hit.record
            for hit in retrieve(
                work.items, Query(text, *derived[text]), top_k=RELATED_ITEMS, eligible=eligible
            )
        ]
        for text in _queries(heard)
    ]
    for row in zip_longest(*rankings):
        found |= {item.id: item for item in row if item is not None}
    return list(found.values())[: MOST_ITEMS if len(heard.facts) > 1 else RELATED_ITEMS]


def _asked_for_everything(heard: Heard, scope: Scope, actor: str) -> NewEvent:
    """A request that only `delete_all` fulfils, noted so that the caller can ask back."""
    after = {
        "text": heard.turn.text,
        "sources": [heard.turn.id],
        "item_id": None,
        "pending": "delete_all",
    }
    reason = "Asked to forget everything: confirm it with delete_all."
    return NewEvent(
        EventKind.NONE, scope, str(uuid.uuid4()), after=after, actor=actor, reason=reason
    )


class _Told:
    """Which turns told of which items, while the messages of one call are decided on."""

    def __init__(
        self, work: MemoryState, turns: Sequence[RawTurn], before: Sequence[RawTurn]
    ) -> None:
        self._turns = [*before, *turns]
        self._new = {turn.id for turn in turns}
        self._items: dict[str, set[str]] = {}  # by the turn
        self._hidden: dict[str, bool] = {}  # turns, and whether whatever else came from them
        ids = {turn.id for turn in self._turns}
        for item in work.items.last(RECENT_ITEMS):
            self._link(item, ids)

    def _link(self, item: MemoryItem, among: Collection[str]) -> None:
        for source in item.sources:
            if source in among:
                self._items.setdefault(source, set()).add(item.id)

    def just_before(self, turn: RawTurn) -> frozenset[str]:
        """The items that the last message of the same speaker before this turn told of."""
        ids = [one.id for one in self._turns]
        past = self._turns[: ids.index(turn.id)]
        for one in reversed(past):
            if one.speaker == turn.speaker:
                found = self._items.get(one.id)
                if found:
                    return frozenset(found)
        return frozenset()

    def note(self, made: _Made, *, hide: bool, request: bool) -> None:
        """A decision was carried out."""
        if made.after is not None:
            self._link(made.after, {turn.id for turn in self._turns})
        if hide and made.before is not None:
            now = {turn.id for turn in self._turns if turn.id in self._new}
            for source in made.before.sources:
                if request or source not in now or made.event.kind is EventKind.DELETE:
                    self.hide(source, whatever=request)

    def hide(self, turn_id: str, *, whatever: bool = True) -> None:
        """Search the turn no more; `whatever` else it told."""
        self._hidden[turn_id] = self._hidden.get(turn_id, False) or whatever

    def forgets(self, work: MemoryState, scope: Scope, actor: str) -> list[NewEvent]:
        """The events that hide the turns."""
        why = {"actor": actor, "reason": "what it told is changed or to be forgotten"}
        left = {source for turn in self._hidden for source in [turn] if not self._hidden[turn]}
        kept = (
            {
                source
                for item in work.items
                for source in item.sources
                if source in left and item.sources[-1] == source
            }
            if left
            else set()
        )
        return [
            forgotten(turn, scope, **why)
            for turn in self._hidden
            if turn not in kept and (turn in self._new or turn in work.turns)
        ]


@dataclass(frozen=True, slots=True)
class _Made:
    """A decision carried out: its event and the versions of the item around it."""

    event: NewEvent
    before: MemoryItem | None = None
    after: MemoryItem | None = None

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
    items = [hit.record for hit in hits]
    return _carry_out(decision, fact, items, manager.actor, scope, labels, now, categorise)


def _carry_out(
    decision: Decision,
    fact: Fact,
    items: Sequence[MemoryItem],
    actor: str,
    scope: Scope,
    labels: Labels,
    now: datetime,
    categorise: Callable[[str], tuple[str, ...]],
) -> _Made:
    """The decision as an event; `items` are those that it may name."""
    op, why = decision.op, {"actor": actor, "reason": decision.reason}
    if op.kind is OpKind.NONE:
        known = op.item_id if any(item.id == op.item_id for item in items) else None
        event = declined(fact.text, scope, sources=fact.sources, item_id=known, **why)
        return _Made(event)
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
    before = next((item for item in items if item.id == op.item_id), None)
    if before is None:
        raise MemogradError(
            f"The manager {actor!r} decided {op.kind} of the item {op.item_id!r}, which is"
            " not among the related items that it was shown."
        )
    if op.kind is OpKind.DELETE:
        at = fact.valid_from or now
        event = deleted(before, at=at, sources=fact.sources, **why)
        return _Made(event, before=before)
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
    return _Made(updated(before, after, **why), before=before, after=after)


def _text(op: MemoryOp) -> str:
    assert op.text is not None  # MemoryOp refuses an ADD or UPDATE without text
    return op.text


def _operations(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.kind.value in OpKind.__members__]
