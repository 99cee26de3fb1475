"""What the application itself changes: update an item, delete it, delete all that match.

Nobody decides here; what is asked for is written, with the versions it was based on. The raw turns
that a deleted item came from are searched no more, so that nothing brings it up again. When another
writer was faster, the change is made again of the item as it then stands. Invariants: whatever runs
beside, an edit changes the version that it saw or nothing; an edit that leaves an item as it was is
not written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memograd.errors import BadInput
from memograd.memory.journal import Conflict
from memograd.memory.records.events import NewEvent
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import reason
from memograd.memory.records.scope import Scope
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore
from memograd.memory.write.changes import deleted, forgotten, updated
from memograd.memory.write.remember import ATTEMPTS

if TYPE_CHECKING:
    from memograd.memory.filters import Filter


def edit_item(
    store: MemoryStore,
    memory_id: str,
    text: str | None,
    metadata: Mapping[str, Any],
    ends: Mapping[str, Any],
) -> None:
    """Let an item say `text` (None: what it says), with `metadata` merged in (None removes).

    ends: `expires_at`, where it is to be another. Where the item is so already, nothing is written.
    Raises BadInput when there is no such item.
    """

    def change(item: MemoryItem) -> list[NewEvent]:
        merged = {**item.metadata, **metadata}
        after = replace(
            item,
            text=item.text if text is None else text,
            metadata={key: value for key, value in merged.items() if value is not None},
            **ends,
        )
        if after == item and _same(after.metadata, item.metadata):
            return []
        now = max(store.now(), item.updated_at)  # the clock may have gone back
        since = item.valid_from if after.text == item.text else now
        after = replace(after, updated_at=now, valid_from=since)
        why = {"actor": "user", "reason": reason("edited", after.text)}
        if after.text == item.text:
            return [updated(item, after, **why)]
        # What the item said before would otherwise still be shown as it was said.
        told = [one for one in item.sources if store.turn(item.scope.owner, one) is not None]
        return [updated(item, after, **why), *(forgotten(one, item.scope, **why) for one in told)]

    _change(store, memory_id, change)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON, where True is not 1 as it is to Python."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def delete_item(store: MemoryStore, memory_id: str) -> None:
    """Forget an item; raises BadInput when there is no such item."""

    def change(item: MemoryItem) -> list[NewEvent]:
        why = {"actor": "user", "reason": reason("deleted", item.text)}
        told = [one for one in item.sources if store.turn(item.scope.owner, one) is not None]
        forgets = [forgotten(turn, item.scope, **why) for turn in told]
        return [deleted(item, at=store.now(), **why), *forgets]

    _change(store, memory_id, change)


def delete_matching(store: MemoryStore, owner: str, wanted: Filter) -> int:
    """Forget what matches among one owner's items, all at once; how many there were.

    Where the filter says whose alone, whatever was said there goes with them: of a question or a
    repetition no item came.
    """
    whole = wanted.asks_of_ids_alone()

    def matching(state: MemoryState) -> _Chosen:
        items = [item for item in state.items if wanted.matches(item)]
        sources = {one: item.scope for item in items for one in item.sources}
        turns = {one: scope for one, scope in sources.items() if one in state.turns}
        for turn in state.turns if whole else ():
            if turn.scope is not None and wanted.matches_heard(turn.scope, turn.metadata):
                turns[turn.id] = turn.scope
        return items, turns

    return _delete_several(store, owner, matching, "user", "deleted_all")


def sweep_owner(store: MemoryStore, owner: str) -> int:
    """Forget what has expired of one owner, turns too; how many items there were."""

    def expired(state: MemoryState) -> _Chosen:
        now = store.now()
        gone = state.expired_items(now)
        items = [item for item in state.items if item.id in gone] if gone else []
        turns = [state.turns.get(id) for id in sorted(state.expired_turns(now))]
        return items, {turn.id: turn.scope for turn in turns if turn and turn.scope}

    return _delete_several(store, owner, expired, "expiry", "expired")


_Chosen = tuple[Sequence[MemoryItem], Mapping[str, Scope]]  # items, and turns with their scopes


def _delete_several(
    store: MemoryStore,
    owner: str,
    chosen: Callable[[MemoryState], _Chosen],
    actor: str,
    why: str,
) -> int:
    """Forget the chosen items and turns, all at once; how many items there were."""
    for attempt in range(ATTEMPTS):
        state = store.states.current(owner, turn_vectors=False)
        items, turns = chosen(state)
        if not items and not turns:
            return 0
        tail = store.journal.tail(owner)
        versions = {event.subject: event.seq for event in tail if event.seq <= state.seq}
        now = store.now()
        events = [
            deleted(item, at=now, actor=actor, reason=reason(why, item.text)) for item in items
        ]
        for turn, scope in turns.items():
            heard = state.turns.get(turn)
            told_why = reason(why, heard.text if heard else "")
            events.append(forgotten(turn, scope, actor=actor, reason=told_why))
        try:
            store.write(owner, events, expect={item.id: versions[item.id] for item in items})
            return len(items)
        except Conflict:
            store.step_aside(attempt)  # somebody changed one of them: look again
    raise Conflict(f"The memory of {owner} is being changed all the time: try again.")


def _change(
    store: MemoryStore, memory_id: str, change: Callable[[MemoryItem], Sequence[NewEvent]]
) -> None:
    """Write the events that `change` makes of the item as it stands."""
    for attempt in range(ATTEMPTS):
        latest = store.journal.latest(memory_id)
        item = store.item(memory_id)
        if latest is None or item is None:
            raise BadInput(f"There is no memory with the id {memory_id!r}: list them with get_all.")
        try:
            store.write(item.scope.owner, change(item), expect={item.id: latest.seq})
            return
        except Conflict:
            store.step_aside(attempt)  # somebody else was faster: look again
    raise Conflict(f"The memory {memory_id!r} is being changed all the time: try again.")
