"""The gradient step: from experience to moved weights.

Groups whose rewards are all equal carry no information (their advantages are zero): they are
skipped and counted, and the others keep the share of the loss they would have had beside them.
Gradients are accumulated over micro-batches that the policy cuts to fit its device.

Invariant (house contract 3): how the groups are cut into micro-batches changes nothing but
rounding, because every rollout's weight, 1/R of the batch, is fixed before they are cut. Proved in
`tests/grpo/test_learner.py`. May import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from memograd.errors import MemogradError
from memograd.grpo.batch import Experience
from memograd.grpo.loss import grpo_loss, rollout_weights
from memograd.policy.protocol import Policy
from memograd.policy.token_logprobs import BranchLogprobs


@dataclass(frozen=True)
class Objective:
    """The coefficients of the loss and of the step."""

    epsilon: float
    beta: float
    entropy_coef: float
    temperature: float
    num_iterations: int
    max_grad_norm: float


@dataclass(frozen=True)
class Update:
    """What one call of `learn` measured: means over its passes, over informative groups."""

    loss: float
    kl: float | None
    entropy: float | None
    clip_fraction: float
    grad_norm: float
    sampler_gap: float | None
    """Largest |learner - sampler| log-probability (nats) before the first pass: rounding only."""


def learn(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    experience: Experience,
    objective: Objective,
) -> Update:
    """Move the policy by `num_iterations` optimiser steps on `experience`.

    Raises `MemogradError` naming the step's scenarios if the gradient is not finite; the weights
    are then as they were.
    """
    informative = np.flatnonzero(experience.advantages.informative_B)
    if informative.size == 0:
        return Update(
            loss=0.0, kl=None, entropy=None, clip_fraction=0.0, grad_norm=0.0, sampler_gap=None
        )
    trees = [experience.sampled[index].tree for index in informative]
    pieces = [
        _Piece(policy, experience, informative[piece], objective)
        for piece in policy.microbatches(trees)
    ]
    passes = []
    for _ in range(objective.num_iterations):
        parts = [piece.backward() for piece in pieces]
        grad_norm = float(
            torch.nn.utils.clip_grad_norm_(policy.parameters(), objective.max_grad_norm)
        )
        if not np.isfinite(grad_norm):
            optimizer.zero_grad(set_to_none=True)
            names = ", ".join(experience.groups[index].scenario.id for index in informative)
            raise MemogradError(f"the gradient is not finite; the groups of this step are {names}")
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        passes.append((*np.sum(parts, axis=0), grad_norm))
    loss, kl, entropy, clipped, grad_norm = np.mean(passes, axis=0)
    share = informative.size / len(experience.groups)
    return Update(
        loss=float(loss),
        kl=float(kl / share),
        entropy=float(entropy / share),
        clip_fraction=float(clipped / share),
        grad_norm=float(grad_norm),
        sampler_gap=max(piece.first_gap or 0.0 for piece in pieces),
    )


class _Piece:
    """One micro-batch: its trees and the tensors that stay the same over all passes."""

    def __init__(
        self,
        policy: Policy,
        experience: Experience,
        groups: Sequence[int] | np.ndarray,
        objective: Objective,
    ) -> None:
        self._policy = policy
        self._objective = objective
        self._trees = [experience.sampled[index].tree for index in groups]
        self._share = 1 / len(experience.rollouts)
        old = [logprobs for index in groups for logprobs in experience.sampled[index].logprobs]
        self._old = [torch.from_numpy(logprobs) for logprobs in old]
        advantages_BG = experience.advantages.advantages_BG[np.asarray(groups)]
        self._advantages_R = torch.from_numpy(advantages_BG.flatten()).float()
        self.first_gap: float | None = None
        # Also at beta 0: how far the policy has moved is worth a forward pass in every log.
        self._reference_RT = policy.reference_logprobs(
            self._trees, temperature=objective.temperature
        ).logprobs_RT

    def backward(self) -> tuple[float, float, float, float]:
        """Add this piece's gradient; returns its loss, KL, entropy and clip fraction."""
        objective = self._objective
        scores = self._policy.logprobs(
            self._trees,
            temperature=objective.temperature,
            entropy_gradient=objective.entropy_coef > 0,
        )
        old_RT = _pad(self._old, scores)
        if self.first_gap is None:
            self.first_gap = float((scores.logprobs_RT.detach() - old_RT).abs().max())
        parts = grpo_loss(
            logprobs_RT=scores.logprobs_RT,
            old_logprobs_RT=old_RT,
            reference_logprobs_RT=self._reference_RT,
            entropies_RT=scores.entropies_RT,
            advantages_R=self._advantages_R.to(scores.logprobs_RT.device),
            weights_RT=rollout_weights(scores.mask_RT, self._share),
            epsilon=objective.epsilon,
            beta=objective.beta,
            entropy_coef=objective.entropy_coef,
        )
        parts.loss.backward()
        return (
            float(parts.loss.detach()),
            float(parts.kl),
            float(parts.entropy),
            float(parts.clip_fraction),
        )


def _pad(rows: Sequence[torch.Tensor], scores: BranchLogprobs) -> torch.Tensor:
    """Rows of different lengths as one tensor shaped like `scores`, zero where no token is."""
    padded = torch.zeros(scores.logprobs_RT.shape, dtype=torch.float32)
    for row, values in enumerate(rows):
        padded[row, : len(values)] = values
    return padded.to(scores.logprobs_RT.device)
