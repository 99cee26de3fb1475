"""Messages beside the items that a memory met them with, written down: rows for training.

Short cases of behaviour say what may still hold behind the last message and what may not. Told to a
memory up to that message, each case gives a row: the message, what came just before it, the items
as the memory words them, and of each whether the message closes it (`benchmarks/met_in_cases.py`
writes such a file).

Invariant: a line names a relation for every item; nothing is guessed here.
"""

from __future__ import annotations

from pathlib import Path

from memograd.data.record_files import json_lines
from memograd.errors import BadInput
from memograd.memory.language import is_chinese
from memograd.memory.relations.weights import RELATIONS
from memograd.tasks.relations.rows import STAYS, WrittenFact, WrittenTurn


def read_met(path: Path) -> list[WrittenTurn]:
    """The messages of a file: lines with text, before (pairs of role and text), items and relations
    (one of RELATIONS or `stays` for each item).

    Raises BadInput where the file is missing, or a line is no such message.
    """
    turns = []
    for number, line in json_lines(path, "met messages"):
        name = f"{path.stem}:{number}"
        try:
            text, items, relations = line["text"], line["items"], line["relations"]
            before = [(str(role), str(said)) for role, said in line["before"]]
            unknown = sorted({*relations} - {*RELATIONS, STAYS})
            if unknown or len(items) != len(relations) or not items:
                raise ValueError(unknown or f"{len(items)} items, {len(relations)} relations")
            facts = [WrittenFact(item, item, item) for item in items]
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(
                f"Line {number} of {path} is no message beside items ({error!r}): give text,"
                f" before, items, and for each item a relation, which is {STAYS} or one of"
                f" {', '.join(RELATIONS)}."
            ) from error
        language = "zh" if is_chinese(text) else "en"
        turns.append(
            WrittenTurn(
                "life", language, name, "user", text, before, facts, relations, [], met=True
            )
        )
    return turns
