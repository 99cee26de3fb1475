"""One GRPO step, memograd against TRL's GRPOTrainer, in the same process. One JSON line.

    python benchmarks/grpo_step.py --prompt 512 --completion 32 --group 8 --memory

Same model, same prompt, same LoRA weights, same completions in the learner, one thread, alternating
repeats, medians. TRL has the model as transformers loads it, ours as memograd does, which on AMD
processors has faster linear layers (`memograd.policy.loading`); `--same-linears` gives these to
TRL as well, so that only the sharing of tokens is left. Ratios are TRL's time over ours:

    learner_ratio  reference log-probabilities + loss + backward, on the same completions
    sample_ratio   drawing the group's completions, all of full length
    step_ratio     both together (step_ratio_cpu: in CPU seconds instead of wall-clock)
    grad_rel_err   |our gradient - TRL's| / |TRL's|, on the same completions and advantages
    memory_ratio   with `--memory`: how far one learner step lifts the peak resident memory above
                   what the loaded model takes, each side in a process of its own
    over_flops     our learner's time over that of the bare arithmetic: forward and backward of as
                   many tokens as the tree has, in one plain causal row, output layer on as many
                   states as ours, and before it, if beta > 0, one forward without gradients

TRL runs with `loss_type="grpo"`, without gradient checkpointing and without dropout, which is its
fastest like-for-like setting here. `bound` is the ratio of tokens through the model, the most a
learner could gain from sharing prompts. Completions in the learner are random, so no beginnings
are shared but the prompt; `--sampled` takes the sampler's own completions instead. `--no-trl`
measures our side alone. `--activation-checkpointing` switches that on for our model, so for
the bare arithmetic too; compare its line with one without it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from memograd.config import LoraConfig
from memograd.grpo.advantage import group_advantages
from memograd.grpo.loss import LossTerms, grpo_loss, rollout_shares, token_weights
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import PACKAGED_MODEL, load_causal_lm, resolve_model
from memograd.policy.sampler import TokenDraw, sample_trees
from memograd.rollout import TokenTree

TEMPERATURE = 0.8


class Clock:
    """Wall-clock and CPU seconds by name, one entry a repeat."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}

    def measure(self, name: str, job: Callable[[], Any]) -> Any:
        """Run `job` and time it under `name`."""
        wall, cpu = time.perf_counter(), time.process_time()
        result = job()
        self.wall.setdefault(name, []).append(time.perf_counter() - wall)
        self.cpu.setdefault(name, []).append(time.process_time() - cpu)
        return result


def trl_trainer(policy: LanguageModel, arguments: argparse.Namespace, prompt: str) -> GRPOTrainer:
    """A trainer of TRL over a second copy of the same model and adapter weights."""
    with tempfile.TemporaryDirectory() as folder:
        policy.peft_model.save_pretrained(folder)
        if arguments.same_linears:
            base = load_causal_lm(arguments.model, torch.device("cpu"))
        else:
            base = AutoModelForCausalLM.from_pretrained(
                resolve_model(arguments.model), dtype=torch.float32
            )
        model = PeftModel.from_pretrained(base, folder, is_trainable=True)
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=arguments.group,
        num_generations=arguments.group,
        max_completion_length=arguments.completion,
        temperature=TEMPERATURE,
        beta=arguments.beta,
        loss_type="grpo",
        use_bias_correction_kl=False,  # plain k3, as in the GRPO paper and here
        gradient_checkpointing=False,
        generation_kwargs={"min_new_tokens": arguments.completion},
        report_to=[],
        max_steps=1,
    )
    rows = Dataset.from_list([{"prompt": prompt}] * arguments.group)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=lambda prompts, completions, **columns: [
            float(index) for index in range(len(completions))
        ],
        args=config,
        train_dataset=rows,
        processing_class=AutoTokenizer.from_pretrained(
            resolve_model(arguments.model), padding_side="left"
        ),
    )
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1  # which `train()` would have set
    return trainer


def trl_learn(trainer: GRPOTrainer, batch: dict[str, torch.Tensor], beta: float) -> None:
    """TRL's reference pass and loss with backward, on a given batch."""
    model = trainer.model
    model.zero_grad(set_to_none=True)
    if beta:
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        with torch.no_grad(), model.disable_adapter():
            reference, *_ = trainer._get_per_token_logps_and_entropies(
                model, ids, mask, batch["completion_ids"].shape[1]
            )
        batch = {**batch, "ref_per_token_logps": reference}
    trainer.compute_loss(model, batch).backward()


