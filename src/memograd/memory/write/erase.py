"""Really forgetting: contents leave the journal, the states, the index and the files.

Everything else in this room only closes validities. Purging is the exception, for the right to be
forgotten: it erases the whole history of an item, the raw turns it came from, what was declined
because of them and the answers given from them, and leaves events without contents that say what
was purged when, and by whom.

Invariant: afterwards no file of the memory holds the purged text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memograd.errors import BadInput
from memograd.memory.records.events import RECORDS, Event, EventKind
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.state.store import MemoryStore
from memograd.memory.text_caches import drop_texts
from memograd.memory.write.compaction import stands_for
from memograd.memory.write.told import repeats, speaks_of

REASON = "purged on request"
ITEM_EVENTS = (EventKind.ADD, EventKind.UPDATE, EventKind.DELETE)


def purge_item(store: MemoryStore, item_id: str) -> dict[str, Any]:
    """Purge one item: its history, the raw turns behind it, and what was declined for its sake.

    With it go the items that a compaction merged into it. Of an item that was purged before, what a
    reader may have kept in the files is erased.
    """
    events = store.journal.history(item_id)
    if not any(event.kind in ITEM_EVENTS for event in events):
        raise BadInput(f"There is no memory with the id {item_id!r} to purge.")
    owner = events[0].scope.owner
    told = store.journal.tail(owner)
    items = {item_id} | stands_for(told, {item_id})
    turns, refused = _behind(told, items)
    _purge(store, subjects={owner: [*sorted(items), *sorted(turns), *sorted(refused)]})
    return {"items": len(items), "turns": len(turns), "owners": [owner]}


def goes_with(told: Sequence[Event], subjects: set[str]) -> set[str]:
    """What is purged together with these subjects of one owner, whose events these are: of an item
    what was merged into it, the raw turns behind it and what was declined for its sake."""
    whole = {e.subject for e in told if _whole(e) and e.kind in ITEM_EVENTS}
    items = subjects & whole
    items |= stands_for(told, items)
    turns, refused = _behind(told, items)
    return items | turns | refused


def purge_scope(store: MemoryStore, scope: Scope) -> dict[str, Any]:
    """Purge everything under these ids, and under whatever other ids it was filed as well.

    The raw turns behind the items go with them, whatever ids they were heard under.
    """
    ids = scope.ids()
    whole = scope.owner if len(ids) == 1 else None
    found: dict[str, list[str]] = {}
    report: dict[str, Any] = {"items": 0, "turns": 0, "owners": []}
    for owner in store.journal.owners(**ids):
        told = [event for event in store.journal.tail(owner) if _whole(event)]
        filed = [event for event in told if ids.items() <= event.scope.ids().items()]
        items = {event.subject for event in filed if event.kind in ITEM_EVENTS}
        turns, refused = _behind(told, items)
        turns |= {event.subject for event in filed if event.kind is EventKind.TURN}
        refused |= {event.subject for event in filed if event.kind in RECORDS}
        if items or turns or refused:
            found[owner] = [*sorted(items), *sorted(turns), *sorted(refused)]
            report["items"] += len(items)
            report["turns"] += len(turns)
            report["owners"].append(owner)
    if not found:
        raise BadInput(f"There is nothing to purge under {', '.join(ids.values())!r}.")
    owners = [owner for owner in found if owner == whole]
    rest = {owner: subjects for owner, subjects in found.items() if owner != whole}
    _purge(store, subjects=rest, owners=owners)
    return report


def purge_owners(store: MemoryStore, owners: Sequence[str]) -> dict[str, Any]:
    """Purge everything of these owners, in one transaction."""
    report: dict[str, Any] = {"items": 0, "turns": 0, "owners": []}
    for owner in owners:
        told = [event for event in store.journal.tail(owner) if _whole(event)]
        if told:
            report["owners"].append(owner)
            report["items"] += len({e.subject for e in told if e.kind in ITEM_EVENTS})
            report["turns"] += len({e.subject for e in told if e.kind is EventKind.TURN})
    _purge(store, owners=report["owners"])
    return report


def _purge(
    store: MemoryStore,
    *,
    subjects: Mapping[str, Sequence[str]] | None = None,
    owners: Sequence[str] = (),
) -> None:
    """Erase subjects by owner, and whole owners, at once; their states, and all results that are
    kept of texts, leave the process whatever."""
    try:
        store.journal.purge(subjects=subjects or {}, owners=owners, actor="user", reason=REASON)
    finally:
        for owner in (*(subjects or {}), *owners):
            store.forget(owner)
        drop_texts()


def _behind(told: Sequence[Event], items: set[str]) -> tuple[set[str], set[str]]:
    """The raw turns that are part of the items' histories, and the events that declined facts.

    A turn belongs to an item when the item came from it, was changed or taken back by it, or was
    the reason to decline a fact of it, when an assistant said there what the item says or once
    said, and when an assistant answered such a turn there with words of the item; and whatever was
    declined of such a turn goes with it.
    """
    whole = [event for event in told if _whole(event)]
    heard = [event for event in whole if event.kind is EventKind.TURN]
    declined = [event for event in whole if event.kind is EventKind.NONE]
    sources = {
        source
        for event in whole
        if (event.kind in ITEM_EVENTS and event.subject in items)
        or (event.kind is EventKind.NONE and (event.after or {}).get("item_id") in items)
        for source in _sources(event)
    }
    turns = {event.subject for event in heard} & sources
    versions = {
        content["text"]: MemoryItem.from_json(content)
        for event in whole
        if event.kind in ITEM_EVENTS and event.subject in items
        for content in (event.before, event.after)
        if content
    }
    said = [(event.scope, _turn(event.after)) for event in heard if event.after]
    turns |= {turn.id for _, turn in said if any(repeats(turn, one) for one in versions.values())}
    turns |= {
        turn.id
        for turn in _answers_to(turns, said)
        if any(speaks_of(turn, one) for one in versions.values())
    }
    return turns, {event.subject for event in declined if not turns.isdisjoint(_sources(event))}


def _answers_to(turns: set[str], said: Sequence[tuple[Scope, RawTurn]]) -> Iterator[RawTurn]:
    """What an assistant said right behind these turns, in the same conversation."""
    behind: dict[tuple[Scope, int], bool] = {}
    for scope, turn in said:
        if turn.said_as != "assistant":
            behind[scope, turn.session] = turn.id in turns
        elif behind.get((scope, turn.session)):
            yield turn


def _turn(contents: Mapping[str, Any]) -> RawTurn:
    return RawTurn.from_json(contents["turn"])


def _whole(event: Event) -> bool:
    """Whether the event still has its contents."""
    return not event.erased and event.kind is not EventKind.PURGE


def _sources(event: Event) -> set[str]:
    contents: list[Mapping[str, Any] | None] = [event.before, event.after]
    return {source for content in contents if content for source in content.get("sources", ())}
