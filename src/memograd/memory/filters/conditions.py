"""The parsed form of a filter: conditions on fields, joined by AND, OR and NOT.

`eq` and `ne` are kept as `in` and `nin` of one value, so that everything behind the parser knows
one form of equality. Two parsed forms are equal only if they match the same items. Invariant: see
the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Literal, NamedTuple

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


def names_owner(node: Node, field: str) -> bool:
    """Whether every match has an id in `field` that is named, or any id, said by `"*"`."""
    if isinstance(node, Condition):
        asked = node.field == field and node.operator in ("in", "present")
        return asked and all(operand.value is not None for operand in node.operands)
    if node.joint == "NOT":
        return False
    named = [names_owner(member, field) for member in node.members]
    return any(named) if node.joint == "AND" else all(named)
