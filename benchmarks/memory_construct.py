"""memory-construct on SmolLM2, several seeds: untrained, after SFT, after GRPO. One JSON line each.

    python benchmarks/memory_construct.py --out runs/construct --seeds 0 1 2 --steps 20

Each seed makes its own training logs, learns the gold answers to `--sft-logs` of them and goes on
with GRPO on `--logs` others; all seeds are measured on the same held-out logs, in held-out words.
`--credits local trajectory mem_alpha_original` runs GRPO once for each from the same SFT adapter,
which is the ablation of credit. A line has, for every method: answerable questions (mean and 95%
interval over questions), misled, tool success, tokens of memory, seconds a chunk; and for training
the seconds of a step by phase. `--minutes` stops before a run that would begin later than that.

About two to three CPU minutes for SFT on 24 logs and one to two a step of GRPO with 2 cases, 2
walks, 3 chunks and groups of 4 (SmolLM2-135M, fp32, one quiet core); so some 35 to 60 minutes a
seed with 20 steps, and twice as much again for two more credits.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

from memograd.config import load_config
from memograd.config.warm_start_settings import SftSettings
from memograd.grpo import RunFolder
from memograd.recipes import memory_construct
from memograd.recipes.memory_construct import measure
from memograd.recipes.memory_construct_setup import prepare, settled
from memograd.recipes.sft import sft

GRPO_SEED = 100  # added to the seed: GRPO reads other logs than SFT did


def main() -> None:
    """Run every seed and credit that begins in time."""
    given = _arguments()
    began = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    shared = [
        f"build.eval_logs={given.eval_logs}",
        f"build.chunks={given.chunks}",
        f"max_completion_length={given.tokens}",
        f"prompts_per_step={given.cases}",
        f"num_generations={given.group}",
        f"model={given.model}",
    ]
    _print(_untrained(given, shared))
    for seed in given.seeds:
        adapter = _warmed(given, seed, shared)
        for credit in given.credits:
            if (time.monotonic() - began) / 60 > given.minutes:
                _print({"stopped": f"{given.minutes:g} minutes are over", "seed": seed})
                return
            run = memory_construct.train(
                load_config(
                    None,
                    [
                        *shared,
                        f"seed={seed + GRPO_SEED}",
                        f"build.logs={given.logs}",
                        f"build.credit={credit}",
                        f"steps={given.steps}",
                        f"adapter={adapter}",
                        f"out={given.out / f'{credit}-{seed}'}",
                    ],
                )
            )
            _print({"seed": seed, "credit": credit, **_told(run)})


def _untrained(given: argparse.Namespace, shared: list[str]) -> dict[str, Any]:
    """The model as it comes, which no run with an adapter measures."""
    config = settled(load_config(None, [*shared, f"build.logs={given.logs}"]))
    built = measure(prepare(config, None), config, "as it comes")
    result = built.result("as it comes")
    metrics = {name: fmean(values) for name, values in result.per_item.items()}
    return {"method": result.name, **metrics, **result.totals}


def _warmed(given: argparse.Namespace, seed: int, shared: list[str]) -> Path:
    """A run of SFT on gold answers."""
    rows, out = given.out / f"rows-{seed}.jsonl", given.out / f"sft-{seed}"
    config = load_config(None, [*shared, f"build.logs={given.sft_logs}", f"seed={seed}"])
    memory_construct.warm_start_rows(config, rows)
    return sft(
        SftSettings(
            data=rows, out=out, model=given.model, seed=seed, batch_size=4, learning_rate=5e-4
        )
    )


def _told(run: Path) -> dict[str, Any]:
    """What a run measured."""
    methods = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))["methods"]
    rows = RunFolder.open(run).read_metrics()
    phases = {phase: fmean(row["seconds"][phase] for row in rows) for phase in ("sample", "learn")}
    return {
        "methods": {
            one["name"]: {
                **{
                    name: [round(found[key], 4) for key in ("mean", "low", "high")]
                    for name, found in one["metrics"].items()
                },
                **{name: round(value, 3) for name, value in one["totals"].items()},
            }
            for one in methods
        },
        "reward": [round(row["reward_mean"], 4) for row in rows],
        "seconds_a_step": {name: round(value, 1) for name, value in phases.items()},
    }


def _print(line: dict[str, Any]) -> None:
    Console(highlight=False, soft_wrap=True, markup=False).print(json.dumps(line))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--credits", nargs="+", default=["local"])
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--sft-logs", type=int, default=24)
    parser.add_argument("--logs", type=int, default=24)
    parser.add_argument("--eval-logs", type=int, default=12)
    parser.add_argument("--chunks", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--cases", type=int, default=2, help="cases in a step")
    parser.add_argument("--group", type=int, default=4, help="answers compared in a group")
    parser.add_argument("--tokens", type=int, default=96, help="tokens of an answer, at most")
    parser.add_argument("--minutes", type=float, default=240.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
