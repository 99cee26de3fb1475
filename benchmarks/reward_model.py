"""Held-out accuracy of reward models against "the longer answer wins", over seeds.

    python benchmarks/reward_model.py --data medical_pairs_dev.jsonl.gz hh.jsonl.gz --out runs/rm
    python benchmarks/reward_model.py --data hh.jsonl.gz --train-pairs 160 --test-pairs 150

Of every file two sets of pairs are kept from training, by conversation and the same for all seeds:
`random`, drawn from all pairs, and `matched`, pairs whose answers differ by less than a fifth in
length, where length says little. One JSON line for every file, seed and set, and for every file and
set one for all seeds together: a pair's value is the mean over seeds, and the 95% bootstrap
intervals, of the accuracy and of its difference from the better of the two length baselines, are
over pairs. The runs go into `--out`, one folder each; lines of runs that are there already are
printed again without training.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memograd.evaluation import bootstrap_interval, paired_bootstrap_difference
from memograd.reward_model.held_out import pair_correct
from memograd.warm_start.reward_model import evaluate_reward_model, train_reward_model
from memograd.warm_start.reward_model_rows import conversation, convert, read_pairs
from memograd.warm_start.rows import PreferenceRow
from memograd.warm_start.settings import RewardModelSettings

SETS = ("random", "matched")
MATCHED = 0.2
"""Answers are matched if their lengths differ by less than this share of the longer one."""


@dataclass(frozen=True)
class Files:
    """Where the pairs of one data set are."""

    train: Path
    random: Path
    matched: Path


def main() -> None:
    """Train and measure one reward model per file and seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="files of pairs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--train-pairs", type=int, help="pairs to train on, at most")
    parser.add_argument("--test-pairs", type=int, default=200, help="pairs of the random set")
    parser.add_argument("--matched-pairs", type=int, default=100, help="of the matched one, most")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--max-length", type=int, default=512, help="tokens of a row")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True, help="folder of the data and the runs")
    args = parser.parse_args()
    for data in args.data:
        name = data.name.removesuffix(".gz").removesuffix(".jsonl")
        files = prepared(data, args.out / f"{name}-data", args)
        runs = [trained(files, args.out / f"{name}-{seed}", seed, args) for seed in args.seeds]
        for kind in SETS:
            for seed, run in zip(args.seeds, runs, strict=True):
                print(json.dumps({"data": name, "seed": seed, **measured(run, kind)}), flush=True)
            print(json.dumps({"data": name, "seeds": args.seeds, **pooled(runs, kind)}), flush=True)


def prepared(data: Path, folder: Path, args: argparse.Namespace) -> Files:
    """Three files of pairs; what a pair is used for depends on the words of its conversation."""
    files = Files(*(folder / f"{name}.jsonl" for name in ("train", "random", "matched")))
    folder.mkdir(parents=True, exist_ok=True)
    if files.train.exists():
        return files
    whole = folder / "all.jsonl"
    convert(data, whole)
    rows = read_pairs(whole, "chat").used
    lines = whole.read_text(encoding="utf-8").splitlines(keepends=True)
    order = sorted(range(len(rows)), key=lambda place: _hash(rows[place]))
    random = order[: args.test_pairs]
    matched = [place for place in order if length_gap(rows[place]) < MATCHED]
    matched = matched[: args.matched_pairs]
    kept = {conversation(rows[place]) for place in (*random, *matched)}
    train = [place for place in order if conversation(rows[place]) not in kept]
    chosen = {files.train: train[: args.train_pairs], files.random: random, files.matched: matched}
    for path, places in chosen.items():
        path.write_text("".join(lines[place] for place in places), encoding="utf-8")
    return files


def length_gap(row: PreferenceRow) -> float:
    """By what share of the longer answer the lengths differ."""
    lengths = (len(row.chosen), len(row.rejected))
    return (max(lengths) - min(lengths)) / max(lengths)


