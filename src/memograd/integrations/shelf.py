"""Documents by name, kept as items of one owner: what frameworks call a store, files, a session.

A document has a name (a path of texts), a JSON value, and the text that searches find it by. Its
item's id follows from owner, shelf and name, so a name cannot be taken twice. Invariant: **a change
is made of the documents as they stand, or made again**: whatever other processes write meanwhile,
changes to a shelf end like some order of them one by one.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from memograd.memory import Memory
from memograd.memory.journal import Conflict
from memograd.memory.records.documents import NAME, SHELF, VALUE, is_document
from memograd.memory.records.events import NewEvent
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope, check_unicode
from memograd.memory.write.changes import added, deleted, updated
from memograd.memory.write.remember import ATTEMPTS

Name = tuple[str, ...]

_IDS: Final = uuid.UUID("6f1c1c5e-7d52-4c0e-9f43-0b1d1f1c7a55")


@dataclass(frozen=True)
class Document:
    """What stands under a name. labels: JSON values that `Memory.search` may filter by."""

    value: Any
    text: str
    labels: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class NewDocument:
    """What shall stand under a name. text: what searches find; blank: the name."""

    value: Any
    text: str
    labels: Mapping[str, Any]


Changes = Mapping[Name, NewDocument | None]
"""By name; None takes the document away."""


class Shelf:
    """The documents of one framework in one owner's memory."""

    def __init__(self, memory: Memory, scope: Scope, shelf: str) -> None:
        """shelf: what the framework's documents are told by, as `metadata["shelf"]`."""
        self.memory, self.scope, self.shelf = memory, scope, shelf

    def get(self, name: Name) -> Document | None:
        """The document of this name."""
        item = self.memory.store.item(self._id(name))
        return None if item is None else _document(item)

    def documents(self) -> dict[Name, Document]:
        """All documents by name, in the order in which the names were taken."""
        return {_name(item): _document(item) for item in self._state()[0].values()}

    def change(self, decide: Callable[[Mapping[Name, Document]], Changes]) -> None:
        """Make the changes that `decide` wants of the documents, all of them or none.

        `decide` may be called again, with newer documents, and may raise to change nothing.
        """
        store = self.memory.store
        for attempt in range(ATTEMPTS):
            items, last = self._state()
            changes = decide({_name(item): _document(item) for item in items.values()})
            now = store.now()
            events = [
                event
                for name, put in changes.items()
                if (event := self._event(name, put, items.get(self._id(name)), now)) is not None
            ]
            try:
                store.write(self.scope.owner, events, expect_last=last)
                return
            except Conflict:
                store.step_aside(attempt)  # somebody was faster: decide again
        raise Conflict(
            f"The memory of {self.scope.owner} is being changed all the time: try again."
        )

    def name_of(self, found: Mapping[str, Any]) -> Name:
        """The name of a document that `Memory.search` found."""
        return tuple(found["metadata"][NAME])

    def filters(self) -> dict[str, Any]:
        """What a search of these documents is narrowed by."""
        return {**self.scope.ids(), f"metadata.{SHELF}": self.shelf, f"metadata.{NAME}": "*"}

    def _state(self) -> tuple[dict[str, MemoryItem], int]:
        """The items of the shelf by id, and the owner's last event."""
        state = self.memory.store.states.current(self.scope.owner, turn_vectors=False)
        documents = (item for item in state.items if is_document(item))
        mine = (item for item in documents if item.metadata[SHELF] == self.shelf)
        return {item.id: item for item in mine if item.scope == self.scope}, state.seq

    def _event(
        self, name: Name, put: NewDocument | None, item: MemoryItem | None, now: datetime
    ) -> NewEvent | None:
        why = {"actor": self.shelf, "reason": "asked for by the framework"}
        if put is None:
            return None if item is None else deleted(item, at=now, **why)
        metadata = {**put.labels, SHELF: self.shelf, NAME: list(name), VALUE: put.value}
        text = put.text if put.text.strip() else " ".join(name)
        check_unicode(text, "a document")
        if item is None:
            new = MemoryItem(self._id(name), text, self.scope, now, now, metadata=metadata)
            return added(new, **why)
        now = max(now, item.updated_at)  # the clock may have gone back
        after = replace(item, text=text, metadata=metadata, updated_at=now, valid_from=now)
        return updated(item, after, **why)

    def _id(self, name: Name) -> str:
        whole = [self.scope.owner, sorted(self.scope.ids().items()), self.shelf, *name]
        return str(uuid.uuid5(_IDS, json.dumps(whole, ensure_ascii=True)))


def _name(item: MemoryItem) -> Name:
    return tuple(item.metadata[NAME])


def _document(item: MemoryItem) -> Document:
    labels = {key: value for key, value in item.metadata.items() if key not in (SHELF, NAME, VALUE)}
    return Document(item.metadata[VALUE], item.text, labels, item.created_at, item.updated_at)
