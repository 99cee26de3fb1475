"""The memory as the page shows it: owners with counts, pages of items, the past beside the present.

Invariant: as for `OwnedMemory`, whose wall every method here stands behind: nothing is shown of an
owner that the session's key does not open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from memograd.assistant.conversation import AssistantConversation
from memograd.memory import Memory
from memograd.memory.records.events import Event
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import SCOPE_FIELDS, Scope
from memograd.memory.results import history_result, item_result, turn_json
from memograd.memory.state import MemoryState
from memograd.serve.keys import Right, checked_owner, owner_field
from memograd.serve.limits import LONGEST_TEXT
from memograd.serve.owned_memory import OwnedMemory
from memograd.serve.refusals import Forbidden, NotFound

PAGE_ITEMS: Final = 30
PAGE_OWNERS: Final = 50
CHANGES: Final = frozenset({"ADD", "UPDATE", "DELETE"})
OPERATIONS: Final = CHANGES | {"NONE"}
FOUND: Final = 20
RELATED: Final = 5
READ_AT_FIRST: Final = 64
READ_WIDER: Final = 4
"""Places of the journal that are looked at for the newest operations, and how many times as many
when that was not enough."""


@dataclass(frozen=True)
class OwnerCount:
    """One owner, and how many items were ever learnt of it."""

    owner: str
    learnt: int


@dataclass(frozen=True)
class ItemsPage:
    """A page of items, the newest first."""

    items: list[dict[str, Any]]
    total: int
    kinds: Counter[str]
    """Items by kind, of the whole list."""
    before: int | None
    """Where the next page begins; None at the end."""


class PageMemory(OwnedMemory):
    """`OwnedMemory` with what a browser of memories needs. Its methods block: call them in a
    thread."""

    # Owners

    def owners(self, containing: str, *, page: int) -> tuple[list[OwnerCount], int]:
        """A page of the owners that this key opens, and how many there are."""
        self.identity.need(Right.read)
        journal = self._memory.store.journal
        own = self.identity.owner
        found = [own] if own is not None else journal.owners_left()
        found = [owner for owner in found if containing.casefold() in owner.casefold()]
        shown = found[page * PAGE_OWNERS : (page + 1) * PAGE_OWNERS]
        return [OwnerCount(owner, journal.count_added([owner])) for owner in shown], len(found)

    def check_owner(self, owner: str) -> dict[str, str | None]:
        """The ids of an owner. Raises `Forbidden` for one that the key does not open."""
        self.identity.need(Right.read)
        if self.identity.owner not in (None, owner):
            raise Forbidden(
                "This key opens the memory of another owner than the one that is named."
            )
        field, value = owner_field(checked_owner(owner))
        ids: dict[str, str | None] = {field: value}
        return ids

    def latest_operations(self, owner: str, count: int) -> list[dict[str, Any]]:
        """The newest operations of an owner that changed something, the newest first, with actor
        and reason. Reads the journal backwards, as far as is needed."""
        self.check_owner(owner)
        journal = self._memory.store.journal
        last, behind = journal.last_seq(owner), READ_AT_FIRST
        while True:
            events = journal.tail(owner, after=max(last - behind, 0))
            changes = [one for one in events if one.kind.value in CHANGES and not one.erased]
            if len(changes) >= count or behind >= last:
                break
            behind *= READ_WIDER
        found = changes[: -count - 1 : -1]
        self._note("operations", owner, (event.subject for event in found))
        return [history_result(event) for event in found]

    # Items

    def browse(
        self, owner: str, *, kind: str | None, as_of: datetime | None, after: int
    ) -> ItemsPage:
        """Items of an owner, the newest first, from the place `after` on.

        Reads the items of that page alone; a page of one kind also those that stand before them.
        """
        state = self._state(owner, as_of)
        kinds = state.items.count_by("kind")
        total = len(state.items) if kind is None else kinds[kind]
        eligible = None if kind is None else (lambda item: item.kind.value == kind)
        shown = state.items.last(PAGE_ITEMS, eligible, skip=after)
        self._note("list", owner, (item.id for item in shown))
        more = after + PAGE_ITEMS
        return ItemsPage(
            items=[item_result(item) for item in shown],
            total=total,
            kinds=kinds,
            before=more if more < total else None,
        )

    def today(self, owner: str, ids: Iterable[str]) -> dict[str, MemoryItem]:
        """Which of these items still stand, as they stand now, by id."""
        items = self._state(owner, None).items
        return {id: item for id in ids if (item := items.get(id)) is not None}

    def learnt_since(self, owner: str, moment: datetime) -> int:
        """How many of the items that stand now were not known at a moment."""
        past, now = self._state(owner, moment), self._state(owner, None)
        changed = self._memory.store.journal.changed_between(owner, past.seq, now.seq).subjects
        lost = sum(id in past.items and id not in now.items for id in changed)
        return len(now.items) - (len(past.items) - lost)

    def _state(self, owner: str, as_of: datetime | None) -> MemoryState:
        self.check_owner(owner)
        states = self._memory.store.states
        # The past is shown beside the present, and made of it faster than of the journal.
        current = states.current(owner)
        return current if as_of is None else states.at(owner, as_of)

    def find(
        self, query: str, owner: str, *, kind: str | None, as_of: datetime | None
    ) -> list[dict[str, Any]]:
        """The items of an owner that answer a query best, each with the reason."""
        conditions: list[dict[str, Any]] = [] if kind is None else [{"kind": kind}]
        return self._search(query, owner, conditions, as_of=as_of, explain=True, top_k=FOUND)

    def _search(
        self, query: str, owner: str, conditions: list[dict[str, Any]], **given: Any
    ) -> list[dict[str, Any]]:
        ids = self.check_owner(owner)
        # An agent's own memory is not what users said to it; theirs is under the users.
        [field] = ids
        before = SCOPE_FIELDS[: SCOPE_FIELDS.index(field)]
        conditions = [*conditions, *({"NOT": [{earlier: "*"}]} for earlier in before)]
        filters = {"AND": conditions} if conditions else None
        found = self.search(query, ids=ids, filters=filters, **given)
        results: list[dict[str, Any]] = found["results"]
        return results

    # The past

    def changes(self, owner: str) -> int:
        """How many times an item of the owner was added, updated or forgotten."""
        self.check_owner(owner)
        return self._memory.store.journal.count_changes(owner)

    def moment_of_change(self, owner: str, number: int) -> datetime:
        """When the change of this number (from 1) was written down."""
        self.check_owner(owner)
        moment = self._memory.store.journal.moment_of_change(owner, number)
        if moment is None:
            raise NotFound(f"There is no change {number} of this memory.")
        return moment

    # One item

    def past_or_present(self, memory_id: str) -> tuple[dict[str, Any], bool]:
        """An item with its owner, as it stands or as it last was, and whether it still stands.

        Raises `NotFound` for an item that never was, was purged, or is somebody else's.
        """
        self.identity.need(Right.read)
        journal = self._memory.store.journal
        events = journal.history(memory_id, owner=self.identity.owner)
        kept = [event for event in events if event.after or event.before]
        items = [event for event in kept if "text" in (event.after or event.before or {})]
        if not items:
            raise NotFound(f"There is no memory with the id {memory_id[:80]!r}.")
        last = items[-1]
        item = item_result(MemoryItem.from_json(last.after or last.before or {}))
        self._note("get", last.scope.owner, [memory_id])
        return item | {"owner": last.scope.owner}, last.after is not None

    def turns_behind(self, memory_id: str) -> list[dict[str, Any]]:
        """The raw turns that an item came from, in their order, as far as they are kept."""
        owner = self._owner_of_living(memory_id)
        item = self._memory.store.item(memory_id)
        found = self._memory.store.states.current(owner).turns_by_id
        sources = () if item is None else item.sources
        return [turn_json(found[source]) for source in sources if source in found]

    def related(self, memory_id: str, text: str, owner: str) -> Iterator[dict[str, Any]]:
        """The living items nearest to an item, without itself."""
        # A text of an import may be longer than what may be asked.
        found = self._search(text[:LONGEST_TEXT], owner, [], top_k=RELATED + 1)
        hits = [hit for hit in found if hit["id"] != memory_id]
        yield from hits[:RELATED]

    # Talking

    def told(
        self, text: str, user: str, memory: Memory, conversation: AssistantConversation | None
    ) -> tuple[list[Event], str | None]:
        """Learn from a user's message, and answer it where there is a conversation for it.

        memory: this memory as the conversation sees it. Returns the operations in their order, and
        the answer.
        """
        self.identity.need(Right.write)
        self._new_place({"user_id": user})
        answer = None
        before = memory.store.journal.last_seq(f"user:{user}")
        if conversation is None:
            memory.learn(text, scope=Scope(user_id=user))
        else:
            answer = conversation.reply(text).text
        told = memory.store.journal.tail(f"user:{user}", after=before)
        operations = [event for event in told if event.kind.value in OPERATIONS]
        self._note("add", f"user:{user}", (event.subject for event in operations))
        return operations, answer

    def erase(self, memory_id: str) -> str:
        """Purge one item, living or forgotten; returns its owner."""
        self.identity.need(Right.erase)
        item, _ = self.past_or_present(memory_id)
        with self._erasing("purge", item["owner"], [memory_id]):
            self._memory.purge(memory_id)
        return str(item["owner"])
