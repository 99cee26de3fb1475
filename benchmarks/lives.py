"""What the default memory makes of written lives. Two JSON lines a batch.

    F=corpus/dialogues
    OMP_NUM_THREADS=1 python benchmarks/lives.py --lives $F/en-ac.jsonl $F/zh-ac.jsonl
    OMP_NUM_THREADS=1 python benchmarks/lives.py --lives $F/en-ac.jsonl \\
        --thresholds weighed_close_above=0.5 weighed_doubt_above=0.35
    OMP_NUM_THREADS=1 python benchmarks/lives.py --lives $F/en-ag.jsonl --ranked --weights FILE

A life is one person over weeks, told turn by turn: thirty to forty facts, of which some change,
end, are corrected or are asked to be forgotten, mostly long after they were told. The writer says
what each turn touches, so what else is changed is harm. `row`: the row of the message and its items
decides alone; `weighed`: what is known of the items that stand out is weighed, as in a memory.
`--ranked` asks before any bound how well readings rank the items that stand out: the average
precision of the row, of the item alone, of the surest sentence; the weights need no gate.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from behaviour import thresholds_given
from memograd.errors import BadInput
from memograd.memory.manager.crowded import EVIDENCE
from memograd.memory.relations.model import SHIPPED, RelationModel, read_parts
from memograd.memory.relations.weights import read_weights
from memograd.tasks.relations.lives import judged_lives, told_lives


def models(path: Path) -> dict[str, RelationModel]:
    """The model in that file, without what weighs many items and with it."""
    weights, gate, pointer, second = read_parts(path)
    if gate is None or gate.crowded is None:
        raise BadInput(f"Nothing beside {path} weighs many items: fit it with relations_gate.py.")
    gates = {"row": replace(gate, crowded=None), "weighed": gate}
    return {way: RelationModel(weights, one, pointer, second) for way, one in gates.items()}


def ranked(file: Path, weights: Path) -> dict[str, Any]:
    """How well three readings rank what stands out, beside how much of it is closed."""
    model = RelationModel(read_weights(weights))
    found = told_lives(model, file)
    closed = np.concatenate([one.closed for one in found])
    known = np.concatenate([one.evidence for one in found])
    scores = {name: known[:, EVIDENCE.index(name)] for name in ("row", "alone", "sentence")}
    precision = {name: round(average_precision(of, closed), 3) for name, of in scores.items()}
    return {
        "messages": len(found),
        "stand out": len(closed),
        "closed": int(closed.sum()),
    } | precision


def average_precision(scores: np.ndarray, right: np.ndarray) -> float:
    """Mean over the right ones of the share of right ones down to each, the surest first."""
    hits = right[np.argsort(-scores, kind="stable")].astype(float)
    return float((hits.cumsum() / np.arange(1, len(hits) + 1))[hits > 0].mean())


def main() -> None:
    """Tell, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lives", type=Path, nargs="+", required=True, help="author batches")
    parser.add_argument("--weights", type=Path, default=SHIPPED, help="of another relation model")
    parser.add_argument("--thresholds", nargs="+", default=[], help="NAME=NUMBER, of the memory")
    parser.add_argument("--ranked", action="store_true", help="how well readings rank the items")
    arguments = parser.parse_args()
    if arguments.ranked:
        for file in arguments.lives:
            line = {"bench": "lives ranked", "batch": file.stem} | ranked(file, arguments.weights)
            print(json.dumps(line), flush=True)
        return
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
