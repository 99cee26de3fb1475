"""What the default memory makes of written lives. Two JSON lines a batch.

    F=corpus/dialogues
    OMP_NUM_THREADS=1 python benchmarks/lives.py --lives $F/en-ac.jsonl $F/zh-ac.jsonl
    OMP_NUM_THREADS=1 python benchmarks/lives.py --lives $F/en-ac.jsonl \\
        --thresholds weighed_close_above=0.5 weighed_doubt_above=0.35

A life is one person over weeks, told turn by turn: thirty to forty facts, of which some change,
end, are corrected or are asked to be forgotten, mostly long after they were told. The writer says
what each turn touches, so what else is changed is harm. `row`: the row of the message and its items
decides alone; `weighed`: what is known of the items that stand out is weighed, as in a memory.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

from behaviour import thresholds_given
from memograd.errors import BadInput
from memograd.memory.relations.gate import gate_file, read_gate
from memograd.memory.relations.model import SHIPPED, RelationModel
from memograd.memory.relations.values import read_pointer, values_file
from memograd.memory.relations.weights import read_weights
from memograd.tasks.relations.lives import judged_lives


def models(path: Path) -> dict[str, RelationModel]:
    """The model in that file, without what weighs many items and with it."""
    weights = read_weights(path)
    gate, pointer = read_gate(gate_file(path), weights), read_pointer(values_file(path), weights)
    if gate is None or gate.crowded is None:
        raise BadInput(f"Nothing beside {path} weighs many items: fit it with relations_gate.py.")
    gates = {"row": replace(gate, crowded=None), "weighed": gate}
    return {way: RelationModel(weights, one, pointer) for way, one in gates.items()}


def main() -> None:
    """Tell, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lives", type=Path, nargs="+", required=True, help="author batches")
    parser.add_argument("--weights", type=Path, default=SHIPPED, help="of another relation model")
    parser.add_argument("--thresholds", nargs="+", default=[], help="NAME=NUMBER, of the memory")
    arguments = parser.parse_args()
    try:
        thresholds = thresholds_given(arguments.thresholds)
        for file in arguments.lives:
            for way, model in models(arguments.weights).items():
                found = asdict(judged_lives(file, model, thresholds))
                line = {"bench": "lives", "batch": file.stem, "way": way} | found
                print(json.dumps(line), flush=True)
    except BadInput as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