def _hash(row: PreferenceRow) -> bytes:
    return hashlib.sha256(conversation(row).encode()).digest()


def trained(files: Files, run: Path, seed: int, args: argparse.Namespace) -> Path:
    """The run folder of one seed, trained and measured on both sets."""
    if (run / "matched").is_dir():
        return run
    began, spent = time.perf_counter(), time.process_time()
    train_reward_model(
        RewardModelSettings(
            data=files.train,
            eval_data=files.random,
            model=args.model,
            device=args.device,
            seed=seed,
            batch_size=args.batch_size,
            micro_batch_size=min(2, args.batch_size),
            max_length=args.max_length,
            length_fit_pairs=30,
            save_steps=10_000,
            out=run,
        )
    )
    evaluate_reward_model(str(run), files.matched, run / "matched", device=args.device)
    cost = {
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - spent, 1),
    }
    (run / "cost.json").write_text(json.dumps(cost), encoding="utf-8")
    return run


def measured(run: Path, kind: str) -> dict[str, Any]:
    """What one run's report says of one set."""
    report = json.loads((folder_of(run, kind) / "held_out.json").read_text(encoding="utf-8"))
    rows = json.loads((run / "rows.json").read_text(encoding="utf-8"))
    metrics = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    found, length = report["calibration"], report["length"]
    return {
        "set": kind,
        "train_pairs": rows["used"],
        "steps": len(metrics),
        "held_out_pairs": report["pairs"],
        "accuracy": round(found["accuracy"], 4),
        "interval": [round(report["accuracy_low"], 4), round(report["accuracy_high"], 4)],
        "longer_wins": round(length["longer_wins"], 4),
        "where_longer": length["chosen_longer"],
        "where_shorter": length["chosen_shorter"],
        "controlled_accuracy": round(length["controlled_accuracy"], 4),
        "spearman_length": length["spearman"] and round(length["spearman"], 3),
        "log_loss": round(found["log_loss"], 3),
        "ece": round(found["ece"], 4),
        "cut": {"train": len(rows["cut"]), "held_out": report["cut"]},
        **json.loads((run / "cost.json").read_text(encoding="utf-8")),
    }


def pooled(runs: list[Path], kind: str) -> dict[str, Any]:
    """All seeds on one set, beside "longer wins" and "shorter wins"."""
    margins, gaps = zip(*(pairs_of(folder_of(run, kind)) for run in runs), strict=True)
    correct = np.mean([pair_correct(found) for found in margins], axis=0).tolist()
    longer = pair_correct(gaps[0])
    shorter = [1 - value for value in longer]
    name, best = max(
        (("longer wins", longer), ("shorter wins", shorter)), key=lambda side: sum(side[1])
    )
    mean, low, high = paired_bootstrap_difference(best, correct)
    return {
        "set": kind,
        "pairs": len(correct),
        "accuracy": round(float(np.mean(correct)), 4),
        "interval": [round(value, 4) for value in bootstrap_interval(correct)],
        "by_seed": [round(float(np.mean(pair_correct(found))), 4) for found in margins],
        "longer_wins": round(float(np.mean(longer)), 4),
        "baseline": name,
        "minus_baseline": [round(value, 4) for value in (mean, low, high)],
    }


def folder_of(run: Path, kind: str) -> Path:
    """Where a run's figures on a set are."""
    return run if kind == "random" else run / kind


def pairs_of(folder: Path) -> tuple[list[float], list[float]]:
    """Margins and gaps of length of the pairs, in their order."""
    text = (folder / "held_out_pairs.jsonl").read_text(encoding="utf-8")
    pairs = [json.loads(line) for line in text.splitlines()]
    return (
        [pair["chosen_score"] - pair["rejected_score"] for pair in pairs],
        [pair["chosen_length"] - pair["rejected_length"] for pair in pairs],
    )


if __name__ == "__main__":
    main()
