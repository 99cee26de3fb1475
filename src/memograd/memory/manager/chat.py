"""The manager that asks a chat model for the operation, as checked JSON.

Related items are shown with the numbers 1 to k, and the answer names them by these numbers, so that
no id can be invented. An answer that names an item that was not shown, or lacks what its operation
needs, is sent back once with the fault; then it is an error, never a silent NONE.

Invariant: an UPDATE or DELETE names a related item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memograd.errors import BadInput
from memograd.memory.chat.chat_model import ChatMessage, ChatModel, UnusableAnswer, ask_checked
from memograd.memory.reader.fact import Fact
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, OpKind

if TYPE_CHECKING:
    from memograd.memory.search import Hit, Query
    from memograd.memory.state import MemoryState

DECISION_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "op": {"type": "string", "enum": [kind.value for kind in OpKind]},
        "id": {"type": ["integer", "null"]},
        "text": {"type": ["string", "null"]},
        "reason": {"type": "string"},
    },
    "required": ["op", "id", "text", "reason"],
    "additionalProperties": False,
}

_INSTRUCTIONS = """\
You keep a memory of short statements. Given one new fact and the remembered statements related to
it, choose one operation:
- ADD: the fact is new. Give "text", the statement to remember.
- UPDATE: the fact changes or completes a remembered statement. Give its "id" and the new "text".
- DELETE: the fact takes a remembered statement back, or shows that it is true no longer and says
  nothing in its place. Give its "id".
- NONE: the memory says this already, or there is nothing to take back. Give the "id" of the
  statement that says it, or null.
Facts with different numbers, names or a negation are different. Write "text" in the language of the
fact. Answer with a JSON object {"op", "id", "text", "reason"}; "reason" is one short sentence."""


class ChatManager:
    """Decides through a chat model.

    max_tokens: bound of one answer. Raises MemogradError when the model fails or its answer stays
    unusable after one retry.
    """

    def __init__(self, chat: ChatModel, *, max_tokens: int = 500) -> None:
        self._chat = chat
        self._max_tokens = max_tokens

    @property
    def actor(self) -> str:
        """`llm:<model>`."""
        return f"llm:{self._chat.name}"

    def decide(
        self, state: MemoryState, fact: Fact, query: Query, related: Sequence[Hit[MemoryItem]]
    ) -> Decision:
        """One operation with its reason; see `MemoryManager.decide`."""
        items = [hit.record for hit in related]
        shown = [f"{n}. {_one_line(item.text)}" for n, item in enumerate(items, 1)]
        new = "The fact is to be FORGOTTEN" if fact.retracts else "The new fact"
        messages: list[ChatMessage] = [
            {"role": "system", "content": _INSTRUCTIONS},
            {
                "role": "user",
                "content": f"{new}: {_one_line(fact.text)}\n\nRemembered:\n"
                + ("\n".join(shown) or "(nothing related)"),
            },
        ]
        return ask_checked(
            self._chat,
            messages,
            lambda answer: _decision(answer, items),
            schema=DECISION_SCHEMA,
            max_tokens=self._max_tokens,
        )


def _one_line(text: str) -> str:
    """Line breaks would let a statement pass itself off as another one with another number."""
    return " ".join(text.split())


def _decision(answer: Mapping[str, Any], items: Sequence[MemoryItem]) -> Decision:
    try:
        kind = OpKind(str(answer.get("op")))
    except ValueError:
        raise UnusableAnswer(f'"op" must be one of {", ".join(OpKind)}.') from None
    number, text = answer.get("id"), answer.get("text")
    item_id = None
    if kind is not OpKind.ADD and number is not None:
        if type(number) is not int or not 1 <= number <= len(items):
            shown = f"1 to {len(items)}" if items else "none"
            raise UnusableAnswer(f'"id" {number!r} was not shown; the ids are {shown}.')
        item_id = items[number - 1].id
    if text is not None and not isinstance(text, str):
        raise UnusableAnswer('"text" must be a text or null.')
    try:
        op = MemoryOp(
            kind,
            text=_one_line(text) if text and kind in (OpKind.ADD, OpKind.UPDATE) else None,
            item_id=item_id,
        )
    except BadInput as fault:
        raise UnusableAnswer(str(fault)) from None
    return Decision(op, _one_line(str(answer.get("reason") or "")))
