"""What a careful keeper answers at each chunk: gold operations as calls, for SFT and as a ceiling.

A gold UPDATE of an item that is not in view is an ADD, its DELETE nothing. What is changed again
within the chunk is written once, as it is in the end.

Invariant: every gold call can be carried out, and a walk of gold answers keeps each statement that
is still true and no other, as far as views show what is to be changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from memograd.errors import BadInput
from memograd.memory.records.operations import OpKind
from memograd.tasks.memory_construct.answer_format import Call, write
from memograd.tasks.memory_construct.walk import BookWalk


@dataclass
class _Write:
    """A text that this chunk leads to; `item`: the one that it replaces."""

    text: str
    item: str | None


class GoldKeeper:
    """Answers the chunks of one walk; keeps in mind which item carries which statement."""

    def __init__(self) -> None:
        self._carries: dict[str, str] = {}  # statement id -> item id

    def answer(self, walk: BookWalk) -> str:
        """The gold answer to the chunk that the walk is at, and takes it.

        Raises BadInput where a statement has no gold operation.
        """
        writes, deletes = self._wishes(walk)
        shown = walk.view.shown
        calls, named = [], []
        for statement, wish in writes.items():
            if wish.item in shown:
                calls.append(Call(OpKind.UPDATE, wish.text, shown.index(wish.item) + 1))
            else:
                calls.append(Call(OpKind.ADD, wish.text))
            named.append(statement)
        calls += [Call(OpKind.DELETE, number=shown.index(i) + 1) for i in deletes if i in shown]
        said = write(calls, walk.rules.form)
        tried = walk.attempt(said)
        for statement, outcome in zip(named, tried.outcomes, strict=False):
            if outcome.item_id is not None:
                self._carries[statement] = outcome.item_id
        walk.take(tried)
        return said

    def _wishes(self, walk: BookWalk) -> tuple[dict[str, _Write], list[str]]:
        writes: dict[str, _Write] = {}
        deletes: list[str] = []
        for statement in walk.chunk.statements:
            gold = statement.gold
            if gold is None:
                raise BadInput(
                    f"{walk.case.id} has no gold operations to learn from; use generated logs."
                )
            if gold.kind is OpKind.NONE:
                continue
            target = gold.target or ""
            before = writes.pop(target, None)
            item = before.item if before else self._carries.pop(target, None)
            if gold.kind is OpKind.DELETE:
                deletes += [item] if item else []
            else:
                writes[statement.id] = _Write(" ".join(statement.text.split()), item)
        return writes, deletes


def gold_answers(walk: BookWalk) -> list[tuple[tuple[dict[str, str], ...], str]]:
    """Prompt and gold answer of every chunk of a fresh walk, which is over afterwards."""
    keeper = GoldKeeper()
    rows = []
    while not walk.over:
        prompt = tuple({"role": m["role"], "content": m["content"]} for m in walk.view.messages)
        rows.append((prompt, keeper.answer(walk)))
    return rows
