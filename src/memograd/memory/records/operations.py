"""What can be done to a memory, and who decided it.

A manager looks at a new fact and at the items related to it and returns a `Decision`: one MemoryOp
with its reason. Rules, language models and trained policies all answer in these words.

Invariant: an operation carries exactly what its kind needs, no more and no less.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memograd.errors import BadInput


class OpKind(StrEnum):
    """The four operations."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class MemoryOp:
    """`ADD(text)`, `UPDATE(item_id, text)`, `DELETE(item_id)` or `NONE`.

    NONE may name the item that made the fact superfluous. Raises BadInput for a part that is
    missing or does not belong.
    """

    kind: OpKind
    text: str | None = None
    item_id: str | None = None

    def __post_init__(self) -> None:
        needs_text = self.kind in (OpKind.ADD, OpKind.UPDATE)
        if needs_text != bool(self.text and self.text.strip()):
            raise BadInput(f"{self.kind} {'needs' if needs_text else 'takes no'} text.")
        if self.kind in (OpKind.UPDATE, OpKind.DELETE) and not self.item_id:
            raise BadInput(f"{self.kind} needs the id of an item.")
        if self.kind is OpKind.ADD and self.item_id:
            raise BadInput("ADD takes no id: the memory gives the new item its own.")

    @classmethod
    def add(cls, text: str) -> MemoryOp:
        """Remember `text` as a new item."""
        return cls(OpKind.ADD, text=text)

    @classmethod
    def update(cls, item_id: str, text: str) -> MemoryOp:
        """Let the item say `text` from now on."""
        return cls(OpKind.UPDATE, text=text, item_id=item_id)

    @classmethod
    def delete(cls, item_id: str) -> MemoryOp:
        """Close the item: it is true no longer."""
        return cls(OpKind.DELETE, item_id=item_id)

    @classmethod
    def none(cls, item_id: str | None = None) -> MemoryOp:
        """Leave the memory as it is."""
        return cls(OpKind.NONE, item_id=item_id)


@dataclass(frozen=True, slots=True)
class Decision:
    """An operation, the reason for it in one sentence, and how sure its author is (0 to 1)."""

    op: MemoryOp
    reason: str
    confidence: float = 1.0
