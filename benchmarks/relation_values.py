"""Trains the pointer to another value and says how often it is right. One JSON line a language.

    OMP_NUM_THREADS=1 python benchmarks/relation_values.py
    OMP_NUM_THREADS=1 python benchmarks/relation_values.py --train --seed 1
    OMP_NUM_THREADS=1 python benchmarks/relation_values.py --write

A message that corrects or changes a fact whose two statements differ in one value is read with the
statement, and with what the memory's reader makes of the old message. `right`: the item gets the
new value and nothing else changes (letters and digits compared), `wrong`: something else is put
somewhere, of those that are surer than `--sure`; `rules`: the same of `manager/substitution.py`,
which has no doubt. `no_value`: remarks, facts beside and endings in which a value is replaced.
Measured on batches that the weights were never trained on; `--train` trains another pointer on the
others first, `--write` keeps it beside the weights. Six minutes of one core with training.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from memograd.memory.manager.substitution import corrected, put_in_place
from memograd.memory.relations.model import SHIPPED, RelationModel
from memograd.memory.relations.values import read_pointer, values_file, write_pointer
from memograd.memory.relations.weights import read_weights
from memograd.tasks.relations.rows import WrittenTurn, read_dialogues
from memograd.tasks.relations.values import NONE, ValueRow, seen_rows, train_pointer, value_rows

CORPUS = Path(__file__).resolve().parents[1] / "corpus"


def told(names: Sequence[str]) -> list[WrittenTurn]:
    """The turns of these files of the corpus."""
    return [said for name in names for said in read_dialogues(CORPUS / f"{name}.jsonl")]


def same(one: str, other: str) -> bool:
    """Whether two texts have the same letters and digits."""
    bare = [re.sub(r"[\W_]+", "", text).casefold() for text in (one, other)]
    return bare[0] == bare[1]


def judged(model: RelationModel, rows: Sequence[ValueRow], sure: float) -> dict[str, object]:
    """Shares of the rows."""
    count: dict[str, int] = {}

    def add(name: str) -> None:
        count[name] = count.get(name, 0) + 1

    for row in rows:
        found = model.other_value(row.message, row.before, row.item)
        put = None
        if found is not None and found.sure >= sure:
            put = row.item[: found.old.start] + found.new + row.item[found.old.end :]
        if row.old is None:
            if row.relation in NONE:
                add("no_value_rows")
                count["no_value"] = count.get("no_value", 0) + (put is not None)
            continue
        add(row.relation)
        rule = corrected(row.item, row.message)
        rule = rule or put_in_place(row.item, row.message, model.likeness)
        for name, text in (("", put), ("rules_", rule)):
            if text is not None:
                add(f"{row.relation}_{name}{'right' if same(text, row.right) else 'wrong'}")
    return dict(sorted(count.items()))


def main() -> None:
    """Train, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=SHIPPED)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sure", type=float, default=0.25)
    parser.add_argument("--train", action="store_true", help="train another pointer")
    parser.add_argument("--write", action="store_true", help="train, and keep the pointer")
    arguments = parser.parse_args()
    split = json.loads((CORPUS / "split.json").read_text(encoding="utf-8"))["relations"]
    weights = read_weights(arguments.weights)
    pointer = None
    if arguments.train or arguments.write:
        learnt = [
            name
            for name in split["train"] + split["continued_with"]
            if name.startswith("dialogues/") and not name.endswith("topics")
        ]
        rows = value_rows(told(learnt), arguments.seed)
        pointer = train_pointer(seen_rows(RelationModel(weights), rows), seed=arguments.seed)
        if arguments.write:
            write_pointer(pointer, weights, values_file(arguments.weights))
    pointer = pointer or read_pointer(values_file(arguments.weights), weights)
    model = RelationModel(weights, None, pointer)
    for language in ("en", "zh"):
        names = [one for one in split["never_read"] if one.startswith(f"dialogues/{language}-")]
        found = judged(model, value_rows(told(names), 0), arguments.sure)
        print(json.dumps({"bench": "relation_values", "language": language} | found), flush=True)


if __name__ == "__main__":
    main()