def our_learn(
    policy: LanguageModel, tree: TokenTree, advantages_R: torch.Tensor, beta: float
) -> None:
    """The same with the token tree."""
    for parameter in policy.parameters():
        parameter.grad = None
    reference = (
        policy.reference_logprobs([tree], temperature=TEMPERATURE).logprobs_RT if beta else None
    )
    scores = policy.logprobs([tree], temperature=TEMPERATURE)
    counts_K = scores.mask_RT.sum(dim=1)
    shares_K = rollout_shares(
        "rollout", counts_K.numpy(), max_completion_length=scores.mask_RT.shape[1]
    )
    grpo_loss(
        LossTerms(beta=beta),
        logprobs_RT=scores.logprobs_RT,
        old_logprobs_RT=scores.logprobs_RT.detach(),
        reference_logprobs_RT=reference,
        entropies_RT=scores.entropies_RT,
        advantages_RT=advantages_R[:, None],
        weights_RT=token_weights(
            scores.mask_RT,
            rollouts_R=torch.arange(len(counts_K)),
            shares_K=torch.from_numpy(shares_K),
            counts_K=counts_K,
        ),
    ).loss.backward()


def bare_learn(policy: LanguageModel, tree: TokenTree, beta: float) -> None:
    """The arithmetic of a learner step and nothing else: what `over_flops` compares with."""
    ids = torch.arange(1000, 1000 + tree.tree_tokens)[None]
    states = len(np.unique(tree.parents_N[tree.scored_nodes]))
    model = policy.model

    def score() -> torch.Tensor:
        logits = model(input_ids=ids, logits_to_keep=states, use_cache=False).logits[0]
        return torch.log_softmax(logits.float() / TEMPERATURE, dim=-1)[:, 0].sum()

    for parameter in policy.parameters():
        parameter.grad = None
    if beta:
        with torch.no_grad(), policy.untrained():
            score()
    score().backward()


def gradient(parameters: Any) -> torch.Tensor:
    """All gradients as one vector."""
    return torch.cat([p.grad.flatten() for p in parameters if p.requires_grad])


