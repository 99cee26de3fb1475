"""Held-out accuracy of reward models against "the longer answer wins", over seeds.

    python benchmarks/reward_model.py --data shared/medical_pairs_dev.jsonl.gz hh.jsonl.gz
    python benchmarks/reward_model.py --data hh.jsonl.gz --seeds 0 --pairs 200 --steps 20

For every file and seed: train on the pairs outside a held-out part (by conversation, the same for
all seeds), measure on that part, and print one JSON line. The runs go into `--out`, one folder
each. Accuracies have their 95% bootstrap interval over the pairs; the spread over seeds is between
the lines. SmolLM2-135M with LoRA on one busy core takes about `seconds_per_pair` (in the line) for
each pair and pass; see `docs/reward-model.md` for measured figures.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from memograd.config.reward_model_settings import RewardModelSettings
from memograd.recipes.reward_model import train_reward_model
from memograd.recipes.reward_model_convert import convert


def main() -> None:
    """Train and measure one reward model per file and seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="files of pairs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--pairs", type=int, help="pairs of a file that are used, at most")
    parser.add_argument("--held-out", type=float, default=0.2, help="share of the conversations")
    parser.add_argument("--steps", type=int, help="training steps; else one pass")
    parser.add_argument("--max-length", type=int, default=512, help="tokens of a row")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="folder of the runs; else a temporary one")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = args.out or Path(temporary)
        for data in args.data:
            name = data.name.removesuffix(".gz").removesuffix(".jsonl")
            files = prepared(data, Path(temporary) / name, args.pairs, args.held_out)
            for seed in args.seeds:
                print(json.dumps(measured(name, files, seed, out, args)), flush=True)


def prepared(data: Path, folder: Path, pairs: int | None, share: float) -> tuple[Path, Path]:
    """The pairs to train and to measure on, of the first `pairs` usable ones."""
    whole = folder / "all.jsonl"
    convert(data, whole)
    if pairs is not None:
        lines = whole.read_text(encoding="utf-8").splitlines(keepends=True)
        whole.write_text("".join(lines[:pairs]), encoding="utf-8")
    train, test = folder / "train.jsonl", folder / "test.jsonl"
    convert(whole, train, held_out=test, fraction=share)
    return train, test


def measured(
    name: str, files: tuple[Path, Path], seed: int, out: Path, args: argparse.Namespace
) -> dict[str, object]:
    """One run and what it measured."""
    began, cpu = time.perf_counter(), time.process_time()
    run = train_reward_model(
        RewardModelSettings(
            data=files[0],
            eval_data=files[1],
            model=args.model,
            device=args.device,
            seed=seed,
            steps=args.steps,
            max_length=args.max_length,
            length_fit_pairs=50,
            save_steps=10_000,
            out=out / f"{name}-{seed}",
        )
    )
    report = json.loads((run / "held_out.json").read_text(encoding="utf-8"))
    rows = json.loads((run / "rows.json").read_text(encoding="utf-8"))
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    learning = sum(row["seconds"]["learn"] for row in metrics)
    found, length = report["calibration"], report["length"]
    return {
        "data": name,
        "seed": seed,
        "train_pairs": rows["used"],
        "steps": len(metrics),
        "held_out_pairs": report["pairs"],
        "accuracy": round(found["accuracy"], 4),
        "interval": [round(report["accuracy_low"], 4), round(report["accuracy_high"], 4)],
        "longer_wins": round(length["longer_wins"], 4),
        "controlled_accuracy": round(length["controlled_accuracy"], 4),
        "spearman_length": length["spearman"] and round(length["spearman"], 3),
        "ece": round(found["ece"], 4),
        "cut": {"train": len(rows["cut"]), "held_out": report["cut"]},
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "seconds_per_pair": round(learning / (8 * len(metrics)), 2),
    }


if __name__ == "__main__":
    main()
