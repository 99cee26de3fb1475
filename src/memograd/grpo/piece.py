"""One micro-batch of the gradient step: its rows, and the tensors that stay the same over passes.

Invariant: only tokens that the policy itself chose (`mask_RT` of its scores) meet the loss;
whatever the sampler reported for others is ignored. Proved in `tests/grpo/test_learner.py`. May
import torch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from memograd.grpo.aggregation import token_weights
from memograd.grpo.experience import Experience
from memograd.grpo.kl import token_kl
from memograd.grpo.loss import grpo_loss
from memograd.grpo.objective import Objective
from memograd.grpo.ratio import importance_weights
from memograd.policy.protocol import Policy


class Piece:
    """The trees with the indices `trees`; old and reference log-probabilities are as on creation.

    `sampler_gap` is the largest |learner - sampler| log-probability of the first scoring (nats).
    """

    def __init__(
        self,
        policy: Policy,
        experience: Experience,
        trees: Sequence[int],
        shares_K: np.ndarray,
        objective: Objective,
    ) -> None:
        self._policy = policy
        self._objective = objective
        self._trees = [experience.trees[tree] for tree in trees]
        self._rollouts_R = torch.tensor(
            [rollout for tree in trees for rollout in experience.rollouts_of_tree[tree]]
        ).to(policy.device)
        # Also at beta 0: how far the policy has moved is worth a forward pass in every log.
        reference = policy.reference_logprobs(self._trees, temperature=objective.temperature)
        self._reference_RT = reference.logprobs_RT
        self._mask_RT = reference.mask_RT
        sampler = [row for tree in trees for row in experience.old_logprobs[tree]]
        self._old_RT = _padded(sampler, self._mask_RT)
        self._counts_K = torch.from_numpy(experience.scored_K).to(policy.device)
        self._weights_RT = token_weights(
            self._mask_RT,
            rollouts_R=self._rollouts_R,
            shares_K=torch.from_numpy(shares_K).to(policy.device),
            counts_K=self._counts_K,
        )
        self.sampler_gap = -1.0
        self._importance_RT: torch.Tensor | None = None
        if objective.importance_cap is not None:
            with torch.no_grad():
                now = policy.logprobs(self._trees, temperature=objective.temperature)
            self._measure_gap(now.logprobs_RT)
            self._importance_RT = importance_weights(
                now.logprobs_RT, self._old_RT, cap=objective.importance_cap
            )
            self._old_RT = now.logprobs_RT

    def kl_penalties(self) -> np.ndarray:
        """Each rollout's KL to the reference when it was sampled [K], summed over its tokens here.

        0 for rollouts that have no row here.
        """
        kl_RT = token_kl(self._objective.kl, self._old_RT, self._reference_RT) * self._mask_RT
        penalties_K = torch.zeros(len(self._counts_K), dtype=torch.float64, device=kl_RT.device)
        penalties_K.index_add_(0, self._rollouts_R, kl_RT.sum(dim=1).double())
        return penalties_K.cpu().numpy()

    def backward(self, advantages_K: torch.Tensor) -> list[float]:
        """Add this piece's gradient; returns its loss, KL, entropy, clip fraction and weight."""
        objective = self._objective
        scores = self._policy.logprobs(
            self._trees,
            temperature=objective.temperature,
            entropy_gradient=objective.entropy_coef > 0,
        )
        if self.sampler_gap < 0:
            self._measure_gap(scores.logprobs_RT.detach())
        parts = grpo_loss(
            logprobs_RT=scores.logprobs_RT,
            old_logprobs_RT=self._old_RT,
            reference_logprobs_RT=self._reference_RT,
            entropies_RT=scores.entropies_RT,
            advantages_R=advantages_K.to(self._rollouts_R.device)[self._rollouts_R],
            weights_RT=self._weights_RT,
            rollouts_R=self._rollouts_R,
            ratio=objective.ratio,
            epsilon=objective.epsilon,
            epsilon_high=objective.epsilon_high,
            beta=objective.loss_beta,
            kl=objective.kl,
            kl_correction=objective.kl_correction,
            entropy_coef=objective.entropy_coef,
            importance_RT=self._importance_RT,
        )
        parts.loss.backward()
        measured = [parts.loss, parts.kl, parts.entropy, parts.clip_fraction]
        return [*(float(part.detach()) for part in measured), float(self._weights_RT.sum())]

    def _measure_gap(self, logprobs_RT: torch.Tensor) -> None:
        gap_RT = (logprobs_RT - self._old_RT).abs()
        self.sampler_gap = float(gap_RT.max()) if gap_RT.numel() else 0.0


def _padded(rows: Sequence[np.ndarray], mask_RT: torch.Tensor) -> torch.Tensor:
    """Rows of different lengths as one tensor shaped like `mask_RT`, zero where it is False."""
    padded_RT = torch.zeros(mask_RT.shape, dtype=torch.float32)
    for row, values in enumerate(rows):
        padded_RT[row, : len(values)] = torch.from_numpy(values)
    return padded_RT.to(mask_RT.device).masked_fill(~mask_RT, 0.0)
