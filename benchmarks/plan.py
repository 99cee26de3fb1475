"""How far `memograd plan` can be trusted: its memory and seconds beside what this machine takes.

    python benchmarks/plan.py memory    # peak bytes of three models, predicted and measured
    python benchmarks/plan.py seconds   # fitted on one shape, predicted for others
    python benchmarks/plan.py tables    # the tables of docs/planning.md

Models are random weights of a shape; vocabulary and layers are cut so that a process stays below
3 GB. Every measurement runs in a process of its own. Prints one JSON line each.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from typing import Any

from memograd.planning import ModelShape, Workload, make_plan, parse_cluster, shape_of
from memograd.planning.costs import (
    adapter_bytes,
    forward_flops,
    layer_bytes,
    saved_bytes,
    summed_bytes,
)
from memograd.planning.simulation import play

VOCABULARY = 4096
SMOL_135M = dataclasses.replace(shape_of("SmolLM2-135M"), vocabulary=VOCABULARY)
SMOL_360M = dataclasses.replace(shape_of("SmolLM2-360M"), vocabulary=VOCABULARY)
QWEN_HALF = dataclasses.replace(shape_of("Qwen2.5-0.5B"), vocabulary=VOCABULARY)
SHAPES = {"135M": SMOL_135M, "360M": SMOL_360M, "0.5B": QWEN_HALF}
TOKENS = 512


def measured(name: str, train: str, tokens: int) -> dict[str, float]:
    """Peak bytes above the model's, and CPU seconds, of one forward and backward pass."""
    import resource

    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

    torch.set_num_threads(1)
    shape = SHAPES[name]
    kind = Qwen2Config if shape.attention_bias else LlamaConfig
    config = kind(
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        intermediate_size=shape.inner,
        vocab_size=shape.vocabulary,
        tie_word_embeddings=shape.tied,
    )
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    if train == "lora":
        adapter = LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM")
        model = get_peft_model(model, adapter)
    ids = torch.randint(0, VOCABULARY, (1, 32))
    model(input_ids=ids, labels=ids, use_cache=False).loss.backward()  # gradients, libraries
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ids = torch.randint(0, VOCABULARY, (1, tokens))
    begun = time.process_time()
    model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"bytes": (peak - before) * 1024.0, "seconds": seconds}


def in_a_process(name: str, train: str, tokens: int) -> dict[str, float]:
    """`measured` in a process of its own, whose allocator gives every block back (glibc).

    Otherwise the holes between blocks count too: with an adapter they double the peak.
    """
    command = [sys.executable, __file__, "one", name, train, str(tokens)]
    surroundings = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings)
    return json.loads(shown.stdout.splitlines()[-1])


def memory() -> None:
    """Predicted and measured bytes of the activations and logits."""
    for name, shape in SHAPES.items():
        for train in ("lora", "full"):
            found = in_a_process(name, train, TOKENS)["bytes"]
            kept = shape.layers * saved_bytes(shape, train, rank=16, number=4)  # type: ignore[arg-type]
            logits = 3 * 4 * shape.vocabulary  # logits, their softmax, the gradient
            predicted = TOKENS * (kept + logits)
            line = {
                "what": "peak bytes of a pass above the model",
                "model": name,
                "train": train,
                "tokens": TOKENS,
                "predicted_mb": round(predicted / 1e6),
                "measured_mb": round(found / 1e6),
                "ratio": round(predicted / found, 3),
            }
            print(json.dumps(line))


def flops(shape: ModelShape, train: str, tokens: int) -> float:
    """Of one forward and backward pass without checkpointing."""
    forward = forward_flops(shape, tokens, tokens**2, tokens)
    return forward * (3 if train == "full" else 2)


def moved(shape: ModelShape, train: str, tokens: int) -> float:
    """Bytes that such a pass moves beside its matrix products."""
    of_token = layer_bytes(shape, train, again=False, number=4)  # type: ignore[arg-type]
    if train == "lora":
        of_token += adapter_bytes(shape, again=False, number=4)
    return tokens * of_token + summed_bytes(shape, train)  # type: ignore[arg-type]


def seconds() -> None:
    """Operations a second of matrix products, and bytes a second of all others, fitted on the
    smallest shape; what they predict for the others."""
    import numpy as np

    trained = ("full", "lora")
    taken = [min(in_a_process("135M", one, TOKENS)["seconds"] for _ in range(2)) for one in trained]
    done = [(flops(SMOL_135M, one, TOKENS), moved(SMOL_135M, one, TOKENS)) for one in trained]
    of_operation, of_byte = np.linalg.solve(np.array(done), np.array(taken))
    for train in ("lora", "full"):
        for name, tokens in (("135M", 256), ("360M", TOKENS), ("0.5B", TOKENS)):
            found = min(in_a_process(name, train, tokens)["seconds"] for _ in range(2))
            shape = SHAPES[name]
            predicted = of_operation * flops(shape, train, tokens)
            predicted += of_byte * moved(shape, train, tokens)
            line = {
                "what": "CPU seconds of a pass, fitted on 135M at 512 tokens",
                "model": name,
                "train": train,
                "tokens": tokens,
                "predicted_s": round(predicted, 2),
                "measured_s": round(found, 2),
                "ratio": round(predicted / found, 3),
            }
            print(json.dumps(line), flush=True)


def tables() -> None:
    """The tables of docs/planning.md, as Markdown."""
    print("| model | tuning | GPUs | GiB a learner | s a step | best placement |")
    print("|---|---|---|---:|---:|---|")
    for model, train, gpus in (
        ("Qwen2.5-1.5B", "lora", "1xH100"),
        ("Qwen2.5-1.5B", "full", "1xH100"),
        ("Qwen2.5-3B", "full", "2xH100"),
        ("Qwen2.5-7B", "lora", "1xH200"),
        ("Qwen2.5-7B", "lora", "8xH200"),
        ("Qwen2.5-7B", "full", "8xH200"),
        ("Qwen2.5-32B", "full", "32xH200"),
        ("Llama-3.1-70B", "full", "64xH200"),
    ):
        work = Workload(prompts=64, group=8, prompt=2048, answer=512, train=train)  # type: ignore[arg-type]
        plan = make_plan(shape_of(model), parse_cluster(gpus), work)
        best = plan.best
        print(
            f"| {model} | {train} | {gpus} | {best.memory.total / 2**30:.0f} "
            f"| {best.step.seconds:.0f} | {best.name} |"
        )
    print("\n| GPUs | staleness | s a step | learner idle | sampler idle | mean age |")
    print("|---:|---:|---:|---:|---:|---:|")
    for count in (64, 256, 1024):
        work = Workload(
            prompts=4 * count, group=8, prompt=2048, answer=2048, spread=1.0, train="full"
        )
        for staleness in (0, 1, 4):
            plan = make_plan(
                shape_of("Llama-3.1-70B"),
                parse_cluster(f"{count}xH200"),
                work,
                max_staleness=staleness,
            )
            played = play(plan.best, work, steps=6, max_staleness=staleness)
            print(
                f"| {count} | {staleness} | {played.seconds_a_step:.0f} "
                f"| {played.learner_idle:.0%} | {played.sampler_idle:.0%} "
                f"| {played.staleness_mean:.2f} |"
            )


def main() -> None:
    """Run the part that the first argument names."""
    match sys.argv[1:]:
        case ["one", name, train, tokens]:
            print(json.dumps(measured(name, train, int(tokens))))
        case ["memory"]:
            memory()
        case ["seconds"]:
            seconds()
        case ["tables"]:
            tables()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
