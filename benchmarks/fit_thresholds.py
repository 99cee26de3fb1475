"""Fits the thresholds of finished relation weights to behaviour cases, and writes them into a file.

    python benchmarks/fit_thresholds.py runs/f/final/relations.npz --out fitted.npz \
        --authors s1,s2,s3,s4,s5,s6,s7,s8

`memograd train relations` does the same at the end of a run that is told `cases`; here the memory
that plays them has the gate and the pointer that stand beside the weights, too. Of the weights
nothing but the thresholds changes. About three minutes of one core, most of them the first time
that all cases are played.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from memograd.errors import BadInput
from memograd.memory.relations.model import SHIPPED, read_parts
from memograd.memory.relations.weights import write_weights
from memograd.tasks.relations.cases import read_cases
from memograd.tasks.relations.fit import fit

SUITES = Path(__file__).resolve().parents[1] / "tests" / "behaviour"


def main() -> None:
    """Fits, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("weights", type=Path, nargs="?", default=SHIPPED)
    parser.add_argument("--cases", nargs="+", type=Path, default=sorted(SUITES.glob("*.jsonl")))
    parser.add_argument("--authors", required=True, help="such as s1,s2")
    parser.add_argument("--out", type=Path, required=True, help="file to write the weights to")
    given = parser.parse_args()
    try:
        cases = read_cases(given.cases, given.authors.split(","))
        weights, gate, pointer, second = read_parts(given.weights)
    except BadInput as error:
        parser.error(str(error))
    fitted = fit(
        weights,
        cases,
        gate=gate,
        pointer=pointer,
        second=second,
        say=lambda line: print(line, flush=True),
    )
    print(f"\n{fitted.report}\n\n{fitted.played} cases played")
    about = replace(weights.about, thresholds=fitted.thresholds)
    write_weights(replace(weights, about=about), given.out)


if __name__ == "__main__":
    main()
