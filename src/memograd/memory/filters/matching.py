"""Conditions become closures that decide for one item, without ever raising.

Numbers compare with numbers (a truth value is none), texts with texts by code point, moments with
moments; across sorts nothing is equal, greater or less. A list holds whatever one of its elements
does: `in`, `eq` and `contains` look for an element, `icontains` for a text element without regard
to case. A field that is not there is None: no value equals it except null, so `ne` and `nin` hold
and every other operator does not. Invariant: see the package.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from memograd.memory.filters.conditions import Condition, Node, Value, ValueSort
from memograd.memory.filters.fields import FieldSort, Getter, getter, sort_of
from memograd.memory.records.items import MemoryItem

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
