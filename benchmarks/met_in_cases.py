"""Writes what the last messages of behaviour cases meet in a memory, as rows to train on.

    OMP_NUM_THREADS=1 python benchmarks/met_in_cases.py OUT --without s12,s16 --share 0.45

A case says what may no longer hold behind its last message (`not`, `all_not`) and what still
does (`has`, `all_has`). The memory that ships hears the messages before it. An item that says what
may no longer hold is closed, by the relation that the kind of the case means; one that says what
still does, or that the model surely leaves alone, stays; of others nothing is written. A message
that the model has wrong stands twice. See `tasks/relations/met.py`; an hour of one core for all.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from memograd import Memory
from memograd.memory.manager.past import present
from memograd.memory.manager.protocol import Change
from memograd.memory.manager.relations import RelationManager
from memograd.memory.reader.fact import Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.notes import is_past
from memograd.memory.relations import load_relation_model
from memograd.tasks.relations.cases import Case, author_of, play, read_cases
from memograd.tasks.relations.rows import CLOSES, STAYS

CASES = Path(__file__).resolve().parents[1] / "tests" / "behaviour"
CLOSING: Final = {
    "change": "replace",
    "ending": "end",
    "correction": "correct",
    "retraction": "retract",
}
CALM: Final = ("comment", "other_person", "addition", "hypothetical_or_past")
SURELY_STAYS: Final = 0.25  # of the sum of all closing relations
WRONG: Final = 0.5


class Watching(RelationManager):
    """Decides as it would, and keeps what the last message met."""

    last: dict[str, Any] | None = None

    def decide_heard(
        self, heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str]
    ) -> list[Change]:
        """See `RelationManager.decide_heard`."""
        if heard.turn.said_as == "user" and items:
            texts = [present(item.text) for item in items]
            found = self._model.relate(heard.turn.text, heard.before, texts)
            current = [item.role == "user" and not is_past(item.text) for item in items]
            self.last = {
                "text": heard.turn.text,
                "before": [list(turn) for turn in heard.before],
                "items": list(zip(texts, found[:, CLOSES].sum(1), current, strict=True)),
            }
        return super().decide_heard(heard, items, recent)


def row_of(case: Case, met: dict[str, Any]) -> tuple[dict[str, Any], bool] | None:
    """The row of a case and whether the model has it wrong; None where it teaches nothing."""

    def says(text: str, ask: str, everywhere: str) -> bool:
        wanted = [one[ask] for one in case.get("ask", []) if one.get(ask)]
        wanted += case.get(everywhere, [])
        return any(re.search(one, text, re.I) for one in wanted)

    closing, wrong = CLOSING.get(case["kind"]), False
    items: list[str] = []
    relations: list[str] = []
    for text, sure, current in met["items"]:
        if not current:
            continue
        if closing and says(text, "not", "all_not"):
            relation = closing
        elif closing is None or says(text, "has", "all_has") or sure < SURELY_STAYS:
            relation = STAYS
        else:
            continue
        items.append(text)
        relations.append(relation)
        wrong = wrong or (relation == STAYS) is (float(sure) > WRONG)
    if not items or (closing and closing not in relations):
        return None
    row = {"case": case["id"], "text": met["text"], "before": met["before"]}
    return row | {"items": items, "relations": relations}, wrong


def main() -> None:
    """Tell, label, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--without", default="", help="authors whose cases are left out")
    parser.add_argument("--share", type=float, default=1.0, help="share of the cases, drawn")
    arguments = parser.parse_args()
    files = [
        folder / f"{language}.jsonl"
        for language in ("en", "zh")
        for folder in (CASES, CASES / "unread")
    ]
    cases = [
        case
        for case in read_cases(files)
        if case["kind"] in (*CLOSING, *CALM) and author_of(case) not in arguments.without.split(",")
    ]
    random.Random(1).shuffle(cases)
    cases = cases[: round(arguments.share * len(cases))]
    watching = Watching(load_relation_model())
    count = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(folder, reader="trained", manager="trained", env_file=None) as memory,
        arguments.out.open("w", encoding="utf-8") as out,
    ):
        memory.manager = watching
        for case in cases:
            watching.last = None
            play(memory, case, case["id"])
            found = row_of(case, watching.last) if watching.last else None
            if found is not None:
                row, wrong = found
                out.write((json.dumps(row, ensure_ascii=False) + "\n") * (2 if wrong else 1))
                count += 1
    print(json.dumps({"bench": "met_in_cases", "cases": len(cases), "rows": count}))


if __name__ == "__main__":
    main()
