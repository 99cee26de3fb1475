"""What memories a policy builds of held-out cases, beside memories that need no training.

Answers are greedy. Baselines: writing nothing, keeping every turn as an item, and, where the data
know gold operations, the gold keeper, which is the ceiling of this way of writing. Its answers are
also what supervised training begins with: a gold UPDATE of an item that is not in view is an ADD,
its DELETE nothing, and what is changed again within a chunk is written once, as it is in the end.

Invariants: all methods read the same cases and are asked the same questions; every call of the gold
keeper can be carried out, and its walk keeps each statement that is still true and no other, as far
as views show what is to be changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from memograd.data.record_files import as_lines
from memograd.errors import BadInput
from memograd.evaluation.memory_table import (
    MethodResult,
    compare_methods,
    table_to_markdown,
    write_table,
)
from memograd.memory.records.operations import OpKind
from memograd.rewards.mem_alpha import tool_success
from memograd.tasks.base.progress import console, counting_progress
from memograd.tasks.memory_construct.answer_format import Call, write
from memograd.tasks.memory_construct.case import BuildCase
from memograd.tasks.memory_construct.drawing import Speaker
from memograd.tasks.memory_construct.memory_book import ITEM_TOKENS, Texts
from memograd.tasks.memory_construct.walk import BookWalk, Rules, Tried

PIECE_LETTERS: Final = ITEM_TOKENS  # of text that is kept as it is: short enough in any writing


@dataclass(frozen=True)
class Reading:
    """What is written down of one method: its scores, what it answered to each chunk, and the ids
    of the questions that were put to what it built."""

    result: MethodResult
    answers: list[dict[str, Any]]
    questions: list[str]


@dataclass(frozen=True)
class Built:
    """Finished walks of one method through the same cases, and how long a chunk took."""

    walks: list[BookWalk]
    seconds_per_chunk: float

    def reading(self, name: str) -> Reading:
        """The walks as plain values, under that name."""
        asked = [one.asked.question.id for walk in self.walks for one in walk.answered]
        return Reading(self._result(name), self._answers(), asked)

    def _answers(self) -> list[dict[str, Any]]:
        return [
            {
                "case": walk.case.id,
                "chunk": tried.chunk,
                "read": walk.case.chunks[tried.chunk].text,
                "answer": tried.answer,
                "failures": [one.failure for one in tried.outcomes if one.failure is not None],
            }
            for walk in self.walks
            for tried in walk.taken
        ]

    def _result(self, name: str) -> MethodResult:
        count = len(self.walks)
        taken = [tried for walk in self.walks for tried in walk.taken]
        calls = [call for tried in taken for call in tried.calls]
        answered = [one for walk in self.walks for one in walk.answered]
        f1 = [one.f1 for one in answered if one.f1 is not None]  # of all, or of none
        asked = [walk.case.id for walk in self.walks for _ in walk.answered]
        read = [walk.case.id for walk in self.walks for _ in walk.taken]
        return MethodResult(
            name,
            {
                "answerable": [one.by_words for one in answered],
                **({"reader F1": f1} if f1 else {}),
                "misled": [float(one.misled) for one in answered],
                "tool success": [tool_success(tried.calls) for tried in taken],
            },
            {
                "items": sum(len(walk.book) for walk in self.walks) / count,
                "tokens": sum(walk.book.tokens for walk in self.walks) / count,
                "calls a chunk": len(calls) / len(taken),
                "updates and deletes": float(
                    sum(call.ok and call.kind in (OpKind.UPDATE, OpKind.DELETE) for call in calls)
                ),
                "s a chunk": self.seconds_per_chunk,
            },
            groups={
                "answerable": asked,
                "reader F1": asked,
                "misled": asked,
                "tool success": read,
            },
        )


def build(
    speaker: Speaker, cases: Sequence[BuildCase], texts: Texts, batch: int, label: str
) -> Built:
    """Let the policy read all cases, so many at once."""
    began = time.perf_counter()
    walks = [BookWalk(case, texts, speaker.rules) for case in cases]
    total = sum(len(case.chunks) for case in cases)
    with counting_progress(f"reading chunks, {label}", total=total) as on_progress:
        for first in range(0, len(walks), batch):
            of_batch = walks[first : first + batch]
            while live := [walk for walk in of_batch if not walk.over]:
                sampled = speaker.sample(live, [1] * len(live), temperature=0.0, generator=None)
                for walk, group in zip(live, sampled, strict=True):
                    walk.take(speaker.tried(walk, group, 0))
                on_progress(sum(walk.position for walk in walks))
    return Built(walks, (time.perf_counter() - began) / total)


def baselines(cases: Sequence[BuildCase], texts: Texts, rules: Rules) -> dict[str, Reading]:
    """The memories that need no training, by name."""
    found = {
        "nothing": _built(cases, texts, rules, _take_nothing),
        "every turn": _built(cases, texts, rules, _take_every_turn),
    }
    if all(case.gold for case in cases):
        found["gold keeper"] = _built(cases, texts, rules, None)
    return {name: one.reading(name) for name, one in found.items()}


def _built(
    cases: Sequence[BuildCase],
    texts: Texts,
    rules: Rules,
    take: Callable[[BookWalk], None] | None,
) -> Built:
    began = time.perf_counter()
    walks = [BookWalk(case, texts, rules) for case in cases]
    for walk in walks:
        keeper = GoldKeeper()
        while not walk.over:
            if take is None:
                keeper.answer(walk)
            else:
                take(walk)
    chunks = sum(len(case.chunks) for case in cases)
    return Built(walks, (time.perf_counter() - began) / chunks)


def _take_nothing(walk: BookWalk) -> None:
    walk.take(walk.attempt(""))


def _take_every_turn(walk: BookWalk) -> None:
    """Every line of the chunk as it stands, long ones in pieces."""
    book = walk.book.fork()
    outcomes = tuple(
        book.carry_out(
            Call(OpKind.ADD, line[start : start + PIECE_LETTERS].strip()),
            (),
            chunk=walk.position,
            source=walk.chunk.text,
        )
        for line in walk.chunk.text.splitlines()
        for start in range(0, len(line), PIECE_LETTERS)
        if line[start : start + PIECE_LETTERS].strip()
    )
    walk.take(Tried(walk.position, "", outcomes, book))


def report(readings: Mapping[str, Reading], folder: Path, *, compared_with: str | None) -> None:
    """Write and show the table of all methods by name, and write down what each answered."""
    methods = [replace(one.result, name=name) for name, one in readings.items()]
    table = compare_methods(methods, baseline=compared_with)
    write_table(table, folder, stem="evaluation")
    console.print(table_to_markdown(table))
    lines = [{"method": name, **line} for name, one in readings.items() for line in one.answers]
    (folder / "answers.jsonl").write_text(as_lines(lines), encoding="utf-8")


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
        said = write(calls, walk.rules.build.format)
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
