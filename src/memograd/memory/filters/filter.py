"""A filter: from the dictionaries that callers write to what the room works with.

What can never be right is refused in one sentence (BadInput): an unknown operator, a value of a
sort that the field never holds, `in` without a list, an empty AND, OR or NOT, nesting deeper than
50. After that, matching an item cannot fail. Invariant: see the package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final, cast

from memograd.errors import BadInput
from memograd.memory.filters import conditions
from memograd.memory.filters.conditions import (
    Condition,
    ConditionGroup,
    FieldSort,
    ItemTest,
    Joint,
    Node,
    Operator,
    Value,
    ValueSort,
    canonical,
    compile_node,
    sort_of,
)
from memograd.memory.messages import to_moment
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.scope import SCOPE_FIELDS, Scope, check_id

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


@dataclass(frozen=True)
class Filter:
    """What a query may see. Filters of the same parsed form are equal, so they can be cached by."""

    root: Node
    _test: ItemTest = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_test", compile_node(self.root))

    def matches(self, item: MemoryItem) -> bool:
        """Whether a query with this filter may see the item; never raises."""
        return self._test(item)

    def can_ask_of_turns(self) -> bool:
        """Whether the filter asks about ids and metadata alone, which raw turns have too."""
        return all(
            name in SCOPE_FIELDS or name.startswith(conditions.METADATA)
            for name in conditions.fields(self.root)
        )

    def asks_of_ids_alone(self) -> bool:
        """Whether the filter says whose the items are, and nothing of what they are."""
        return all(name in SCOPE_FIELDS for name in conditions.fields(self.root))

    def matches_heard(self, scope: Scope, metadata: Mapping[str, Any]) -> bool:
        """Whether what was heard there with that metadata matches; see `can_ask_of_turns`."""
        moment = datetime.min.replace(tzinfo=UTC)
        return self._test(
            MemoryItem("", "", scope, created_at=moment, updated_at=moment, metadata=metadata)
        )

    def pinned(self, field: str) -> frozenset[str] | None:
        """The ids that a matching item can have in `user_id`, `agent_id` or `run_id`.

        None when the filter does not narrow them to a finite set; an empty set when no item can
        match.
        """
        return conditions.pinned(self.root, field)

    def mentions(self, field: str) -> bool:
        """Whether the filter asks about the field anywhere, in whatever way."""
        return conditions.mentions(self.root, canonical(field))

    def is_owner(self, owner: str) -> bool:
        """Whether the filter asks for one id and nothing more, and that id is this owner.

        If so, every item of the owner matches and need not be asked one by one.
        """
        root = self.root
        while isinstance(root, ConditionGroup) and root.joint == "AND" and len(root.members) == 1:
            root = root.members[0]
        if not isinstance(root, Condition) or root.operator != "in" or len(root.operands) != 1:
            return False
        name, id = root.field, root.operands[0].value
        return name in SCOPE_FIELDS and id is not None and Scope(**{name: str(id)}).owner == owner


def parse_filter(raw: Mapping[str, Any] | None) -> Filter:
    """The filter that a dictionary in mem0's language means; None and `{}` let everything pass.

    A key is a field, its value one of: a bare value (equal), a list (one of them), `"*"` (the field
    is there), or a dictionary of the operators eq, ne, in, nin, gt, gte, lt, lte, contains and
    icontains, all of which must hold. `AND`, `OR` and `NOT` (also `$and`, `and`, ...) take lists of
    such dictionaries; NOT means that none of them holds. Several keys side by side must all hold.
    `{"eq": "*"}` looks for the text `*` itself. Moments (created_at, updated_at, valid_from,
    valid_to) compare with datetimes, dates (their first moment) and ISO 8601 texts, in UTC where
    they name no zone.

    Raises BadInput in one sentence for what can never be right.
    """
    return Filter(ConditionGroup("AND", ()) if raw is None else parse_mapping(raw))


def scope_filter(
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Filter:
    """The filter of a query: the ids as arguments, a filter, or both (all must hold).

    Every match must have a user, an agent or a run that is named, or `"*"` must say that any will
    do. Raises BadInput otherwise, since a query over everybody's memory is never meant by accident
    (`{"user_id": None}` is a forgotten login); and for what `parse_filter` refuses.
    """
    asked = parse_filter(filters)
    ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    members: list[Node] = []
    for name, value in ids.items():
        if value is not None:
            check_id(name, value)
            members.append(Condition(name, "in", (Value(ValueSort.TEXT, value),)))
    if not members:
        if not conditions.names_owner(asked.root):
            raise BadInput(
                "Say whose memory is meant: give user_id, agent_id or run_id, as an argument or in"
                ' filters; {"user_id": "*"} asks for everybody\'s.'
            )
        return asked
    if filters:
        members.append(asked.root)
    return Filter(members[0] if len(members) == 1 else ConditionGroup("AND", tuple(members)))
