"""memory-construct on SmolLM2 over several seeds: what SFT teaches, what GRPO adds, by credit.

    python benchmarks/memory_construct.py --out runs/construct                  # train and measure
    python benchmarks/memory_construct.py --out runs/construct --seeds 1 --credits local
    python benchmarks/memory_construct.py --out runs/construct --report         # the tables again

Each seed makes its own training logs, learns the gold answers to `--sft-logs` of them and goes on
with GRPO on `--logs` others, once for each credit, from the same adapter. Every model, and every
memory that needs none, reads the same held-out logs in held-out words. A credit that compares whole
attempts gets as many of them as make the same number of sampled answers in a step. `--advantage
group` divides by the spread of a group, which makes much of small differences in size; without it
the task chooses: not to divide, where credit is local.

A seed's scores are kept question by question in `--out` (`scores-*.json`); what is there is not
made again, so several processes may share the work by `--seeds`, and a stopped one goes on. The
report gives a question the mean over seeds; intervals (95%) draw logs first, questions within them
second, and differences are paired by question. It needs every seed to have been measured on the
same questions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console

from memograd.config import load_settings
from memograd.evaluation.bootstrap import clustered_interval
from memograd.grpo import RunFolder
from memograd.memory.embedders.load import load_embedder
from memograd.tasks.base.life import train_task
from memograd.tasks.base.recipe import Job
from memograd.tasks.memory_construct import recipe as memory_construct
from memograd.tasks.memory_construct.credit import CREDITS
from memograd.tasks.memory_construct.measure import Reading, baselines
from memograd.tasks.memory_construct.memory_book import Texts
from memograd.tasks.memory_construct.recipe import (
    cases,
    make_job,
    prepare,
    settled,
)
from memograd.tasks.memory_construct.settings import ConstructTrainConfig
from memograd.tasks.memory_construct.walk import Rules
from memograd.warm_start.settings import SftSettings
from memograd.warm_start.sft import sft

GRPO_SEED = 100  # added to the seed: GRPO reads other logs than SFT did
ORDER = ("nothing", "untrained", "SFT", "GRPO", "every", "gold")  # first words, as in the tables
Found = dict[int, dict[str, Any]]  # seed -> what was measured
console = Console(highlight=False, soft_wrap=True, markup=False)


def given_settings(overrides: list[str]) -> ConstructTrainConfig:
    """Settings as typed on the command line."""
    return load_settings(ConstructTrainConfig, None, overrides)


def main() -> None:
    """Make what is missing, then report; or report alone."""
    given = _arguments()
    given.out.mkdir(parents=True, exist_ok=True)
    if not given.report:
        _keep(given, "baselines", partial(_baselines, given))
        for seed in given.seeds:
            adapter = _warmed(given, seed)
            _keep(given, f"SFT-{seed}", partial(_measured, given, "SFT", seed, adapter))
            for credit in given.credits:
                kind = f"{credit} {given.advantage}" if given.advantage else credit
                run = _trained(given, seed, credit, adapter, given.out / f"{kind}-{seed}")
                made = partial(_measured, given, f"GRPO {kind}", seed, run)
                _keep(given, f"{kind}-{seed}", made)
        if not given.skip_untrained:
            _keep(given, "untrained", partial(_untrained, given))
    _report(given)


# Training


def _shared(given: argparse.Namespace) -> list[str]:
    return [
        f"build.eval_logs={given.eval_logs}",
        f"build.chunks={given.chunks}",
        f"max_completion_length={given.tokens}",
        f"model={given.model}",
    ]


def _warmed(given: argparse.Namespace, seed: int) -> Path:
    """A run of SFT on gold answers."""
    rows, out = given.out / f"rows-{seed}.jsonl", given.out / f"sft-{seed}"
    if (out / "final").is_dir():
        return out
    config = load_settings(
        ConstructTrainConfig,
        None,
        [*_shared(given), f"build.logs={given.sft_logs}", f"seed={seed}"],
    )
    if not rows.exists():
        memory_construct.warm_start_rows(config, rows)
    return sft(
        SftSettings(
            data=rows, out=out, model=given.model, seed=seed, batch_size=4, learning_rate=5e-4
        )
    )


def _trained(given: argparse.Namespace, seed: int, credit: str, adapter: Path, out: Path) -> Path:
    """A run of GRPO from that adapter; measured later, so nothing is held out in it."""
    if (out / "final").is_dir():
        return out
    whole = credit != "local"
    config = load_settings(
        ConstructTrainConfig,
        None,
        [
            *_shared(given),
            f"seed={seed + GRPO_SEED}",
            f"build.logs={given.logs}",
            f"build.credit={credit}",
            f"build.walks={given.walks}",
            *([f"advantage={given.advantage}"] if given.advantage else []),
            f"prompts_per_step={given.cases}",
            f"num_generations={given.group * given.walks if whole else given.group}",
            f"steps={given.steps}",
            f"learning_rate={given.learning_rate}",
            "save_steps=2",
            "warmup_steps=1",
            f"adapter={adapter}",
            f"out={out}",
        ],
    )
    if out.exists():
        config = ConstructTrainConfig(resume=out)
    return train_task(
        "memory-construct", replace(memory_construct.RECIPE, make_job=_not_measuring), config
    )


def _not_measuring(config: ConstructTrainConfig, checkpoint: Path | None) -> Job[Reading]:
    return replace(make_job(config, checkpoint), held_out=None)


# Measuring


def _keep(given: argparse.Namespace, name: str, make: Callable[[], list[dict[str, Any]]]) -> None:
    path = given.out / f"scores-{name}.json"
    if not path.exists():
        path.write_text(json.dumps(make(), indent=1), encoding="utf-8")


def _baselines(given: argparse.Namespace) -> list[dict[str, Any]]:
    """The memories that need no model."""
    config = settled(given_settings([*_shared(given), "build.logs=2"]))
    _, held_out = cases(config)
    texts = Texts(load_embedder(config.build.embedder))
    built = baselines([case for case in held_out if case.asked], texts, Rules(config.build))
    return [_scores(name, 0, one) for name, one in built.items()]


def _untrained(given: argparse.Namespace) -> list[dict[str, Any]]:
    """The model as it comes."""
    config = settled(given_settings([*_shared(given), "build.logs=2"]))
    return [_scores("untrained", 0, prepare(config, None).measure("untrained"))]


def _measured(given: argparse.Namespace, name: str, seed: int, run: Path) -> list[dict[str, Any]]:
    config = settled(given_settings([*_shared(given), "build.logs=2"]))
    found = _scores(name, seed, prepare(config, run / "final").measure(run.name))
    rows = RunFolder.open(run).read_metrics()
    if name != "SFT":
        found["reward"] = [round(row["reward_mean"], 4) for row in rows]
        found["seconds a step"] = {
            phase: fmean(row["seconds"][phase] for row in rows) for phase in ("sample", "learn")
        }
    return [found]


def _scores(name: str, seed: int, reading: Reading) -> dict[str, Any]:
    result = reading.result
    return {
        "method": name,
        "seed": seed,
        "questions": reading.questions,
        "logs": result.groups["answerable"],
        "answerable": result.per_item["answerable"],
        "misled": result.per_item["misled"],
        "tool success": fmean(result.per_item["tool success"]),
        "totals": result.totals,
    }


# Reporting


def _report(given: argparse.Namespace) -> None:
    """One JSON line a method, and one a paired difference."""
    methods: dict[str, Found] = {}
    for path in sorted(given.out.glob("scores-*.json")):
        for one in json.loads(path.read_text(encoding="utf-8")):
            methods.setdefault(one["method"], {})[one["seed"]] = one
    names = sorted(methods, key=lambda name: (ORDER.index(name.split()[0]), name))
    for name in names:
        _print(_method_line(name, methods[name]))
    trained = [name for name in names if name.startswith("GRPO")]
    pairs = [(name, "SFT") for name in trained if "SFT" in methods]
    pairs += [("GRPO local", name) for name in trained[1:] if trained[0] == "GRPO local"]
    for name, other in pairs:
        _print(_difference_line(name, methods[name], other, methods[other]))


def _method_line(name: str, found: Found) -> dict[str, Any]:
    seeds = list(found.values())
    logs = seeds[0]["logs"]
    line = {
        "method": name,
        "seeds": sorted(found),
        "questions": len(logs),
        "logs": len(set(logs)),
        "answerable": _points(_by_question(seeds, "answerable"), logs),
        "by seed": [round(100 * fmean(one["answerable"]), 1) for one in seeds],
        "misled": _points(_by_question(seeds, "misled"), logs),
        "tool success": round(100 * fmean(one["tool success"] for one in seeds), 1),
    }
    for total in ("items", "tokens", "calls a chunk", "updates and deletes", "s a chunk"):
        line[total] = round(fmean(one["totals"][total] for one in seeds), 2)
    if "reward" in seeds[0]:
        line["reward by step"] = [
            round(fmean(step), 3) for step in zip(*(one["reward"] for one in seeds), strict=True)
        ]
        for phase in ("sample", "learn"):
            seconds = fmean(one["seconds a step"][phase] for one in seeds)
            line[f"{phase} s a step"] = round(seconds, 1)
    return line


def _difference_line(name: str, found: Found, other: str, before: Found) -> dict[str, Any]:
    both = sorted(set(found) & set(before))
    line: dict[str, Any] = {"difference": f"{name} - {other}", "seeds": both}
    for metric in ("answerable", "misled"):
        after_N = _by_question([found[seed] for seed in both], metric)
        before_N = _by_question([before[seed] for seed in both], metric)
        line[metric] = _points(after_N - before_N, found[both[0]]["logs"])
        line[f"{metric} by seed"] = [
            round(100 * (fmean(found[seed][metric]) - fmean(before[seed][metric])), 1)
            for seed in both
        ]
    return line


def _by_question(seeds: list[dict[str, Any]], metric: str) -> np.ndarray:
    """The mean over seeds of every question's score [questions]."""
    if any(one["questions"] != seeds[0]["questions"] for one in seeds):
        raise SystemExit("the seeds were measured on different questions: begin a new --out")
    return np.mean([one[metric] for one in seeds], axis=0)


