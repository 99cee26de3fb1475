"""A filter as the rest of the room sees it, and the two ways to say whose memories are meant.

Invariant: see the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memograd.errors import BadInput
from memograd.memory.filters import conditions
from memograd.memory.filters.conditions import Condition, ConditionGroup, Node, Value, ValueSort
from memograd.memory.filters.fields import canonical
from memograd.memory.filters.matching import ItemTest, compile_node
from memograd.memory.filters.parse import parse_mapping
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import SCOPE_FIELDS, Scope, check_id


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

    def asks_ids_alone(self) -> bool:
        """Whether the filter asks about user, agent and run ids and nothing else."""
        return conditions.fields(self.root) <= set(SCOPE_FIELDS)

    def matches_scope(self, scope: Scope) -> bool:
        """Whether what was heard there matches, by a filter that asks about ids alone."""
        moment = datetime.min.replace(tzinfo=UTC)
        return self._test(MemoryItem("", "", scope, created_at=moment, updated_at=moment))

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
        if not any(conditions.names_owner(asked.root, name) for name in SCOPE_FIELDS):
            raise BadInput(
                "Say whose memory is meant: give user_id, agent_id or run_id, as an argument or in"
                ' filters; {"user_id": "*"} asks for everybody\'s.'
            )
        return asked
    if filters:
        members.append(asked.root)
    return Filter(members[0] if len(members) == 1 else ConditionGroup("AND", tuple(members)))
