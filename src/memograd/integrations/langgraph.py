"""LangGraph's `BaseStore` over a memory: `graph.compile(store=LangGraphStore(memory, ...))`.

Each document is an item of one owner, found by `Memory.search` too; namespaces order an owner's
documents and are no wall between users, so make a store for each owner. Invariant: beside
`InMemoryStore`, the same calls give the same documents, namespaces and filter results; only a
namespace that holds nothing is not listed here.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    validate_op_namespace,
)

from memograd.integrations.shelf import Document, Name, NewDocument, Shelf
from memograd.memory import Memory
from memograd.memory.records.scope import Scope

SHELF: Final = "langgraph"
_ORDER: Final[dict[str, Callable[[float, float], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class LangGraphStore(BaseStore):
    """A store whose documents are memories of one user, agent or run."""

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> None:
        """fields: paths in a value whose texts a query finds; None: all texts and numbers in it."""
        self._shelf = Shelf(memory, Scope(user_id, agent_id, run_id), SHELF)
        self._fields = fields

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer all reads from what stood before, then make all changes, together or not at all.

        Raises ValueError for an operation that is none, InvalidNamespaceError for a wrong name.
        """
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        if asked and all(isinstance(op, GetOp) for op in asked):
            return [self._get(op) for op in asked if isinstance(op, GetOp)]
        known = self._shelf.documents()
        results: list[Result] = []
        puts: dict[Name, PutOp] = {}
        for op in asked:
            if isinstance(op, GetOp):
                name = (*op.namespace, op.key)
                results.append(_item(name, known[name]) if name in known else None)
            elif isinstance(op, SearchOp):
                results.append(self._search(op, known))
            elif isinstance(op, ListNamespacesOp):
                results.append(_namespaces(op, known))
            elif isinstance(op, PutOp):
                puts[(*op.namespace, op.key)] = op
                results.append(None)
            else:
                raise ValueError(f"Unknown operation type: {type(op)}")
        if puts:
            changes = {name: self._put(op) for name, op in puts.items()}
            self._shelf.change(lambda _: changes)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _get(self, op: GetOp) -> Item | None:
        name = (*op.namespace, op.key)
        found = self._shelf.get(name)
        return None if found is None else _item(name, found)

    def _put(self, op: PutOp) -> NewDocument | None:
        if op.value is None:
            return None
        value = dict(op.value)
        fields = self._fields if op.index is None else op.index
        labels: dict[str, Any] = {"under": _prefixes(op.namespace)}
        if fields is False:
            return NewDocument(value, "", {**labels, "unindexed": True})
        texts = _texts(value) if fields is None else _at_paths(value, fields)
        return NewDocument(value, "\n".join(texts), labels)

    def _search(self, op: SearchOp, known: Mapping[Name, Document]) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)  # a list means the same
        among = {
            name: found
            for name, found in known.items()
            if name[:-1][: len(prefix)] == prefix and _matches(found.value, op.filter)
        }
        page = slice(op.offset, op.offset + op.limit)
        if not op.query:
            return [_found(name, found, None) for name, found in list(among.items())[page]]
        scores = self._scores(op, len(known))
        best = [name for name in scores if name in among]
        rest = [name for name in among if name not in scores]  # not indexed: after all others
        return [_found(name, among[name], scores.get(name)) for name in [*best, *rest][page]]

    def _scores(self, op: SearchOp, count: int) -> dict[Name, float]:
        """The scores of indexed documents for the query, best first."""
        conditions: list[Any] = [self._shelf.filters(), {"NOT": [{"metadata.unindexed": "*"}]}]
        if op.namespace_prefix:
            under = ".".join(op.namespace_prefix)
            conditions.append({"metadata.under": {"contains": under}})
        found = self._shelf.memory.search(
            op.query or "", filters={"AND": conditions}, top_k=max(1, count)
        )
        return {self._shelf.name_of(hit): hit["score"] for hit in found["results"]}


def _item(name: Name, found: Document) -> Item:
    return Item(
        value=found.value,
        key=name[-1],
        namespace=name[:-1],
        created_at=found.created_at,
        updated_at=found.updated_at,
    )


def _found(name: Name, found: Document, score: float | None) -> SearchItem:
    return SearchItem(name[:-1], name[-1], found.value, found.created_at, found.updated_at, score)


def _prefixes(namespace: Name) -> list[str]:
    """Every namespace that this one is in; labels have no dots, so a dot can join them."""
    return [".".join(namespace[:end]) for end in range(1, len(namespace) + 1)]


def _texts(value: Any) -> list[str]:
    """All texts and numbers in a value."""
    if isinstance(value, Mapping):
        return [text for one in value.values() for text in _texts(one)]
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(one)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _at_paths(value: dict[str, Any], paths: Sequence[str]) -> list[str]:
    return [text for path in paths for text in get_text_at_path(value, path)]


def _namespaces(op: ListNamespacesOp, known: Mapping[Name, Document]) -> list[Name]:
    every = {name[:-1] for name in known}
    conditions = op.match_conditions or ()
    kept = {name for name in every if all(_fits(name, condition) for condition in conditions)}
    if op.max_depth is not None:
        kept = {name[: op.max_depth] for name in kept}
    return sorted(kept)[op.offset : op.offset + op.limit]


def _fits(namespace: Name, condition: MatchCondition) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    if not path:
        return True
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(_equal(value.get(key), one) for key, one in (wanted or {}).items())


def _equal(value: Any, wanted: Any) -> bool:
    """Whether a value is the wanted one, or fulfils all of its conditions (`{"$gt": 3}`)."""
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
            return all(_holds(value, sort, bound) for sort, bound in wanted.items())
        return isinstance(value, Mapping) and _matches(value, wanted)
    if isinstance(wanted, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(wanted):
            return False
        return all(_equal(one, other) for one, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _holds(value: Any, sort: str, bound: Any) -> bool:
    if sort == "$eq":
        return bool(value == bound)
    if sort == "$ne":
        return bool(value != bound)
    if sort not in _ORDER:
        raise ValueError(f"Unsupported operator: {sort}")
    try:
        return _ORDER[sort](float(value), float(bound))
    except (TypeError, ValueError):
        return False  # no number is neither more nor less
