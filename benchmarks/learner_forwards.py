"""One packed row, two passes and rows: errors, seconds and memory of a learner step. JSON lines.

    python benchmarks/learner_forwards.py [--shapes 512,8,32 256,8,128 128,8,512] [--repeats 2]

A shape is P,G,C: G random answers of C tokens to a prompt of P, SmolLM2 in fp32 with a LoRA adapter
whose weights are all non-zero, one thread. A step is one forward and backward of the sum of all
log-probabilities. One line a shape and forward:

    logprob_error   largest |difference| to rows, in nats
    gradient_error  |gradient - that of rows| / |that of rows|
    cpu_seconds     the least of all repeats; `wall_seconds` beside it says how busy the machine was
    peak_mib        how far one step lifts the peak resident memory above the loaded model; each
                    measured in a process of its own
    predicted       multiply-adds that `memograd.policy.forward_choice` counts, in units of rows

Forwards take turns within a repeat. Rows go one at a time, each computed again in the backward
pass: all eight at once took more memory than a machine of 23 GB had left.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from memograd.config import LoraConfig
from memograd.policy.forward_choice import LayerCosts, predicted_costs
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import PACKAGED_MODEL
from memograd.policy.rows import row_logprobs
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.policy.tree_forward import packed_logprobs, tree_logprobs
from memograd.rollout import TokenTree

FORWARDS: dict[str, Callable[..., BranchLogprobs]] = {
    "rows": partial(row_logprobs, chunk=1),
    "tree": tree_logprobs,
    "packed": packed_logprobs,
}


def step(policy: LanguageModel, tree: TokenTree, forward: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and the gradient of their sum, as one vector."""
    scores = FORWARDS[forward](policy.model, [tree], temperature=0.8)
    gradients = torch.autograd.grad(scores.logprobs_RT.sum(), policy.parameters())
    return scores.logprobs_RT.detach(), torch.cat([part.flatten() for part in gradients])


def resident_mib(entry: str) -> float:
    """`VmRSS` (resident memory now) or `VmHWM` (its peak) of this process, in MiB; Linux only."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{entry}:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"this system does not report {entry}")


def opened(shape: tuple[int, int, int]) -> tuple[LanguageModel, TokenTree]:
    """The model and a tree of that shape, always the same ones."""
    torch.set_num_threads(1)
    policy = LanguageModel.load(PACKAGED_MODEL, lora=LoraConfig(), device="cpu")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.02)
    prompt, group, length = shape

    def ids(count: int) -> list[int]:
        return torch.randint(10, len(policy.tokenizer), (count,), generator=generator).tolist()

    return policy, TokenTree.from_branches(ids(prompt), [ids(length) for _ in range(group)])


def peak_of(shape: str, forward: str) -> int:
    """How far one step lifts the peak memory above the loaded model, MiB, in a fresh process."""
    command = [sys.executable, sys.argv[0], "--shapes", shape, "--only-memory-of", forward]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(printed.split()[-1])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", default=["512,8,32", "256,8,128", "128,8,512"])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only-memory-of", choices=list(FORWARDS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for text in arguments.shapes:
        prompt, group, length = map(int, text.split(","))
        # Before anything is loaded here: an allocator does not give back all that it once had.
        peaks = {} if arguments.only_memory_of else {name: peak_of(text, name) for name in FORWARDS}
        policy, tree = opened((prompt, group, length))
        if arguments.only_memory_of:
            Path("/proc/self/clear_refs").write_text("5")  # the peak counts anew from here
            loaded = resident_mib("VmRSS")
            step(policy, tree, arguments.only_memory_of)
            print(round(resident_mib("VmHWM") - loaded))
            return
        cpu: dict[str, list[float]] = {name: [] for name in FORWARDS}
        wall: dict[str, list[float]] = {name: [] for name in FORWARDS}
        results = {}
        for _ in range(arguments.repeats):
            for name in FORWARDS:
                started, used = time.perf_counter(), time.process_time()
                results[name] = step(policy, tree, name)
                wall[name].append(time.perf_counter() - started)
                cpu[name].append(time.process_time() - used)
        costs = predicted_costs([tree], LayerCosts.of(policy.model), torch.device("cpu"))
        rows_RT, rows_gradient = results["rows"]
        del policy
        for name, (logprobs_RT, gradient) in results.items():
            error = (gradient - rows_gradient).norm() / rows_gradient.norm()
            print(
                json.dumps(
                    {
                        "bench": "learner_forwards",
                        "prompt": prompt,
                        "group": group,
                        "completion": length,
                        "forward": name,
                        "logprob_error": float((logprobs_RT - rows_RT).abs().max()),
                        "gradient_error": float(error),
                        "cpu_seconds": round(min(cpu[name]), 2),
                        "wall_seconds": round(min(wall[name]), 2),
                        "peak_mib": peaks[name],
                        "predicted": round(costs[name] / costs["rows"], 3),
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
