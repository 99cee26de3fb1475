"""Really forgetting: contents leave the journal, the states, the index and the files.

Everything else in this room only closes validities. Purging is the exception, for the right to be
forgotten: it erases the whole history of an item, the raw turns it came from and what was declined
because of them, and leaves events without contents that say what was purged when, and by whom.

Invariant: afterwards no file of the memory holds the purged text (`tests/memory/test_erase.py`).
May import `events`, `scope` and `store`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memograd.errors import BadInput
from memograd.memory.events import Event, EventKind
from memograd.memory.scope import Scope
from memograd.memory.store import MemoryStore

ITEM_EVENTS = (EventKind.ADD, EventKind.UPDATE, EventKind.DELETE)


def purge_item(store: MemoryStore, item_id: str) -> dict[str, Any]:
    """Purge one item with its history, its raw turns, and what was declined because of them."""
    events = [event for event in store.journal.history(item_id) if not event.erased]
    if not any(event.kind in ITEM_EVENTS for event in events):
        raise BadInput(f"There is no memory with the id {item_id!r} to purge.")
    owner = events[0].scope.owner
    sources = {source for event in events for source in _sources(event)}
    with store.writing(owner):
        told = store.journal.tail(owner)
        turns = {event.subject for event in told if _is(event, EventKind.TURN)} & sources
        refused = {
            event.subject
            for event in told
            if _is(event, EventKind.NONE) and not sources.isdisjoint(_sources(event))
        }
        _purge(store, owner, subjects=[item_id, *sorted(turns), *sorted(refused)])
    return {"items": 1, "turns": len(turns), "owners": [owner]}


def purge_scope(store: MemoryStore, scope: Scope) -> dict[str, Any]:
    """Purge everything under these ids, and under whatever other ids it was filed as well."""
    ids = scope.ids()
    whole = scope.owner if len(ids) == 1 else None
    owners = store.journal.owners(**ids)
    report = purge_owners(store, [owner for owner in owners if owner == whole])
    for owner in owners:
        if owner == whole:
            continue
        with store.writing(owner):
            told = [
                event
                for event in store.journal.tail(owner)
                if ids.items() <= event.scope.ids().items() and not event.erased
            ]
            _purge(store, owner, subjects=sorted({event.subject for event in told}))
        report["items"] += _count(told, ITEM_EVENTS)
        report["turns"] += _count(told, (EventKind.TURN,))
        report["owners"].append(owner)
    if not report["items"] and not report["turns"]:
        raise BadInput(f"There is nothing to purge under {', '.join(ids.values())!r}.")
    return report


def purge_owners(store: MemoryStore, owners: Sequence[str]) -> dict[str, Any]:
    """Purge everything of these owners."""
    told = [event for owner in owners for event in store.journal.tail(owner) if not event.erased]
    for owner in owners:
        with store.writing(owner):
            _purge(store, owner, subjects=None)
    return {
        "items": _count(told, ITEM_EVENTS),
        "turns": _count(told, (EventKind.TURN,)),
        "owners": list(owners),
    }


def _purge(store: MemoryStore, owner: str, *, subjects: Sequence[str] | None) -> None:
    """Erase some subjects of an owner, or the whole owner."""
    reason = "purged on request"
    if subjects is None:
        store.journal.purge(owners=[owner], actor="user", reason=reason)
    elif subjects:
        store.journal.purge(subjects=subjects, actor="user", reason=reason)
    store.states.forget(owner)
    store.texts.forget(owner)


def _is(event: Event, kind: EventKind) -> bool:
    return event.kind is kind and not event.erased


def _sources(event: Event) -> set[str]:
    contents: list[Mapping[str, Any] | None] = [event.before, event.after]
    return {source for content in contents if content for source in content.get("sources", ())}


def _count(events: Sequence[Event], kinds: Sequence[EventKind]) -> int:
    return len({event.subject for event in events if event.kind in kinds})
