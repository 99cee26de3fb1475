"""What the default memory makes of written lives. One JSON line a batch.

    OMP_NUM_THREADS=1 python benchmarks/lives.py --lives corpus/dialogues/en-ac.jsonl

A life is one person over weeks, told turn by turn: thirty to forty facts, of which some change,
end, are corrected or are asked to be forgotten, mostly long after they were told. The writer says
what each turn touches, so what else is changed is harm.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from memograd.memory.relations import load_relation_model
from memograd.tasks.relations.lives import judged_lives


def main() -> None:
    """Tell, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lives", type=Path, nargs="+", required=True, help="author batches")
    parser.add_argument("--weights", type=Path, help="another relation model")
    arguments = parser.parse_args()
    model = load_relation_model(arguments.weights) if arguments.weights else None
    for file in arguments.lives:
        found = asdict(judged_lives(file, model))
        print(json.dumps({"bench": "lives", "batch": file.stem} | found), flush=True)


if __name__ == "__main__":
    main()
