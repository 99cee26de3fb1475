"""The memory of one walk through a log: a forkable state that knows which statements it carries.

Items are made exactly as the running memory makes them, with one thing more: each knows the
statement whose text it carries now. An UPDATE replaces the text, so what the item said before is
carried no longer.

Invariants: forks never see each other's changes; `carried` names exactly the living items.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np

from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import MemoryOp, OpKind
from memograd.memory.records.scope import Scope
from memograd.memory.search import Hit
from memograd.memory.search.related import find_related
from memograd.memory.state import MemoryState
from memograd.tasks.memory_ops.material import EmbeddedLog

_SCOPE: Final = Scope(user_id="log")


class LogMemory:
    """What is remembered of a log so far. carried: item id to number of the statement."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self.state = MemoryState(log.vectors_ND.shape[1])
        self.carried: dict[str, int] = {}

    def fork(self) -> LogMemory:
        """The same memory, free to go another way."""
        fork = LogMemory(self._log)
        fork.state = self.state.fork()
        fork.carried = dict(self.carried)
        return fork

    @property
    def tokens(self) -> int:
        """Size of all items together."""
        return int(self._log.tokens_N[list(self.carried.values())].sum()) if self.carried else 0

    def related(self, number: int) -> list[Hit[MemoryItem]]:
        """The items that a decision about a statement looks at."""
        return find_related(self.state.items, self._log.queries[number])

    def apply(self, op: MemoryOp, number: int) -> None:
        """Do to the memory what `op` says, on behalf of the statement with that number."""
        if op.kind is OpKind.NONE:
            return
        if op.kind is OpKind.DELETE:
            assert op.item_id is not None  # MemoryOp refuses others
            self.remove(op.item_id)
            return
        item_id = op.item_id or self._log.log.statements[number].id
        change = self.state.replace_item if op.kind is OpKind.UPDATE else self.state.add_item
        query = self._log.queries[number]
        change(self._item(item_id, number), query.vector, query.terms)
        # Put behind the others, as in the state: a changed item is the most recent one.
        self.carried.pop(item_id, None)
        self.carried[item_id] = number

    def remove(self, item_id: str) -> None:
        """Take an item out."""
        self.state.remove_item(item_id)
        del self.carried[item_id]

    def statements_in(self, hits: Sequence[Hit[MemoryItem]]) -> set[int]:
        """Which statements these items carry."""
        return {self.carried[hit.record.id] for hit in hits}

    def vectors(self) -> np.ndarray:
        """Of all items in their order, float32 [items, d]."""
        vectors: np.ndarray = self._log.vectors_ND[list(self.carried.values())]
        return vectors

    def _item(self, item_id: str, number: int) -> MemoryItem:
        fact = self._log.facts[number]
        told = fact.told_at or datetime(1970, 1, 1, tzinfo=UTC)
        return MemoryItem(
            id=item_id,
            text=fact.text,
            scope=_SCOPE,
            created_at=told,
            updated_at=told,
            sources=fact.sources,
            valid_from=fact.valid_from,
        )
