"""The parsed form of a filter: conditions on fields, joined by AND, OR and NOT.

Fields. The fields of an item go by their names (`memory` is another word for `text`); every other
name is a path into the item's metadata: the key of that very name where there is one, else the keys
between its dots (`trip.city`). `metadata.` in front reaches a key that shares its name with a
field. What is not there reads as None, and so does an empty list of categories.

Equality. `eq` and `ne` are kept as `in` and `nin` of one value. Numbers compare with numbers (a
truth value is none), texts with texts by code point, moments with moments; across sorts nothing is
equal, greater or less. A list holds whatever one of its elements does: `in`, `eq` and `contains`
look for an element, `icontains` for a text element without regard to case. No value equals None
except null, so there `ne` and `nin` hold and every other operator does not.

Invariants: two parsed forms are equal only if they match the same items; matching never raises; see
the package.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

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
METADATA: Final = "metadata."


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
    return field if field.startswith(METADATA) else METADATA + field


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
    return _metadata_getter(field.removeprefix(METADATA))


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


Operator = Literal["in", "nin", "gt", "gte", "lt", "lte", "contains", "icontains", "present"]
Joint = Literal["AND", "OR", "NOT"]


class ValueSort(Enum):
    """What sort of value a filter was given."""

    NONE = "null"
    TRUTH = "true or false"
    NUMBER = "a number"
    TEXT = "a text"
    MOMENT = "a moment"


class Value(NamedTuple):
    """A value with its sort, without which Python would take `True` for `1`."""

    sort: ValueSort
    value: str | float | bool | datetime | None


@dataclass(frozen=True, slots=True)
class Condition:
    """One field (canonical name), one operator; as many operands as the operator takes."""

    field: str
    operator: Operator
    operands: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionGroup:
    """AND: all members hold (also when there are none). OR: one does. NOT: none does."""

    joint: Joint
    members: tuple[Node, ...]


Node = Condition | ConditionGroup


def mentions(node: Node, field: str) -> bool:
    """Whether any condition asks about the field (canonical name)."""
    if isinstance(node, Condition):
        return node.field == field
    return any(mentions(member, field) for member in node.members)


def fields(node: Node) -> set[str]:
    """All fields that the node asks about."""
    if isinstance(node, Condition):
        return {node.field}
    return {field for member in node.members for field in fields(member)}


def pinned(node: Node, field: str) -> frozenset[str] | None:
    """The texts that the field of a matching item can hold; None where any could match.

    By logic alone: `eq` and `in` pin to their values, AND to what all pinning members allow, OR to
    what any member allows if all of them pin, everything else to nothing.
    """
    if isinstance(node, Condition):
        if node.field != field or node.operator != "in":
            return None
        texts = frozenset(operand.value for operand in node.operands)
        # A null among the values lets items match that have no such id at all.
        return None if None in texts else frozenset(str(text) for text in texts)
    if node.joint == "NOT":
        return None
    sets = [pinned(member, field) for member in node.members]
    known = [ids for ids in sets if ids is not None]
    if node.joint == "AND":
        return frozenset.intersection(*known) if known else None
    return frozenset().union(*known) if len(known) == len(sets) else None


def names_owner(node: Node) -> bool:
    """Whether every match has a user, an agent or a run that is named, or any, said by `"*"`."""
    if isinstance(node, Condition):
        asked = node.field in SCOPE_FIELDS and node.operator in ("in", "present")
        return asked and all(operand.value is not None for operand in node.operands)
    if node.joint == "NOT":
        return False
    named = [names_owner(member) for member in node.members]
    return any(named) if node.joint == "AND" else all(named)


Test = Callable[[Any], bool]
ItemTest = Callable[[MemoryItem], bool]

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def compile_node(node: Node) -> ItemTest:
    """A function that says whether an item matches."""
    if isinstance(node, Condition):
        return _compile_condition(node)
    tests = tuple(compile_node(member) for member in node.members)
    if node.joint == "NOT":
        return lambda item: not any(test(item) for test in tests)
    if node.joint == "OR":
        return lambda item: any(test(item) for test in tests)

    def all_hold(item: MemoryItem) -> bool:
        for test in tests:  # noqa: SIM110 (a generator would double the time of a match)
            if not test(item):
                return False
        return True

    return all_hold


def _compile_condition(condition: Condition) -> ItemTest:
    get = getter(condition.field)
    if condition.operator == "present":
        return lambda item: get(item) is not None
    if condition.operator == "nin":
        holds = _one_of(condition.operands)
        return lambda item: not holds(get(item))
    if condition.operator == "in":
        return _membership(condition, get)
    (bound,) = condition.operands
    if condition.operator in _ORDER:
        test = _compared(_ORDER[condition.operator], bound)
    elif condition.operator == "contains":
        test = _contains(bound)
    else:
        test = _icontains(str(bound.value))
    return lambda item: test(get(item))


def _membership(condition: Condition, get: Getter) -> ItemTest:
    """`in`, with a short way for the commonest filter of all, one id."""
    single_text = sort_of(condition.field) in (FieldSort.ID, FieldSort.TEXT, FieldSort.KIND)
    if single_text and len(condition.operands) == 1:
        wanted = condition.operands[0].value
        return lambda item: bool(get(item) == wanted)
    holds = _one_of(condition.operands)
    return lambda item: holds(get(item))


def _one_of(operands: tuple[Value, ...]) -> Test:
    by_sort = {
        sort: frozenset(operand.value for operand in operands if operand.sort is sort)
        for sort in ValueSort
    }
    texts, numbers = by_sort[ValueSort.TEXT], by_sort[ValueSort.NUMBER]
    truths, moments = by_sort[ValueSort.TRUTH], by_sort[ValueSort.MOMENT]
    null = bool(by_sort[ValueSort.NONE])

    def holds(value: Any) -> bool:
        if isinstance(value, str):
            return value in texts
        if value is None:
            return null
        if isinstance(value, bool):
            return value in truths
        if isinstance(value, int | float):
            return value in numbers
        if isinstance(value, list | tuple):
            return any(holds(element) for element in value)
        return isinstance(value, datetime) and value in moments

    return holds


def _compared(compare: Callable[[Any, Any], bool], bound: Value) -> Test:
    limit = bound.value
    if bound.sort is ValueSort.TEXT:
        return lambda value: isinstance(value, str) and compare(value, limit)
    if bound.sort is ValueSort.MOMENT:
        return lambda value: isinstance(value, datetime) and compare(value, limit)
    return lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and compare(value, limit)
    )


def _contains(operand: Value) -> Test:
    holds, wanted = _one_of((operand,)), operand.value

    def contains(value: Any) -> bool:
        if isinstance(value, str):
            return isinstance(wanted, str) and wanted in value
        return isinstance(value, list | tuple) and holds(value)

    return contains


def _icontains(text: str) -> Test:
    wanted = text.casefold()

    def contains(value: Any) -> bool:
        if isinstance(value, str):
            return wanted in value.casefold()
        return isinstance(value, list | tuple) and any(
            isinstance(element, str) and element.casefold() == wanted for element in value
        )

    return contains
