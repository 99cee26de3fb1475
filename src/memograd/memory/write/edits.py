"""What the application itself changes: update an item, delete it, delete all that match.

Nobody decides here; what is asked for is written, with the versions it was based on. The raw turns
that a deleted item came from, or that said it again, an assistant's too, are searched no more, so
that nothing brings it up again. When another writer was faster, the change is made again of the
item as it then stands.
Invariants: whatever runs beside, an edit changes the version that it saw or nothing, and no turn
that says again what is being forgotten slips by; an edit that leaves an item as it was is not
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memograd.errors import BadInput
from memograd.memory.journal import Conflict
from memograd.memory.records.documents import SHELF, is_document
from memograd.memory.records.events import NewEvent, said_again
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import reason
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore
from memograd.memory.write.changes import deleted, forgotten, updated
from memograd.memory.write.remember import ATTEMPTS
from memograd.memory.write.told import repeats, words_of

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
    Raises BadInput when there is no such item, and when it is a framework's document, whose value
    would then say something else than its text.
    """

    def change(item: MemoryItem) -> _Edit:
        merged = {**item.metadata, **metadata}
        after = replace(
            item,
            text=item.text if text is None else text,
            metadata={key: value for key, value in merged.items() if value is not None},
            **ends,
        )
        if is_document(item) or is_document(after):
            shelf = after.metadata.get(SHELF)
            raise BadInput(f"The memory {memory_id!r} is a document of {shelf}: change it there.")
        if after == item and _same(after.metadata, item.metadata):
            return _Edit()
        now = max(store.now(), item.updated_at)  # the clock may have gone back
        since = item.valid_from if after.text == item.text else now
        after = replace(after, updated_at=now, valid_from=since)
        why = {"actor": "user", "reason": reason("edited", after.text)}
        # What the item said before would otherwise still be shown as it was said.
        return _Edit(updated(item, after, **why), hides=after.text != item.text)

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

    def change(item: MemoryItem) -> _Edit:
        why = {"actor": "user", "reason": reason("deleted", item.text)}
        return _Edit(deleted(item, at=store.now(), **why), hides=True)

    _change(store, memory_id, change)


def delete_matching(store: MemoryStore, owner: str, wanted: Filter) -> int:
    """Forget what matches among one owner's items, all at once; how many there were.

    Where the filter says whose alone, whatever was said there goes with them: of a question no item
    came.
    """
    whole = wanted.asks_of_ids_alone()

    def matching(state: MemoryState) -> _Chosen:
        items = [item for item in state.items if wanted.matches(item)]
        sources = {one: item.scope for item in items for one in state.turns_behind(item)}
        turns = {one: scope for one, scope in sources.items() if one in state.turns}
        turns |= {} if whole else _repeated(state, items)
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
        ended = {turn.id: turn.scope for turn in turns if turn and turn.scope}
        return items, ended | _repeated(state, items)

    return _delete_several(store, owner, expired, "expiry", "expired")


_Chosen = tuple[Sequence[MemoryItem], Mapping[str, Scope]]  # items, and turns with their scopes


def _repeated(state: MemoryState, items: Sequence[MemoryItem]) -> dict[str, Scope]:
    """What an assistant said of the items in their own words, searched so far."""
    return {
        turn.id: item.scope
        for turn in (state.turns if items else ())
        for item in items
        if repeats(turn, item)
    }


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
        now = store.now()
        events = [
            deleted(item, at=now, actor=actor, reason=reason(why, item.text)) for item in items
        ]
        for turn, scope in turns.items():
            heard = state.turns.get(turn)
            told_why = reason(why, heard.text if heard else "")
            events.append(forgotten(turn, scope, actor=actor, reason=told_why))
        try:
            store.write(owner, events, expect_last=state.seq)
            return len(items)
        except Conflict:
            # One of them was changed, or said again: look again.
            store.step_aside(attempt)
    raise Conflict(f"The memory of {owner} is being changed all the time: try again.")


@dataclass(frozen=True, slots=True)
class _Edit:
    """event: what becomes of an item; None: nothing. hides: the turns behind it with it."""

    event: NewEvent | None = None
    hides: bool = False


def _change(store: MemoryStore, memory_id: str, change: Callable[[MemoryItem], _Edit]) -> None:
    """Write the edit that `change` makes of the item as it stands."""
    for attempt in range(ATTEMPTS):
        latest = store.journal.latest(memory_id)
        item = store.item(memory_id)
        if latest is None or item is None:
            raise BadInput(f"There is no memory with the id {memory_id!r}: list them with get_all.")
        edit, owner = change(item), item.scope.owner
        if edit.event is None:
            return
        last = None
        events = [edit.event]
        if edit.hides:
            last = store.journal.last_seq(owner)  # nobody says it again meanwhile
            why = {"actor": edit.event.actor, "reason": edit.event.reason}
            events += [forgotten(one, item.scope, **why) for one in _told_of(store, item)]
        try:
            store.write(owner, events, expect={item.id: latest.seq}, expect_last=last)
            return
        except Conflict:
            store.step_aside(attempt)  # somebody else was faster: look again
    raise Conflict(f"The memory {memory_id!r} is being changed all the time: try again.")


def _told_of(store: MemoryStore, item: MemoryItem) -> list[str]:
    """The turns behind an item that are searched, by the journal alone: no vector is needed."""
    owner, behind = item.scope.owner, list(item.sources)
    for event in store.journal.declined(owner):
        told = said_again(event)
        if told is not None and told[0] == item.id:
            behind += told[1]
    for event in store.journal.heard_with(owner, words_of(item)):
        if repeats(RawTurn.from_json((event.after or {})["turn"]), item):
            behind.append(event.subject)
    return [one for one in dict.fromkeys(behind) if store.turn(owner, one) is not None]