def _points(scores: np.ndarray, logs: list[str]) -> list[float]:
    """Mean and 95% interval, in points."""
    low, high = clustered_interval(scores.tolist(), logs, resamples=4000)
    return [round(100 * float(value), 1) for value in (scores.mean(), low, high)]


def _print(line: dict[str, Any]) -> None:
    console.print(json.dumps(line))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of runs and scores")
    parser.add_argument("--report", action="store_true", help="only what was measured before")
    parser.add_argument("--skip-untrained", action="store_true", help="another process does it")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--credits", nargs="+", default=list(CREDITS), choices=list(CREDITS))
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--sft-logs", type=int, default=24)
    parser.add_argument("--logs", type=int, default=24)
    parser.add_argument("--eval-logs", type=int, default=24)
    parser.add_argument("--chunks", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--cases", type=int, default=3, help="cases in a step")
    parser.add_argument("--walks", type=int, default=2, help="walks through a case, credit local")
    parser.add_argument("--group", type=int, default=4, help="answers compared in a group")
    parser.add_argument("--advantage", choices=["group", "centred"], help="none: the task's own")
    parser.add_argument("--learning-rate", type=float, default=2e-4, help="of GRPO")
    parser.add_argument("--tokens", type=int, default=96, help="tokens of an answer, at most")
    return parser.parse_args()


if __name__ == "__main__":
    main()
