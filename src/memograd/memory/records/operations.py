"""What can be done to a memory, who decided it, and why.

A manager looks at a new fact and at the items related to it and returns a `Decision`: one MemoryOp
with its reason. Rules, language models and trained policies all answer in these words.

Invariants: an operation carries exactly what its kind needs, no more and no less; every reason
exists in English and Chinese, and `reason` takes the one of the text that it is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from memograd.errors import BadInput
from memograd.memory.language import is_chinese


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


REASONS: Final[Mapping[str, tuple[str, str]]] = {
    # of the memory itself
    "verbatim": ("remembered word for word", "逐字记下"),
    "picture": ("what a picture shows", "图片内容"),
    "hidden": ("what it told is changed or to be forgotten", "其中的内容已更改或需忘记"),
    "pending": (
        "Asked to forget everything: confirm it with delete_all.",
        "用户要求忘记全部内容：请用 delete_all 确认。",
    ),
    "stays": ("Said again: it stays for longer than it would have", "再次提到，因此保留得更久"),
    "expired": ("it has expired", "已过期"),
    # of the application
    "edited": ("updated by the application", "由应用更新"),
    "deleted": ("deleted by the application", "由应用删除"),
    "deleted_all": ("deleted by the application with others", "由应用一并删除"),
    # of managers, about a statement
    "replace": ("A new value takes its place", "有了新的说法"),
    "correct": ("It was corrected", "已更正"),
    "end": ("It is no longer so", "已不再成立"),
    "doubt": ("It may be so no longer", "可能已不再成立"),
    "retract": ("It was taken back", "用户收回了这句话"),
    "forget": ("Somebody asked to forget it", "用户要求忘记"),
    "same": ("Already remembered", "已经记得"),
    "detail": ("Already remembered, in more detail", "已经记得，而且更详细"),
    "contrary": ("The contrary was remembered", "此前记的正好相反"),
    "new": ("Nothing remembered says this yet", "新的内容"),
    "beside": ("New; it may change what is linked", "新的内容，可能改变相关记忆"),
    "beside_clause": ("New, but this says other things too", "新的内容，但这条还说了别的"),
    "before": ("Tells of a time before", "说的是更早的时候"),
    "nothing_to_forget": (
        "Nothing remembered says what is to be forgotten",
        "没有记过要忘记的内容",
    ),
}


def reason(key: str, about: str, *, quoted: bool = False) -> str:
    """The reason in the language of `about`; quoted: followed by the statement itself."""
    chinese = is_chinese(about)
    said = REASONS[key][chinese]
    return f"{said}{'：' if chinese else ': '}{about}" if quoted else said
