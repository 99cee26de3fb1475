"""What the application itself changes: update an item, delete it, delete all that match.

Nobody decides here; what is asked for is written, with the versions it was based on. The raw turns
that a deleted item came from are searched no more, so that nothing brings it up again. When another
writer was faster, the change is made again of the item as it then stands. Invariant: whatever runs
beside, an edit changes the version that it saw or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memograd.errors import BadInput
from memograd.memory.journal import Conflict
from memograd.memory.records.events import NewEvent
from memograd.memory.records.items import MemoryItem
from memograd.memory.state.store import MemoryStore
from memograd.memory.write.remember import ATTEMPTS, deleted, forgotten, updated

if TYPE_CHECKING:
    from memograd.memory.filters import Filter


def edit_item(
    store: MemoryStore, memory_id: str, text: str | None, metadata: Mapping[str, Any]
) -> None:
    """Let an item say `text` (None: what it says), with `metadata` merged in (None removes).

    Raises BadInput when there is no such item.
    """

    def change(item: MemoryItem) -> list[NewEvent]:
        now = max(store.now(), item.updated_at)  # the clock may have gone back
        merged = {**item.metadata, **metadata}
        after = replace(
            item,
            text=item.text if text is None else text,
            metadata={key: value for key, value in merged.items() if value is not None},
            updated_at=now,
            valid_from=item.valid_from if text in (None, item.text) else now,
        )
        why = {"actor": "user", "reason": "updated by the application"}
        if after.text == item.text:
            return [updated(item, after, **why)]
        # What the item said before would otherwise still be shown as it was said.
        told = [one for one in item.sources if store.turn(item.scope.owner, one) is not None]
        return [updated(item, after, **why), *(forgotten(one, item.scope, **why) for one in told)]

    _change(store, memory_id, change)


def delete_item(store: MemoryStore, memory_id: str) -> None:
    """Forget an item; raises BadInput when there is no such item."""

    def change(item: MemoryItem) -> list[NewEvent]:
        why = {"actor": "user", "reason": "deleted by the application"}
        told = [one for one in item.sources if store.turn(item.scope.owner, one) is not None]
        forgets = [forgotten(turn, item.scope, **why) for turn in told]
        return [deleted(item, at=store.now(), **why), *forgets]

    _change(store, memory_id, change)


def delete_matching(store: MemoryStore, owner: str, wanted: Filter) -> int:
    """Forget what matches among one owner's items, all at once; how many there were."""
    reason = "deleted by the application with others"
    for attempt in range(ATTEMPTS):
        state = store.states.current(owner)
        items = [item for item in state.items if wanted.matches(item)]
        if not items:
            return 0
        told = store.journal.tail(owner)
        versions = {event.subject: event.seq for event in told if event.seq <= state.seq}
        now = store.now()
        why = {"actor": "user", "reason": reason}
        events = [deleted(item, at=now, **why) for item in items]
        turns = {one: item.scope for item in items for one in item.sources if one in state.turns}
        events += [forgotten(turn, scope, **why) for turn, scope in turns.items()]
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
