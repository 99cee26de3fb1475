"""What a filter can ask about, and how to read it off an item.

The fields of an item go by their names (`memory` is another word for `text`); every other name is a
path into the item's metadata: the key of that very name where there is one, else the keys between
its dots (`trip.city`). `metadata.` in front reaches a key that shares its name with a field. What
is not there reads as None, and so does an empty list of categories. Invariant: see the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from operator import attrgetter
from typing import Any, Final

from memograd.errors import BadInput
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import SCOPE_FIELDS

Getter = Callable[[MemoryItem], Any]


class FieldSort(Enum):
    """What a field holds; the value says it in a message to the user."""

    ID = "an id, which is a text"
    TEXT = "a text"
    KIND = "a kind of memory"
    TEXTS = "a list of texts"
    MOMENT = "a moment"
    JSON = "a text, a number, true, false, null or a list"


_SORTS: Final = {
    **dict.fromkeys(SCOPE_FIELDS, FieldSort.ID),
    **dict.fromkeys(("id", "role", "actor_id"), FieldSort.TEXT),
    "text": FieldSort.TEXT,
    "kind": FieldSort.KIND,
    "categories": FieldSort.TEXTS,
    **dict.fromkeys(
        ("created_at", "updated_at", "valid_from", "valid_to", "expires_at"), FieldSort.MOMENT
    ),
}
_METADATA: Final = "metadata."


def canonical(field: str) -> str:
    """The one name of a field: `text` for `memory`, `metadata.city` for `city`.

    Raises BadInput for `metadata` alone, which is not a value that can be compared.
    """
    if field in _SORTS:
        return field
    if field == "memory":
        return "text"
    if field == "metadata":
        raise BadInput(
            "A filter compares one metadata field at a time: name it, as in"
            ' {"city": "Paris"} or {"metadata.city": "Paris"}.'
        )
    return field if field.startswith(_METADATA) else _METADATA + field


def sort_of(field: str) -> FieldSort:
    """What the field with this canonical name holds."""
    return _SORTS.get(field, FieldSort.JSON)


def getter(field: str) -> Getter:
    """Reads the field with this canonical name off an item; None where there is nothing."""
    if field in SCOPE_FIELDS:
        return attrgetter(f"scope.{field}")
    if field == "kind":
        return attrgetter("kind.value")
    if field == "categories":
        return lambda item: item.categories or None
    if sort_of(field) is FieldSort.MOMENT:
        return _moment_getter(field)
    if field in _SORTS:
        return attrgetter(field)
    return _metadata_getter(field.removeprefix(_METADATA))


def _moment_getter(field: str) -> Getter:
    read: Callable[[MemoryItem], datetime | None] = attrgetter(field)

    def moment(item: MemoryItem) -> datetime | None:
        value = read(item)
        if value is None or value.tzinfo:
            return value
        return value.replace(tzinfo=UTC)

    return moment


def _metadata_getter(path: str) -> Getter:
    if "." not in path:
        return lambda item: item.metadata.get(path)
    first, *rest = path.split(".")

    def nested(item: MemoryItem) -> Any:
        if path in item.metadata:
            return item.metadata[path]
        value = item.metadata.get(first)
        for key in rest:
            if not isinstance(value, Mapping):
                return None
            value = value.get(key)
        return value

    return nested
