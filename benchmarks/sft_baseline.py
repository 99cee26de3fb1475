"""Supervised fine-tuning on the questions of a GRPO run, with the same number of gradient tokens.

    python benchmarks/sft_baseline.py --run runs/locomo-0 --out runs/sft-0

The honest baseline of a GRPO run: it learns the gold answers of the run's own training prompts,
with the same model, adapter, memory and seed, until as many tokens have passed forward and
backward as in the run (its groups as trees, without those skipped for equal rewards). The loss is
on the answer only. It sees the gold answers; GRPO only sees rewards. Prints one JSON
line and writes `evaluation.json` and `answers.jsonl` into `--out`.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

import torch

from memograd.evaluation import reports_to_json
from memograd.evaluation.metrics import evaluate_policy
from memograd.grpo import RunFolder
from memograd.policy.language_model import LanguageModel
from memograd.rollout import Scenario, TokenTree
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.memory_qa.setup import MemoryQASetup, available_conversations, choose_split

BATCH = 4
WARMUP = 5


def gradient_tokens(run: RunFolder) -> int:
    """Tokens that passed forward and backward in the run; a step's groups are of similar size."""
    return sum(
        round(row["tokens_as_tree"] * (1 - row["zero_variance_fraction"]))
        for row in run.read_metrics()
    )


def examples(
    policy: LanguageModel, scenarios: list[Scenario], *, budget: int, seed: int
) -> list[Scenario]:
    """Whole shuffled epochs of `scenarios`, cut where `budget` tokens are reached."""
    order = random.Random(seed)
    chosen: list[Scenario] = []
    tokens = 0
    while True:
        epoch = list(scenarios)
        order.shuffle(epoch)
        for scenario in epoch:
            answer = policy.count_tokens(str(scenario.columns["answer"])) + 1
            tokens += len(policy.encode(scenario.messages)) + answer
            if tokens > budget:
                return chosen
            chosen.append(scenario)


def fit(policy: LanguageModel, chosen: list[Scenario], learning_rate: float) -> list[float]:
    """One pass of AdamW over `chosen`, in batches; returns the loss of every batch.

    The loss is the mean negative log-probability of the batch's gold tokens, end token included.
    """
    optimizer = torch.optim.AdamW(policy.parameters(), lr=learning_rate, weight_decay=0.0)
    end = policy.tokenizer.eos_token_id
    losses = []
    for step, first in enumerate(range(0, len(chosen), BATCH), start=1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min(1.0, step / (WARMUP + 1))
        trees = []
        for scenario in chosen[first : first + BATCH]:
            gold = policy.tokenizer.encode(
                str(scenario.columns["answer"]), add_special_tokens=False
            )
            trees.append(TokenTree.from_branches(policy.encode(scenario.messages), [[*gold, end]]))
        tokens = sum(len(tree.branches[0]) for tree in trees)
        total = 0.0
        for tree in trees:
            loss = -policy.logprobs([tree], temperature=1.0).logprobs_RT.sum() / tokens
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(total)
    return losses


def main() -> None:
    """Train, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, required=True, help="finished memory-qa run folder")
    parser.add_argument("--out", type=Path, required=True, help="new folder")
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    run = RunFolder.open(arguments.run)
    config = MemoryQATrainConfig.model_validate_json(run.config_json)
    arguments.out.mkdir(parents=True)
    policy = LanguageModel.load(
        config.model, lora=config.lora, device=config.device, seed=config.seed
    )
    split = choose_split(
        available_conversations(config.data, config.seed), config.train, config.eval
    )
    setup = MemoryQASetup(config, policy, arguments.out / "memory.db")
    setup.remember([*split.train, *split.eval])
    budget = gradient_tokens(run)
    chosen = examples(policy, setup.scenarios(split.train), budget=budget, seed=config.seed)
    start = time.perf_counter()
    losses = fit(policy, chosen, arguments.learning_rate)
    seconds = time.perf_counter() - start
    answered = evaluate_policy(
        policy,
        setup.scenarios(split.eval),
        method="retrieved memory, supervised",
        max_completion_length=config.max_completion_length,
        batch_size=config.eval_batch_size,
    )
    (arguments.out / "evaluation.json").write_text(
        reports_to_json([answered.report]), encoding="utf-8"
    )
    lines = [json.dumps({"answer": answer}, ensure_ascii=False) for answer in answered.answers]
    (arguments.out / "answers.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(
        json.dumps(
            {
                "bench": "sft_baseline",
                "run": str(arguments.run),
                "seed": config.seed,
                "gradient_tokens": budget,
                "examples": len(chosen),
                "learning_rate": arguments.learning_rate,
                "loss": {
                    "first": round(losses[0], 3),
                    "last_ten": round(sum(losses[-10:]) / 10, 3),
                },
                "train_seconds": round(seconds, 1),
                "scores": {
                    metric: round(groups["overall"].mean, 4)
                    for metric, groups in answered.report.estimates.items()
                },
            }
        )
    )


if __name__ == "__main__":
    main()
