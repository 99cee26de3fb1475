from __future__ import annotations

import pytest

from memograd.errors import BadInput
from memograd.memory.records.operations import MemoryOp, OpKind


def test_each_operation_carries_what_it_needs() -> None:
    assert MemoryOp.add("a fact") == MemoryOp(OpKind.ADD, text="a fact")
    assert MemoryOp.update("7", "a fact") == MemoryOp(OpKind.UPDATE, "a fact", "7")
    assert MemoryOp.delete("7") == MemoryOp(OpKind.DELETE, item_id="7")
    assert MemoryOp.none() == MemoryOp(OpKind.NONE)
    assert MemoryOp.none("7").item_id == "7"


@pytest.mark.parametrize(
    ("kind", "text", "item_id"),
    [
        (OpKind.ADD, None, None),
        (OpKind.ADD, "  ", None),
        (OpKind.ADD, "a fact", "7"),
        (OpKind.UPDATE, "a fact", None),
        (OpKind.UPDATE, None, "7"),
        (OpKind.DELETE, None, None),
        (OpKind.DELETE, "a fact", "7"),
        (OpKind.NONE, "a fact", None),
    ],
)
def test_what_is_missing_or_does_not_belong_is_refused(
    kind: OpKind, text: str | None, item_id: str | None
) -> None:
    with pytest.raises(BadInput):
        MemoryOp(kind, text, item_id)
