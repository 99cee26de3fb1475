"""The memory as one key may see it: the one door to all memories, for REST, MCP and the page.

Every method is one of `Memory`'s, with the right that it needs, within the key's `Wall`, and with a
line in the access log. An item of somebody else is refused exactly as one that never was (404).
Whose memory is meant is said by `ids` (user_id, agent_id, run_id) and by filters.

Invariant: nothing that is returned or changed belongs to another owner than the key's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from memograd.errors import BadInput, Unfinished
from memograd.memory import Memory
from memograd.memory.arguments import checked_id
from memograd.memory.filters import Filter, parse_filter
from memograd.memory.messages import say_nothing, to_moment
from memograd.memory.records.events import Event, EventKind
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import SCOPE_FIELDS, Scope
from memograd.memory.results import entity_results, history_result, item_result
from memograd.memory.search.paging import Page
from memograd.memory.write.calls import NOTHING_SAID
from memograd.serve.access import Access, AccessLog
from memograd.serve.identity import Identity
from memograd.serve.keys import Right, owner_field
from memograd.serve.limits import LONGEST_TEXT, check_ids
from memograd.serve.refusals import Forbidden, NotFound
from memograd.serve.wall import Filters, Ids, Wall

if TYPE_CHECKING:
    from memograd.memory.search import Context

OPERATIONS: Final = frozenset(
    {EventKind.ADD, EventKind.UPDATE, EventKind.DELETE, EventKind.NONE, EventKind.PURGE}
)

READ_TOGETHER: Final = 500
"""Events of the journal, for a page of operations: never all that an owner has."""


class OwnedMemory:
    """`Memory` for one key. Its methods block, as `Memory`'s do: call them in a thread."""

    def __init__(self, memory: Memory, identity: Identity, access: AccessLog, *, via: str) -> None:
        """For `Served.memory_of`."""
        self._memory, self.identity, self._access, self._via = memory, identity, access, via
        self._wall = Wall(identity)

    def whose(self, ids: Ids) -> str:
        """The owner under whom a call writes that names these ids. Raises as `Wall.scope`."""
        return self._wall.scope(ids).owner

    # Writing

    def add(self, messages: Any, *, ids: Ids, **given: Any) -> dict[str, Any]:
        """`Memory.add` under these ids. Raises BadInput where no message holds anything."""
        self.identity.need(Right.write)
        scope = self._new_place(ids)
        check_lengths(messages)
        if say_nothing(messages):
            raise BadInput(NOTHING_SAID)
        result = self._memory.add(
            messages,
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            run_id=scope.run_id,
            **given,
        )
        self._note("add", scope.owner, (one["id"] for one in result["results"]))
        return result

    def add_many(
        self, batch: Iterable[Mapping[str, Any]], *, ids: Ids, **common: Any
    ) -> dict[str, Any]:
        """`Memory.add_many` under these ids. Raises BadInput where no entry holds anything."""
        self.identity.need(Right.write)
        scope = self._new_place(ids)
        entries = list(batch)
        for entry in entries:
            check_lengths(entry["messages"])
        if entries and all(say_nothing(entry["messages"]) for entry in entries):
            raise BadInput(NOTHING_SAID)
        result = self._memory.add_many(entries, **_by_name(scope), **common)
        made = [one["id"] for answer in result["results"] for one in answer["results"]]
        self._note("add_many", scope.owner, made)
        return result

    def sweep(self, *, ids: Ids) -> dict[str, Any]:
        """`Memory.sweep` under these ids."""
        self.identity.need(Right.write)
        scope = self._wall.scope(ids)
        result = self._memory.sweep(**_by_name(scope))
        self._note("sweep", scope.owner)
        return result

    def update(
        self,
        memory_id: str,
        text: str | None,
        metadata: Mapping[str, Any] | None,
        **ends: Any,
    ) -> dict[str, Any]:
        """`Memory.update`; returns the item as it stands then. ends: its expiration_date."""
        self.identity.need(Right.write)
        check_lengths(text)
        owner = self._owner_of_living(memory_id)
        self._memory.update(memory_id, text, metadata, **ends)
        self._note("update", owner, [memory_id])
        item = self._memory.get(memory_id)
        if item is None:  # somebody was faster
            raise _unknown(memory_id)
        return item

    def delete(self, memory_id: str) -> dict[str, str]:
        """`Memory.delete`: forget one item."""
        self.identity.need(Right.write)
        owner = self._owner_of_living(memory_id)
        result = self._memory.delete(memory_id)
        self._note("delete", owner, [memory_id])
        return result

    def delete_all(self, *, ids: Ids, filters: Filters | None = None) -> dict[str, Any]:
        """`Memory.delete_all`: forget what matches."""
        self.identity.need(Right.write)
        result = self._memory.delete_all(filters=self._wall.filters(ids, filters))
        self._note("delete_all", self._wall.owner_meant(ids, filters))
        return result

    def compact(self, budget: int, *, ids: Ids) -> dict[str, Any]:
        """`Memory.compact` under these ids."""
        self.identity.need(Right.write)
        scope = self._wall.scope(ids)
        report = self._memory.compact(budget, **_by_name(scope))
        self._note("compact", scope.owner)
        return report

    def undo_compact(self, batch_id: str) -> dict[str, Any]:
        """`Memory.undo_compact`; raises `NotFound` for a batch of somebody else."""
        from memograd.memory.write.compaction import MARK

        self.identity.need(Right.write)
        named = batch_id if batch_id.isascii() and batch_id.isalnum() else ""
        done = self._memory.store.journal.of_reason(f"{MARK} {named}:") if named else []
        if not done or not all(self._wall.lets_see(event.scope.owner) for event in done):
            raise NotFound(f"There is no compaction {batch_id[:80]!r}.")
        report = self._memory.undo_compact(batch_id)
        self._note("undo_compact", done[0].scope.owner)
        return report

    def answered(
        self, question: str, answer: str, *, shown: Iterable[str], ids: Ids
    ) -> dict[str, str]:
        """`Memory.answered` under these ids."""
        self.identity.need(Right.write)
        check_lengths([question, answer])
        scope = self._new_place(ids)
        answer_id = self._memory.answered(question, answer, shown=shown, **_by_name(scope))
        self._note("answered", scope.owner)
        return {"answer_id": answer_id}

    def feedback(self, answer_id: str, verdict: str) -> dict[str, Any]:
        """`Memory.feedback`; raises `NotFound` for an answer of somebody else."""
        self.identity.need(Right.write)
        latest = None if _unsayable(answer_id) else self._memory.store.journal.latest(answer_id)
        known = latest is not None and latest.kind is EventKind.ANSWER and not latest.erased
        if latest is None or not known or not self._wall.lets_see(latest.scope.owner):
            raise NotFound(f"There is no answer with the id {answer_id[:80]!r}.")
        result = self._memory.feedback(answer_id, verdict)
        self._note("feedback", latest.scope.owner)
        return result

    # Reading

    def search(
        self, query: str, *, ids: Ids, filters: Filters | None = None, **given: Any
    ) -> dict[str, Any]:
        """`Memory.search` among what the key may see."""
        self.identity.need(Right.read)
        check_lengths(query)
        result = self._memory.search(query, filters=self._wall.filters(ids, filters), **given)
        shown = [*result["results"], *result.get("turns", [])]
        read = [(one["id"], _owner_of(one)) for one in shown]
        self._note_read("search", self._wall.owner_meant(ids, filters), read)
        return result

    def context(
        self, query: str, *, ids: Ids, filters: Filters | None = None, **given: Any
    ) -> Context:
        """`Memory.context` among what the key may see."""
        self.identity.need(Right.read)
        check_lengths(query)
        result = self._memory.context(query, filters=self._wall.filters(ids, filters), **given)
        items = (*result.core, *(hit.record for hit in result.items))
        turns = (hit.record for hit in result.turns)
        read: list[tuple[str, str | None]] = [(item.id, item.scope.owner) for item in items]
        read += [(turn.id, turn.scope.owner if turn.scope else None) for turn in turns]
        self._note_read("context", self._wall.owner_meant(ids, filters), read)
        return result

    def get(self, memory_id: str) -> dict[str, Any]:
        """`Memory.get`; raises `NotFound`."""
        self.identity.need(Right.read)
        owner = self._owner_of_living(memory_id)
        item = self._memory.get(memory_id)
        if item is None:
            raise _unknown(memory_id)
        self._note("get", owner, [memory_id])
        return item

    def items(
        self,
        *,
        ids: Ids,
        filters: Filters | None = None,
        as_of: datetime | str | float | None = None,
        show_expired: bool = False,
    ) -> list[MemoryItem]:
        """All items that match, oldest first. Whoever shows some of them says so by `shown`.

        An admin bound to no owner who names nobody gets everybody's.
        """
        self.identity.need(Right.read)
        moment = None if as_of is None else to_moment(as_of, "as_of")
        wanted = self._listed(ids, filters)
        return self._memory.recall.all_items(wanted, as_of=moment, show_expired=show_expired)

    def page(
        self,
        *,
        ids: Ids,
        filters: Filters | None,
        limit: int,
        cursor: str | None,
        as_of: datetime | str | float | None,
        show_expired: bool,
    ) -> Page:
        """One page of `items`, oldest first, noted as read."""
        self.identity.need(Right.read)
        page = self._memory.recall.page(
            self._listed(ids, filters),
            limit=limit,
            cursor=cursor,
            as_of=None if as_of is None else to_moment(as_of, "as_of"),
            show_expired=show_expired,
        )
        self.shown(page.items, ids=ids, filters=filters)
        return page

    def _listed(self, ids: Ids, filters: Filters | None) -> Filter:
        """What a listing may see."""
        everybodys = self.identity.is_operator() and not filters and not any(ids.values())
        return parse_filter(None if everybodys else self._wall.filters(ids, filters))

    def get_all(
        self,
        *,
        ids: Ids,
        filters: Filters | None = None,
        limit: int | None = None,
        show_expired: bool = False,
    ) -> list[dict[str, Any]]:
        """`Memory.get_all` among what the key may see: the first `limit` items, oldest first."""
        found = self.items(ids=ids, filters=filters, show_expired=show_expired)[:limit]
        self.shown(found, ids=ids, filters=filters)
        return [item_result(item) for item in found]

    def check(self, memory_id: str) -> None:
        """Raise `NotFound` unless this is a living item that the key may change."""
        self.identity.need(Right.write)
        self._owner_of_living(memory_id)

    def shown(
        self, items: Iterable[MemoryItem], *, ids: Ids, filters: Filters | None = None
    ) -> None:
        """Note that these of `items` were read."""
        read = [(item.id, item.scope.owner) for item in items]
        self._note_read("list", self._wall.owner_meant(ids, filters), read)

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """`Memory.history`; raises `NotFound`."""
        self.identity.need(Right.read)
        events = self._events_of(memory_id)
        self._note("history", events[0].scope.owner, [memory_id])
        return [history_result(event) for event in events]

    def operations(self, *, after: int, limit: int) -> list[Event]:
        """The journal's events behind a place, those of the operations only, the first `limit`."""
        return self.operations_until(after=after, limit=limit)[0]

    def operations_until(self, *, after: int, limit: int) -> tuple[list[Event], int]:
        """`operations`, and the place up to which there are no more of them: raw turns may stand
        behind the last one, and whoever asks again need not read these again."""
        self.identity.need(Right.read)
        journal = self._memory.store.journal
        found: list[Event] = []
        while len(found) < limit:
            if self.identity.owner is not None:
                page = journal.tail_page(self.identity.owner, after=after, limit=READ_TOGETHER)
            else:
                page = journal.tail_all(after=after, limit=READ_TOGETHER)
            found += [event for event in page if event.kind in OPERATIONS]
            after = page[-1].seq if page else after
            if len(page) < READ_TOGETHER:
                break
        if len(found) >= limit:
            found = found[:limit]
            after = found[-1].seq
        if found:
            read = [(event.subject, event.scope.owner) for event in found if event.subject]
            self._note_read("operations", self.identity.owner, read)
        return found, after

    def last_operation(self) -> int:
        """The place of the newest event that the key may know of."""
        self.identity.need(Right.read)
        return self._memory.store.journal.last_seq(self.identity.owner)

    def counts(self) -> list[dict[str, Any]]:
        """Users, agents and runs with how many items they have, and since when."""
        self.identity.need(Right.read)
        found = entity_results(self._memory.store.journal.living(self.identity.owner))
        self._note("users", self.identity.owner)
        return found

    def stats(self) -> dict[str, Any]:
        """`Memory.stats`, for an admin bound to no owner."""
        self.identity.need_operator()
        return {name: value for name, value in self._memory.stats().items() if name != "place"}

    def accesses(self, *, before: int | None, limit: int) -> list[Access]:
        """Who read what of the key's owner, newest first; of everybody for an operator."""
        self.identity.need(Right.read)
        if self.identity.owner is None:
            self.identity.need_operator()
        return self._access.read(owner=self.identity.owner, before=before, limit=limit)

    # Erasing and moving

    def purge(self, memory_id: str) -> dict[str, Any]:
        """`Memory.purge` of one item; raises `NotFound`."""
        self.identity.need(Right.erase)
        owner = self._events_of(memory_id)[0].scope.owner
        with self._erasing("purge", owner, [memory_id]):
            try:
                return self._memory.purge(memory_id)
            except BadInput:
                raise _unknown(memory_id) from None

    def purge_all(self, *, ids: Ids) -> dict[str, Any]:
        """`Memory.purge` of everything under these ids; of nothing where there is nothing."""
        self.identity.need(Right.erase)
        scope = self._wall.scope(ids)
        owner = self.identity.owner
        if owner is not None and owner_field(owner)[0] != "user_id" and len(scope.ids()) > 1:
            raise Forbidden("A key of an agent or a run purges one memory, or all of its own.")
        with self._erasing("purge_all", scope.owner):
            if owner is not None and len(scope.ids()) == 1:
                return self._memory.purge_owner(owner)
            try:
                return self._memory.purge(**_by_name(scope))
            except BadInput:
                return {"items": 0, "turns": 0, "owners": []}

    def reset(self) -> dict[str, Any]:
        """`Memory.reset` for an operator; a key with an owner purges that owner."""
        self.identity.need(Right.erase)
        if self.identity.owner is not None:
            return self.purge_all(ids={})
        self.identity.need_operator()
        with self._erasing("reset", None):
            return self._memory.reset()

    def export(self) -> Iterator[str]:
        """The lines of `Memory.export`, of what the key may see."""
        from memograd.memory.write.transfer import export_lines

        self.identity.need(Right.read)
        if self.identity.owner is None:
            self.identity.need_operator()
        self._note("export", self.identity.owner)
        owners = None if self.identity.owner is None else [self.identity.owner]
        return export_lines(self._memory.store, owners)

    def import_(self, path: str) -> int:
        """`Memory.import_`, for an admin bound to no owner: a file says itself whose it is."""
        self.identity.need_operator()
        count = self._memory.import_(path)
        self._note("import", None)
        return count

    # Whose

    def _new_place(self, ids: Ids) -> Scope:
        """Where something new is written. Raises as `Wall.scope`, BadInput for ids too long."""
        scope = self._wall.scope(ids)
        check_ids(scope.ids())
        return scope

    def _owner_of_living(self, memory_id: str) -> str:
        """The owner of a living item that the key may know of; raises `NotFound`."""
        item = None if _unsayable(memory_id) else self._memory.store.item(checked_id(memory_id))
        if item is None or not self._wall.lets_see(item.scope.owner):
            raise _unknown(memory_id)
        return item.scope.owner

    def _events_of(self, memory_id: str) -> list[Event]:
        """All that happened to an item, living or not; raises `NotFound`."""
        events: list[Event] = []
        if not _unsayable(memory_id):
            journal = self._memory.store.journal
            events = journal.history(checked_id(memory_id), owner=self.identity.owner)
        if not any(event.kind in OPERATIONS - {EventKind.NONE} for event in events):
            raise _unknown(memory_id)
        return events

    @contextmanager
    def _erasing(self, action: str, owner: str | None, items: Iterable[str] = ()) -> Iterator[None]:
        """Note what is erased here, also where bytes of it are left."""
        try:
            yield
        except Unfinished:
            self._note(action, owner, items)
            raise
        self._note(action, owner, items)

    def _note_read(
        self, action: str, owner: str | None, read: Iterable[tuple[str, str | None]]
    ) -> None:
        """Note what was read, by id and owner: where it is not of one owner, a line for each, so
        that everybody finds it who is told of."""
        by_owner: dict[str | None, list[str]] = {}
        for an_id, whose in read:
            by_owner.setdefault(owner or whose, []).append(an_id)
        for whose, ids in (by_owner or {owner: []}).items():
            self._note(action, whose, ids)

    def _note(self, action: str, owner: str | None, items: Iterable[str | None] = ()) -> None:
        self._access.note(
            key_id=self.identity.key_id,
            key_name=self.identity.name,
            via=self._via,
            action=action,
            owner=owner,
            items=(one for one in items if one is not None),
        )


def check_lengths(said: object) -> None:
    """Raise BadInput for a text that is too long, in messages too; pictures are no text."""
    if isinstance(said, str):
        if len(said) > LONGEST_TEXT:
            raise BadInput(
                f"A text has {len(said)} characters, and {LONGEST_TEXT} is the most: send parts."
            )
    elif isinstance(said, Mapping):
        check_lengths(said.get("content", said.get("text")))
    elif isinstance(said, Sequence):
        for part in said:
            check_lengths(part)


def _owner_of(told: Mapping[str, Any]) -> str | None:
    """Whose an item is that was told; None of a raw turn, which does not say."""
    named = {name: told[name] for name in SCOPE_FIELDS if told.get(name) is not None}
    return Scope(**named).owner if named else None


def _by_name(scope: Scope) -> dict[str, Any]:
    return {name: getattr(scope, name) for name in SCOPE_FIELDS}


def _unsayable(an_id: str) -> bool:
    return "\0" in an_id  # no database of texts takes it, so there is nothing by that name


def _unknown(memory_id: str) -> NotFound:
    return NotFound(f"There is no memory with the id {memory_id[:80]!r}.")
