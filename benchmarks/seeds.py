"""Several seeds of one experiment as one result. One JSON line a metric.

    python benchmarks/seeds.py runs/locomo-0 runs/locomo-1 runs/locomo-2 [--sft runs/sft-0 ...]

Reads `evaluation.json` of finished memory-qa runs on the same questions. A question's score is the
mean over seeds; intervals are 95% bootstrap over questions, differences are paired by question.
They say nothing about other seeds: `over_seeds` does, with the mean of the seeds and its 95%
interval of Student's t. With `--sft` the supervised baseline stands beside it; where it has as many
seeds, in the same order, their differences seed by seed do too. `--plot PNG` draws the seeds'
reward curves.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from policies_bench.results import over_seeds as interval_over_seeds

from memograd.evaluation import bootstrap_interval, paired_bootstrap_difference, plot_comparison
from memograd.tasks.memory_qa.measure import TRAINED, UNTRAINED


def scores(folder: Path, method: str, metric: str) -> dict[str, float]:
    """Question id -> score of one method in one run."""
    document = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    (report,) = [entry for entry in document["reports"] if entry["method"] == method]
    return {question["id"]: question[metric] for question in report["questions"]}


def over_seeds(folders: list[Path], method: str, metric: str) -> tuple[np.ndarray, list[float]]:
    """Mean score a question over the runs, and the mean score of each run."""
    runs = [scores(folder, method, metric) for folder in folders]
    ids = sorted(runs[0])
    if any(sorted(run) != ids for run in runs):
        raise SystemExit("the runs were evaluated on different questions")
    table = np.array([[run[name] for name in ids] for run in runs])
    return table.mean(axis=0), table.mean(axis=1).round(4).tolist()


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--sft", nargs="*", type=Path, default=[])
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    for metric in ("locomo_f1", "mem0_f1", "mem0_bleu1"):
        before, _ = over_seeds(arguments.runs[:1], UNTRAINED, metric)
        after, seeds = over_seeds(arguments.runs, TRAINED, metric)
        line: dict[str, object] = {"bench": "seeds", "metric": metric, "n": len(before)}
        line["untrained"] = _rounded(before.mean(), *bootstrap_interval(before.tolist()))
        line["trained"] = _rounded(after.mean(), *bootstrap_interval(after.tolist()))
        line["difference"] = _rounded(*paired_bootstrap_difference(before.tolist(), after.tolist()))
        line["trained_by_seed"] = seeds
        line["trained_over_seeds"] = interval_over_seeds(seeds)
        if arguments.sft:
            sft, sft_seeds = over_seeds(arguments.sft, "retrieved memory, supervised", metric)
            line["supervised"] = _rounded(sft.mean(), *bootstrap_interval(sft.tolist()))
            line["trained_minus_supervised"] = _rounded(
                *paired_bootstrap_difference(sft.tolist(), after.tolist())
            )
            line["supervised_by_seed"] = sft_seeds
            line["supervised_over_seeds"] = interval_over_seeds(sft_seeds)
            if len(sft_seeds) == len(seeds):
                apart = [own - other for own, other in zip(seeds, sft_seeds, strict=True)]
                line["trained_minus_supervised_over_seeds"] = interval_over_seeds(apart)
        print(json.dumps(line))
    if arguments.plot:
        curves = {folder.name: folder / "metrics.jsonl" for folder in arguments.runs}
        plot_comparison(curves, arguments.plot)


def _rounded(mean: float, low: float, high: float) -> dict[str, float]:
    return {"mean": round(float(mean), 4), "low": round(low, 4), "high": round(high, 4)}


if __name__ == "__main__":
    main()