def resident_mib(entry: str) -> float:
    """`VmRSS` (resident memory now) or `VmHWM` (its peak) of this process, in MiB; Linux only."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{entry}:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"this system does not report {entry}; leave --memory away")


def memory_of(side: str) -> dict[str, float]:
    """Peak MiB of one learner step of `side`, in a fresh process with our own options."""
    command = [sys.executable, *sys.argv, "--only-memory-of", side]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(printed.splitlines()[-1])
    return result


def options() -> argparse.Namespace:
    """What was asked on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--completion", type=int, default=32)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--beta", type=float, default=0.04)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--model", default=PACKAGED_MODEL)
    parser.add_argument("--sampled", action="store_true", help="learn from sampled completions")
    parser.add_argument("--same-linears", action="store_true", help="our linear layers for TRL too")
    parser.add_argument("--no-trl", action="store_true", help="measure our side alone")
    parser.add_argument("--memory", action="store_true", help="measure peak memory too")
    parser.add_argument(
        "--activation-checkpointing", action="store_true", help="ours with less memory, more time"
    )
    parser.add_argument("--only-memory-of", choices=["trl", "ours"], help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    arguments = options()
    torch.set_num_threads(1)
    policy = LanguageModel.load(arguments.model, lora=LoraConfig(), device="cpu")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.01)
    if arguments.activation_checkpointing:
        policy.checkpoint_activations()

    # One token a word, so that text and token ids have the same length on both sides.
    words = [token for token in range(1000, 9000) if policy.decode([token]).isalpha()]
    chosen = torch.randint(len(words), (arguments.prompt,), generator=generator).tolist()
    prompt = policy.tokenizer.decode([words[index] for index in chosen])
    prompt_ids = policy.tokenizer(prompt)["input_ids"]
    rewards = np.arange(arguments.group, dtype=np.float64)
    advantages = group_advantages(rewards, [arguments.group])
    advantages_R = torch.from_numpy(advantages.advantages_K).float()

    def random_tree() -> TokenTree:
        shape = (arguments.group, arguments.completion)
        answers = torch.randint(10, len(policy.tokenizer), shape, generator=generator)
        return TokenTree.from_branches(prompt_ids, answers.tolist())

    if arguments.only_memory_of:
        tree = random_tree()
        if arguments.only_memory_of == "trl":
            trainer = trl_trainer(policy, arguments, prompt)
            batch = trl_batch(tree, advantages_R)
            step = partial(trl_learn, trainer, batch, arguments.beta)
        else:
            step = partial(our_learn, policy, tree, advantages_R, arguments.beta)
        Path("/proc/self/clear_refs").write_text("5")  # from here on the peak counts anew
        loaded = resident_mib("VmRSS")
        step()
        print(json.dumps({"loaded": round(loaded), "peak": round(resident_mib("VmHWM"))}))
        return

    trainer = None if arguments.no_trl else trl_trainer(policy, arguments, prompt)
    clock = Clock()

    def sample_ours() -> TokenTree:
        (group,) = sample_trees(
            policy.model,
            [prompt_ids],
            TokenDraw(TEMPERATURE, arguments.completion, generator=generator),
            num_generations=arguments.group,
        )
        return group.tree

    grad_errors = []
    for repeat in range(arguments.repeats):
        samplers: dict[str, Callable[[], Any]] = {"sample_ours": sample_ours}
        if trainer:
            samplers["sample_trl"] = partial(trainer._generate, [prompt] * arguments.group)
        sampled = {name: clock.measure(name, job) for name, job in _in_turn(samplers, repeat)}
        tree = sampled["sample_ours"] if arguments.sampled else random_tree()
        learners = {
            "learn_bare": partial(bare_learn, policy, tree, arguments.beta),
            "learn_ours": partial(our_learn, policy, tree, advantages_R, arguments.beta),
        }
        if trainer:
            batch = trl_batch(tree, advantages_R)
            learners["learn_trl"] = partial(trl_learn, trainer, batch, arguments.beta)
        gradients = {}
        for name, job in _in_turn(learners, repeat):
            clock.measure(name, job)
            side = trainer.model.parameters() if name == "learn_trl" else policy.parameters()
            gradients[name] = gradient(side)
        if trainer:
            theirs, ours = gradients["learn_trl"], gradients["learn_ours"]
            grad_errors.append(float((ours - theirs).norm() / theirs.norm()))

    wall = {name: statistics.median(times) for name, times in clock.wall.items()}
    cpu = {name: statistics.median(times) for name, times in clock.cpu.items()}
    line: dict[str, object] = {
        "bench": "grpo_step",
        "prompt": len(prompt_ids),
        "completion": arguments.completion,
        "group": arguments.group,
        "beta": arguments.beta,
        "activation_checkpointing": arguments.activation_checkpointing,
        "repeats": arguments.repeats,
        "bound": round(tree.rows_tokens / tree.tree_tokens, 2),
        "over_flops": round(wall["learn_ours"] / wall["learn_bare"], 2),
        "over_flops_cpu": round(cpu["learn_ours"] / cpu["learn_bare"], 2),
        "seconds": {name: round(seconds, 2) for name, seconds in wall.items()},
        "cpu_seconds": {name: round(seconds, 2) for name, seconds in cpu.items()},
    }
    if trainer:
        line |= {
            "peer_name": "TRL GRPOTrainer",
            "same_linears": arguments.same_linears,
            "learner_ratio": round(wall["learn_trl"] / wall["learn_ours"], 2),
            "sample_ratio": round(wall["sample_trl"] / wall["sample_ours"], 2),
            "step_ratio": round(_step_ratio(wall), 2),
            "step_ratio_cpu": round(_step_ratio(cpu), 2),
            "grad_rel_err": max(grad_errors),
        }
    if arguments.memory:
        sides = ["ours"] if arguments.no_trl else ["ours", "trl"]
        memory = {side: memory_of(side) for side in sides}
        line["memory_mib"] = memory
        if trainer:
            lifted = {side: used["peak"] - used["loaded"] for side, used in memory.items()}
            line["memory_ratio"] = round(lifted["trl"] / lifted["ours"], 2)
    print(json.dumps(line))


def _in_turn(jobs: Mapping[str, Callable[[], Any]], repeat: int) -> list[tuple[str, Any]]:
    """The jobs, each side first in every other repeat."""
    ordered = list(jobs.items())
    return ordered if repeat % 2 == 0 else ordered[::-1]


def _step_ratio(seconds: dict[str, float]) -> float:
    theirs = seconds["sample_trl"] + seconds["learn_trl"]
    return theirs / (seconds["sample_ours"] + seconds["learn_ours"])


def trl_batch(tree: TokenTree, advantages_R: torch.Tensor) -> dict[str, torch.Tensor]:
    """A group of full-length completions in the form TRL's loss takes."""
    rows = len(tree.branches)
    prompt_ids = torch.tensor([tree.prompt] * rows)
    completion_ids = torch.tensor([tree.branch(row) for row in range(rows)])
    return {
        "prompt_ids": prompt_ids,
        "prompt_mask": torch.ones_like(prompt_ids),
        "completion_ids": completion_ids,
        "completion_mask": torch.ones_like(completion_ids),
        "advantages": advantages_R,
        "num_items_in_batch": torch.tensor(completion_ids.numel()),
    }


if __name__ == "__main__":
    main()
