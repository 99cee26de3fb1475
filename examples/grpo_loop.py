"""The whole of GRPO on one page: sample groups, reward them, compare, move the policy.

    python examples/grpo_loop.py                              SmolLM2-135M on sums, on a CPU
    python examples/grpo_loop.py --model FOLDER --steps 100

Read it from top to bottom. `memograd train` does the same with resuming, checkpoints, several
processes and a dozen variants; `tests/grpo/test_grpo_loop.py` holds this page to the same
gradient.

Names of tensors end with their axes: R rows (one rollout each), T tokens of an answer, G rollouts
of a group.
"""

from __future__ import annotations

import argparse
import random

import numpy as np
import torch

from memograd.config import LoraConfig
from memograd.grpo.advantage import group_advantages
from memograd.policy.language_model import LanguageModel
from memograd.policy.protocol import SampledGroup
from memograd.rollout.types import Message


def problem(generator: random.Random) -> tuple[list[Message], str]:
    """A prompt and its right answer: what is to be learnt can be checked, so no data are needed."""
    a, b = generator.randint(1, 20), generator.randint(1, 20)
    asked = f"What is {a} + {b}? Answer with the number and nothing else."
    return [Message(role="user", content=asked)], str(a + b)


def reward(answer: str, gold: str) -> float:
    """1 for the right number and nothing else; a part for digits, so that there is a way there."""
    digits = sum(letter.isdigit() for letter in answer) / max(1, len(answer))
    return 0.7 * (answer == gold) + 0.3 * digits


def clipped_loss(
    logprobs_RT: torch.Tensor,
    old_logprobs_RT: torch.Tensor,
    reference_RT: torch.Tensor,
    mask_RT: torch.Tensor,
    advantages_R: torch.Tensor,
    *,
    epsilon: float,
    beta: float,
) -> torch.Tensor:
    """PPO's clipped objective with GRPO's advantages and its KL term (arXiv:2402.03300, eq. 3).

    A token gains by its advantage times how much likelier it became, but no further than a factor
    of 1 + epsilon (or 1 - epsilon): beyond that the samples say nothing about the policy any more.
    """
    ratio_RT = torch.exp(logprobs_RT - old_logprobs_RT)
    clipped_RT = ratio_RT.clamp(1 - epsilon, 1 + epsilon)
    advantages_RT = advantages_R[:, None]
    gain_RT = torch.minimum(ratio_RT * advantages_RT, clipped_RT * advantages_RT)
    # How far the policy is from where it began: never negative, zero where they agree ("k3").
    gap_RT = reference_RT - logprobs_RT
    kl_RT = torch.exp(gap_RT) - gap_RT - 1
    # Mean over the tokens of a rollout, then over rollouts: long answers weigh as short ones do.
    per_rollout_R = ((gain_RT - beta * kl_RT) * mask_RT).sum(dim=1) / mask_RT.sum(dim=1)
    return -per_rollout_R.mean()


def learn(
    policy: LanguageModel,
    optimizer: torch.optim.Optimizer,
    groups: list[SampledGroup],
    advantages_R: np.ndarray,
    settings: argparse.Namespace,
) -> float:
    """Some optimiser steps on one batch of rollouts; returns the loss of the first."""
    # A group is a token tree: what its rollouts share is computed once, here as in sampling.
    trees = [group.tree for group in groups]
    reference = policy.reference_logprobs(trees, temperature=settings.temperature)
    weights = torch.from_numpy(advantages_R).float().to(policy.device)
    old_RT, losses = None, []
    for _ in range(settings.passes):
        scores = policy.logprobs(trees, temperature=settings.temperature)
        # The policy that drew the samples is the one before the first step, gradient aside.
        old_RT = scores.logprobs_RT.detach() if old_RT is None else old_RT
        loss = clipped_loss(
            scores.logprobs_RT,
            old_RT,
            reference.logprobs_RT,
            scores.mask_RT,
            weights,
            epsilon=settings.epsilon,
            beta=settings.beta,
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses[0]


def train(settings: argparse.Namespace) -> tuple[LanguageModel, list[float]]:
    """The loop; returns the trained policy and the mean reward of every step."""
    policy = LanguageModel.load(settings.model, lora=LoraConfig(), device=settings.device)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=settings.learning_rate, weight_decay=0.0)
    problems = random.Random(settings.seed)
    generator = torch.Generator(policy.device).manual_seed(settings.seed)
    means: list[float] = []
    for step in range(1, settings.steps + 1):
        asked = [problem(problems) for _ in range(settings.prompts)]
        groups = policy.sample(
            [policy.encode(prompt) for prompt, _ in asked],
            num_generations=settings.group,
            temperature=settings.temperature,
            max_completion_length=settings.tokens,
            generator=generator,
        )
        rewards_R = np.array(
            [reward(text, gold) for group, (_, gold) in zip(groups, asked, strict=True)
             for text in group.texts]
        )  # fmt: skip
        # Better or worse than the others that began in the same state: (r - mean) / std, per group.
        compared = group_advantages(rewards_R, [settings.group] * settings.prompts)
        loss = learn(policy, optimizer, groups, compared.advantages_K, settings)
        means.append(float(rewards_R.mean()))
        print(f"step {step:3d}  reward {means[-1]:.3f}  loss {loss:+.4f}  {groups[0].texts[0]!r}")
    return policy, means


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="smollm2-135m-instruct", help="alias, hub id or folder")
    parser.add_argument("--device", default="auto")
    numbers = {"steps": 30, "prompts": 4, "group": 8, "tokens": 6, "passes": 2, "seed": 0}
    shares = {"temperature": 1.0, "learning_rate": 3e-4, "epsilon": 0.2, "beta": 0.01}
    for name, value in {**numbers, **shares}.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    return parser.parse_args(given)


if __name__ == "__main__":
    train(arguments())
