"""Reward curves of GRPO by vLLM servers and by our own sampler, over seeds. JSON lines.

    python benchmarks/sampler_curves.py --url http://127.0.0.1:8411 --out runs/curves \
        [--seeds 0 1 2] [--steps 20]

Each run is `memograd train text` on twelve sums. The reward is the share of an answer's characters
that are no letters: it is graded, every answer has some of it, and it has one end, so that curves
of two seeds can be laid beside each other; a reward with several ends (short and wrong, right and
long) would compare which end a seed fell to. A run whose folder is there and finished is read and
not made again.
Without `--url` our own sampler's runs are made and read alone.

    rewards     mean reward of every step
    quarters    mean reward of each quarter of the run
    gap         largest |learner - sampler| of a token in nats, all steps
    publish     seconds to write and load an adapter, median and largest
    gap_steps   steps whose gap was measured (in the others nothing was learnt)

The last line has both samplers' means over seeds, their difference, and its 95% interval of
Student's t with a common spread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
from policies_bench.results import STUDENT_T

from memograd.grpo import RunFolder
from memograd.grpo.run_state import run_state

REWARD = """
def no_letters(completions):
    return [sum(not c.isalpha() for c in text) / max(1, len(text)) for text in completions]
"""
SETTINGS = (
    *("prompts_per_step=2", "num_generations=8", "max_completion_length=10", "beta=0"),
    *("learning_rate=3e-4", "text.eval_fraction=0", "device=cpu"),
)


def files(folder: Path) -> list[str]:
    """The sums and the reward, and the words that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    sums = [f"What is {one} plus {two}?" for one in (2, 5, 8) for two in (3, 4, 6, 7)]
    data, rewards = folder / "sums.jsonl", folder / "no_letters.py"
    data.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in sums))
    rewards.write_text(REWARD)
    return ["--data", str(data), "--rewards", f"{rewards}:no_letters"]


def trained(folder: Path, words: list[str]) -> list[dict]:
    """Metrics of the run in `folder`, which is made if it is not there."""
    if not (folder / "metrics.jsonl").exists() or run_state(folder).name != "finished":
        command = [sys.executable, "-m", "memograd", "train", "text", *words, f"out={folder}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return RunFolder.open(folder).read_metrics()


def line_of(sampler: str, seed: int, rows: list[dict]) -> dict:
    """What one run gave."""
    rewards = [row["reward_mean"] for row in rows]
    line = {
        "bench": "sampler_curves",
        "sampler": sampler,
        "seed": seed,
        "steps": len(rows),
        "mean": round(float(np.mean(rewards)), 4),
        "quarters": [round(float(part.mean()), 3) for part in np.array_split(rewards, 4)],
        "rewards": [round(reward, 3) for reward in rewards],
    }
    gaps = [row["sampler_gap"] for row in rows if row.get("sampler_gap") is not None]
    if gaps:
        line |= {"gap": max(gaps), "gap_steps": len(gaps)}
    loads = [row["seconds"]["publish"] for row in rows if "publish" in row["seconds"]]
    if sampler == "vllm" and loads:
        line["publish"] = [round(statistics.median(loads), 2), round(max(loads), 2)]
    return line


def difference(ours: list[float], theirs: list[float]) -> dict:
    """Means over seeds and their difference with Welch's interval."""
    line = {
        "bench": "sampler_curves",
        "summary": "mean reward over all steps",
        "local": round(statistics.mean(ours), 4),
        "vllm": round(statistics.mean(theirs), 4),
    }
    seeds = len(ours)
    if 2 * seeds - 1 in STUDENT_T and seeds > 1:
        apart = statistics.mean(theirs) - statistics.mean(ours)
        spread = (statistics.variance(ours) + statistics.variance(theirs)) / seeds
        half = STUDENT_T[2 * seeds - 1] * spread**0.5
        line["vllm_minus_local"] = [round(apart + side, 4) for side in (0, -half, half)]
    return line


def main() -> None:
    """Train, read and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="a vLLM server over the packaged model")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    words = [*files(arguments.out), *SETTINGS, f"steps={arguments.steps}"]
    samplers = {"local": ["sampler=local"]}
    if arguments.url:
        samplers["vllm"] = ["sampler=vllm", f"sampler.url={arguments.url}"]
    means: dict[str, list[float]] = {name: [] for name in samplers}
    for seed in arguments.seeds:
        for name, extra in samplers.items():
            folder = arguments.out / f"{name}-{seed}"
            line = line_of(name, seed, trained(folder, [*words, *extra, f"seed={seed}"]))
            means[name].append(line["mean"])
            print(json.dumps(line), flush=True)
    if arguments.url:
        print(json.dumps(difference(means["local"], means["vllm"])))


if __name__ == "__main__":
    main()
