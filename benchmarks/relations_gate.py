"""Fits the gate of a relation model and says what it misses. One JSON line an author batch.

    OMP_NUM_THREADS=1 python benchmarks/relations_gate.py --others h,i
    OMP_NUM_THREADS=1 python benchmarks/relations_gate.py --write

Fitted to the dialogues that the weights that ship were trained on, its bound chosen by those that
calibrated them; `--others` are batches that neither has read. `--write` puts the gate beside the
weights. Three minutes of one core.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from memograd.memory.relations.gate import gate_file, read_gate, write_gate
from memograd.memory.relations.model import SHIPPED, RelationModel
from memograd.memory.relations.weights import read_weights
from memograd.tasks.relations.gate import fitted, judged, seen
from memograd.tasks.relations.rows import WrittenTurn, read_dialogues

CORPUS = Path(__file__).resolve().parents[1] / "corpus"


def told(names: list[str]) -> list[WrittenTurn]:
    """The turns of these files of the corpus."""
    return [said for name in names for said in read_dialogues(CORPUS / f"{name}.jsonl")]


def main() -> None:
    """Fit, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=SHIPPED)
    parser.add_argument("--others", default="", help="author batches to measure on, such as h,i")
    parser.add_argument("--write", action="store_true", help="keep the gate beside the weights")
    arguments = parser.parse_args()
    split = json.loads((CORPUS / "split.json").read_text(encoding="utf-8"))["relations"]
    weights = read_weights(arguments.weights)
    gate = None if arguments.write else read_gate(gate_file(arguments.weights), weights)
    if gate is None:
        gate = fitted(weights, told(split["train"]), told(split["chosen_by"]))
    if arguments.write:
        write_gate(gate, gate_file(arguments.weights))
    model = RelationModel(weights)
    for batch in filter(None, arguments.others.split(",")):
        for language in ("en", "zh"):
            turns = told([f"dialogues/{language}-{batch}"])
            found = judged(gate, seen(model, turns), weights.about.thresholds.link_above)
            print(json.dumps({"bench": "relations_gate", "batch": batch, "language": language}
                             | asdict(found)), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
