"""From the dictionaries that callers write to conditions; what can never be right is refused here.

Refused means BadInput in one sentence: an unknown operator, a value of a sort that the field never
holds, `in` without a list, an empty AND, OR or NOT, nesting deeper than 50. After this, matching an
item cannot fail. Invariant: see the package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from typing import Any, Final, cast

from memograd.errors import BadInput
from memograd.memory.filters.conditions import (
    Condition,
    ConditionGroup,
    Joint,
    Node,
    Operator,
    Value,
    ValueSort,
)
from memograd.memory.filters.fields import FieldSort, canonical, sort_of
from memograd.memory.messages import to_moment
from memograd.memory.records.items import Kind
from memograd.memory.records.scope import check_id

MAX_DEPTH: Final = 50
OPERATORS: Final = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "icontains")
_JOINTS: Final = ("AND", "OR", "NOT")
_ORDERING: Final = ("gt", "gte", "lt", "lte")


def parse_mapping(raw: object, *, depth: int = 0) -> Node:
    """One dictionary of a filter: all of its entries hold. An empty one holds for every item."""
    if not isinstance(raw, Mapping):
        raise BadInput(f"A filter must be a dictionary of fields and values, not {_show(raw)}.")
    if depth > MAX_DEPTH:
        raise BadInput(f"The filter is nested more than {MAX_DEPTH} levels deep: flatten it.")
    members: list[Node] = []
    for key, value in raw.items():
        if not isinstance(key, str) or not key:
            raise BadInput(f"A field name in a filter must be a text, not {_show(key)}.")
        joint = key.removeprefix("$").upper()
        if joint in _JOINTS:
            members.append(_group(cast(Joint, joint), value, depth=depth))
        else:
            members.extend(_conditions(key, value))
    return members[0] if len(members) == 1 else ConditionGroup("AND", tuple(members))


def _group(joint: Joint, raw: object, *, depth: int) -> ConditionGroup:
    members = [raw] if isinstance(raw, Mapping) else raw
    if not isinstance(members, list | tuple) or not members or not all(members):
        raise BadInput(f"{joint} in a filter takes a list of one or more conditions: {_show(raw)}.")
    return ConditionGroup(
        joint, tuple(parse_mapping(member, depth=depth + 1) for member in members)
    )


def _conditions(key: str, raw: object) -> list[Condition]:
    """What one entry says about one field: a bare value, `*`, or operators with values."""
    field = canonical(key)
    if isinstance(raw, str) and raw == "*":
        return [Condition(field, "present")]
    if isinstance(raw, list | tuple):
        return [_condition(key, field, "in", raw)]
    if not isinstance(raw, Mapping):
        return [_condition(key, field, "eq", raw)]
    if not raw:
        raise BadInput(f"The filter on {key!r} is empty: give a value or an operator.")
    return [_condition(key, field, operator, value) for operator, value in raw.items()]


def _condition(key: str, field: str, operator: object, raw: object) -> Condition:
    if operator not in OPERATORS:
        raise BadInput(
            f"The filter on {key!r} has the unknown operator {_show(operator)}: use one of"
            f" {', '.join(OPERATORS)}."
        )
    what = f"{operator} in the filter on {key!r}"
    sort = sort_of(field)
    if operator in ("in", "nin"):
        if not isinstance(raw, list | tuple | set | frozenset):
            raise BadInput(f"{what} takes a list of values, not {_show(raw)}.")
        operands = tuple(_exact_value(element, sort, what) for element in raw)
        return Condition(field, cast(Operator, operator), operands)
    if operator in ("eq", "ne"):
        operands = (_exact_value(raw, sort, what),)
        return Condition(field, "in" if operator == "eq" else "nin", operands)
    if operator in _ORDERING and sort is FieldSort.TEXTS:
        raise BadInput(f"{what} cannot be right: a list is neither greater nor less.")
    if operator not in _ORDERING and sort is FieldSort.MOMENT:
        raise BadInput(f"{what} cannot be right: compare a moment by gt, gte, lt or lte.")
    value = _value(raw, sort, what)
    if operator in _ORDERING and value.sort in (ValueSort.NONE, ValueSort.TRUTH):
        raise BadInput(f"{what} takes a text, a number or a moment, not {_show(raw)}.")
    if value.sort is ValueSort.NONE or (
        operator == "icontains" and value.sort is not ValueSort.TEXT
    ):
        raise BadInput(f"{what} takes a text, not {_show(raw)}.")
    return Condition(field, cast(Operator, operator), (value,))


def _exact_value(raw: object, sort: FieldSort, what: str) -> Value:
    """A value that a field of this sort could be equal to."""
    if isinstance(raw, str) and sort is FieldSort.ID:
        check_id(what, raw)
    if isinstance(raw, str) and sort is FieldSort.KIND:
        kinds = [kind.value for kind in Kind]
        if raw not in kinds:
            raise BadInput(f"{what}: there is no kind {_show(raw)}, only {', '.join(kinds)}.")
    return _value(raw, sort, what)


def _value(raw: object, sort: FieldSort, what: str) -> Value:
    """A value that a field of this sort could be compared with."""
    if raw is None:
        return Value(ValueSort.NONE, None)
    if sort is FieldSort.MOMENT:
        if isinstance(raw, str | date):
            return Value(ValueSort.MOMENT, to_moment(raw, what))
    elif isinstance(raw, str):
        return Value(ValueSort.TEXT, raw)
    elif sort is FieldSort.JSON:
        if isinstance(raw, bool):
            return Value(ValueSort.TRUTH, raw)
        if isinstance(raw, int) or (isinstance(raw, float) and not math.isnan(raw)):
            return Value(ValueSort.NUMBER, raw)
    raise BadInput(f"{what} cannot be right: the field holds {sort.value}, never {_show(raw)}.")


def _show(raw: Any) -> str:
    shown = repr(raw)
    return shown if len(shown) <= 60 else shown[:57] + "..."
