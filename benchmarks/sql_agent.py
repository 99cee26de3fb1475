"""The SQL agent on its held-out questions: the model alone, after the warm start, after GRPO.

    memograd sql warm-start-rows --out rows.jsonl
    memograd sft --data rows.jsonl --out runs/sql-sft ...
    memograd train sql adapter=runs/sql-sft out=runs/sql-0 seed=0 ...        (and seeds 1, 2)
    python benchmarks/sql_agent.py runs/sql-0 runs/sql-1 runs/sql-2

Reads the run folders' `sql.json` (`docs/sql-agent.md` has the commands with their settings) and
prints one JSON line a stage: the model alone, the warm start, each run, and the mean of all runs;
every measure as mean [95% bootstrap interval over questions], with the paired difference to the
stage before, and the execution accuracy of every kind of question.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from memograd.evaluation import bootstrap_interval, paired_bootstrap_difference

STAGES = {"before": "the model alone", "warm start": "warm start"}
"""What comes before training, by the name that a run has for it."""

Scores = dict[str, list[float]]
"""A number a question, by measure."""


def show(
    name: str, scores: Scores, before: Scores | None, kinds: Sequence[str], **more: float
) -> None:
    """Print a stage, and how far it is from the one before."""
    line: dict[str, Any] = {"bench": "sql_agent", "stage": name, "n": len(kinds), **more}
    for measure, values in scores.items():
        line[measure] = rounded(fmean(values), *bootstrap_interval(values))
        if before is not None:
            difference = paired_bootstrap_difference(before[measure], values)
            line[f"{measure}, difference"] = rounded(*difference)
    by_kind: defaultdict[str, list[float]] = defaultdict(list)
    for kind, value in zip(kinds, scores["execution accuracy"], strict=True):
        by_kind[kind].append(value)
    line["execution by kind"] = {kind: round(fmean(found), 3) for kind, found in by_kind.items()}
    print(json.dumps(line, ensure_ascii=False))


def rounded(mean: float, low: float, high: float) -> list[float]:
    """[mean, low, high]"""
    return [round(float(value), 3) for value in (mean, low, high)]


def averaged(runs: Sequence[Scores]) -> Scores:
    """The mean over seeds, question by question: its intervals are over questions."""
    return {
        measure: [fmean(values) for values in zip(*(run[measure] for run in runs), strict=True)]
        for measure in runs[0]
    }


def main() -> None:
    """Read and print."""
    parser = argparse.ArgumentParser(description="The SQL agent on its held-out questions")
    parser.add_argument("runs", type=Path, nargs="+", help="run folders of memograd train sql")
    arguments = parser.parse_args()
    found = [json.loads((run / "sql.json").read_text("utf-8")) for run in arguments.runs]
    first = found[0]
    for run, other in zip(arguments.runs, found, strict=True):
        if other["questions"] != first["questions"]:
            raise SystemExit(f"{run} was not measured on the questions of {arguments.runs[0]}")
    kinds = [question["kind"] for question in first["questions"]]
    before: Scores | None = None
    for side, name in STAGES.items():
        if side in first["scores"]:
            seconds = first["seconds_per_question"][side]
            show(name, first["scores"][side], before, kinds, seconds=round(seconds, 2))
            before = first["scores"][side]
    for run, one in zip(arguments.runs, found, strict=True):
        seconds = one["seconds_per_question"]["after"]
        began = one["scores"].get("warm start", one["scores"]["before"])
        show(f"GRPO, {run.name}", one["scores"]["after"], began, kinds, seconds=round(seconds, 2))
    if len(found) > 1:
        ends = averaged([one["scores"]["after"] for one in found])
        show(f"GRPO, mean of {len(found)} runs", ends, before, kinds)


if __name__ == "__main__":
    main()
