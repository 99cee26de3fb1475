"""One micro-batch of the gradient step: its rows, and the tensors that stay the same over passes.

Where the batch was sampled by the weights that learn from it, the old policy is the learner itself
on its first pass: the sampler's log-probabilities are the same numbers but for rounding (and for
the adapter's dropout), and bf16 rounds by more than a sequence's or a product's ratio may move, so
measured against them half of the tokens would be clipped before anything has moved.

Where another engine samples, or an older version did, `memograd.grpo.sampler_gap` says what becomes
of a token: it is compared with the learner's score under the version that drew it, and that score
is the old policy's.

Invariants: only tokens that the policy itself chose (`mask_RT` of its scores) meet the loss;
whatever the sampler reported for others is ignored. The first pass over what these very weights
sampled clips nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from memograd.errors import MemogradError
from memograd.grpo.advantage import Tokens, value_losses
from memograd.grpo.experience import Experience
from memograd.grpo.loss import Objective, grpo_loss, importance_weights, token_kl, token_weights
from memograd.grpo.sampler_gap import GapLimits, SamplerGaps, climb
from memograd.policy.protocol import Policy
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import UNSAID


class Piece:
    """The trees with the indices `trees`; old and reference log-probabilities are as on creation.

    `gaps` are |learner - sampler| log-probabilities of the first scoring (nats), replayed groups
    aside; None before it.
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
        self._rows = [
            (tree, branch)
            for tree in trees
            for branch in range(len(experience.trees[tree].branches))
        ]
        self._rollouts_R = torch.tensor(
            [rollout for tree in trees for rollout in experience.rollouts_of_tree[tree]]
        ).to(policy.device)
        self._mask_RT = _scored(self._trees).to(policy.device)
        # Also at beta 0: how far the policy has moved is worth a forward pass in every log.
        self._reference_RT: torch.Tensor | None = None
        if policy.has_reference:
            reference = policy.reference_logprobs(self._trees, temperature=objective.temperature)
            self._reference_RT = reference.logprobs_RT
        sampler = [row for tree in trees for row in experience.old_logprobs[tree]]
        self._old_RT = _padded(sampler, self._mask_RT)
        self._counts_K = torch.from_numpy(experience.scored_K).to(policy.device)
        self._weights_RT = token_weights(
            self._mask_RT,
            rollouts_R=self._rollouts_R,
            shares_K=torch.from_numpy(shares_K).to(policy.device),
            counts_K=self._counts_K,
        )
        # Of older policies' tokens the gap would say how far the policy has moved since.
        self._fresh_R = torch.from_numpy(experience.fresh_K).to(policy.device)[self._rollouts_R]
        self.gaps: SamplerGaps | None = None
        self._on_policy = experience.on_policy
        self._drawn = None
        if objective.gap is not None:
            self._drawn = _DrawnVersions(
                policy, experience, trees, self._mask_RT, temperature=objective.temperature
            )
        self._importance_RT: torch.Tensor | None = None
        self._advantages_RT = torch.zeros_like(self._weights_RT)
        self._old_values_RT = self._targets_RT = torch.zeros_like(self._weights_RT)
        # With several optimiser steps a pass, the first pass over most pieces comes after a step.
        moves_before = objective.minibatches > 1
        if objective.importance_cap is None and not objective.has_values and not moves_before:
            return
        with torch.no_grad():
            now = policy.logprobs(self._trees, temperature=objective.temperature)
        if objective.has_values:
            self._old_values_RT = _values_of(now).detach()
        if objective.gap is not None or (moves_before and objective.importance_cap is None):
            self._take_as_old(now.logprobs_RT)
        elif objective.importance_cap is not None:
            self._measure_gap(now.logprobs_RT)
            self._importance_RT = importance_weights(
                now.logprobs_RT, self._old_RT, cap=objective.importance_cap
            )
            self._old_RT = now.logprobs_RT

    def kl_penalties(self) -> np.ndarray:
        """Each rollout's KL to the reference when it was sampled [K], summed over its tokens here.

        0 for rollouts that have no row here.
        """
        kl_RT = self._kl_when_sampled()
        penalties_K = torch.zeros(len(self._counts_K), dtype=torch.float64, device=kl_RT.device)
        penalties_K.index_add_(0, self._rollouts_R, kl_RT.sum(dim=1).double())
        return penalties_K.cpu().numpy()

    def tokens(self) -> Tokens:
        """The scored tokens, row by row, with what a value head says of them."""
        rows_N, _ = torch.nonzero(self._mask_RT, as_tuple=True)
        trees_R, branches_R = np.array(self._rows, dtype=np.int64).reshape(-1, 2).T
        rows = rows_N.cpu().numpy()
        return Tokens(
            rollouts_N=self._rollouts_R[rows_N].cpu().numpy(),
            trees_N=trees_R[rows],
            branches_N=branches_R[rows],
            values_N=self._old_values_RT[self._mask_RT].double().cpu().numpy(),
            kl_N=self._kl_when_sampled()[self._mask_RT].double().cpu().numpy(),
        )

    def compare(self, advantages_K: np.ndarray) -> None:
        """Every token has the advantage of its rollout from here on."""
        advantages = torch.from_numpy(advantages_K).float().to(self._rollouts_R.device)
        self._advantages_RT = advantages[self._rollouts_R][:, None]

    def judge(self, advantages_N: np.ndarray, targets_N: np.ndarray) -> None:
        """Every token has its own advantage, and its value a target, in the order of `tokens`."""
        self._advantages_RT = self._spread(advantages_N)
        self._targets_RT = self._spread(targets_N)

    def backward(self) -> list[float]:
        """Add this piece's gradient; returns its loss, KL, entropy, clip fraction, value loss and
        weight."""
        objective = self._objective
        scores = self._policy.logprobs(
            self._trees,
            temperature=objective.temperature,
            entropy_gradient=objective.entropy_coef > 0,
        )
        if self.gaps is None:
            self._take_as_old(scores.logprobs_RT.detach())
        parts = grpo_loss(
            objective.terms,
            logprobs_RT=scores.logprobs_RT,
            old_logprobs_RT=self._old_RT,
            reference_logprobs_RT=self._reference_RT,
            entropies_RT=scores.entropies_RT,
            advantages_RT=self._advantages_RT,
            weights_RT=self._weights_RT,
            rollouts_R=self._rollouts_R,
            importance_RT=self._importance_RT,
        )
        loss, value_loss = parts.loss, torch.zeros_like(parts.loss)
        if objective.has_values:
            value_losses_RT = value_losses(
                _values_of(scores),
                self._old_values_RT,
                self._targets_RT,
                epsilon=objective.value_epsilon,
            )
            value_loss = (value_losses_RT * self._weights_RT).sum()
            loss = loss + objective.value_coef * value_loss
        loss.backward()
        measured = [loss, parts.kl, parts.entropy, parts.clip_fraction, value_loss]
        return [*(float(part.detach()) for part in measured), float(self._weights_RT.sum())]

    def _take_as_old(self, now_RT: torch.Tensor) -> None:
        """The learner's own scores before it moved are the old policy's, where it sampled."""
        if self._objective.gap is not None:
            self._climb(now_RT, self._objective.gap)
            return
        self._measure_gap(now_RT)
        if self._on_policy:
            self._old_RT = torch.where(self._fresh_R[:, None], now_RT, self._old_RT)

    def _kl_when_sampled(self) -> torch.Tensor:
        """Every token's KL to the reference [R, T] when it was sampled; 0 without one, which no
        term of the loss then asks for."""
        if self._reference_RT is None:
            return torch.zeros_like(self._weights_RT)
        return token_kl(self._objective.kl, self._old_RT, self._reference_RT) * self._mask_RT

    def _spread(self, numbers_N: np.ndarray) -> torch.Tensor:
        """Numbers of the scored tokens, row by row, at their places [R, T]."""
        spread_RT = torch.zeros_like(self._weights_RT)
        numbers = torch.from_numpy(numbers_N).to(spread_RT)
        return spread_RT.masked_scatter(self._mask_RT, numbers)

    def _climb(self, now_RT: torch.Tensor, limits: GapLimits) -> None:
        """Compare every fresh token with the version that drew it, and weigh it accordingly."""
        assert self._drawn is not None
        learner_RT, known_RT = self._drawn.scores(now_RT)
        fresh_RT = self._mask_RT & self._fresh_R[:, None]
        known_RT = known_RT & fresh_RT
        if self._objective.importance_cap is not None:
            limits = replace(limits, cap=self._objective.importance_cap)
        rungs = climb(learner_RT, self._old_RT, known_RT, limits)
        gaps = (learner_RT - self._old_RT).abs()[known_RT].float().cpu().numpy()
        self.gaps = SamplerGaps(
            gaps,
            corrected=int((gaps > limits.exact).sum()),
            masked=int(rungs.masked_R.sum()),
            unknown=int((fresh_RT & ~known_RT).sum()),
        )
        self._importance_RT = rungs.importance_RT
        self._weights_RT = self._weights_RT * ~rungs.masked_R[:, None]
        self._old_RT = torch.where(known_RT, learner_RT, self._old_RT)

    def _measure_gap(self, logprobs_RT: torch.Tensor) -> None:
        fresh_RT = self._mask_RT & self._fresh_R[:, None]
        gaps = (logprobs_RT - self._old_RT).abs()[fresh_RT].float().cpu().numpy()
        self.gaps = SamplerGaps(gaps)


class _DrawnVersions:
    """Which version drew which token of a piece, and what the learner says of it as that version.

    Older versions are scored on creation: later, a forward pass with gradients may be waiting for
    its backward pass, and weights must not be exchanged under it.
    """

    def __init__(
        self,
        policy: Policy,
        experience: Experience,
        trees: Sequence[int],
        mask_RT: torch.Tensor,
        *,
        temperature: float,
    ) -> None:
        rows = [row for tree in trees for row in experience.versions[tree]]
        versions_RT = torch.full(mask_RT.shape, UNSAID)
        for place, row in enumerate(rows):
            versions_RT[place, : len(row)] = torch.from_numpy(row)
        versions_RT = versions_RT.to(mask_RT.device)
        self._newest_RT = (versions_RT == policy.version) | (versions_RT == UNSAID)
        self._known_RT = self._newest_RT
        self._older_RT = torch.zeros(mask_RT.shape, device=mask_RT.device)
        chosen = [experience.trees[tree] for tree in trees]
        for version in versions_RT[~self._newest_RT].unique().tolist():
            older = policy.logprobs_of(version, chosen, temperature=temperature)
            if older is not None:
                own_RT = versions_RT == version
                self._older_RT = torch.where(own_RT, older.logprobs_RT, self._older_RT)
                self._known_RT = self._known_RT | own_RT

    def scores(self, now_RT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The learner's score of each token under the version that drew it [R, T], and where that
        version is known [R, T]; `now_RT` are those of the newest."""
        return torch.where(self._newest_RT, now_RT, self._older_RT), self._known_RT


def _scored(trees: Sequence[TokenTree]) -> torch.Tensor:
    """Which tokens of the branches, tree after tree, are learnt from [R, T]."""
    scored = [one for tree in trees for one in tree.scored]
    mask_RT = torch.zeros((len(scored), max(map(len, scored), default=0)), dtype=torch.bool)
    for row, one in enumerate(scored):
        mask_RT[row, : len(one)] = torch.from_numpy(np.asarray(one))
    return mask_RT


def _values_of(scores: BranchLogprobs) -> torch.Tensor:
    if scores.values_RT is None:
        raise MemogradError("advantage=gae needs a policy with a value head, and this one has none")
    return scores.values_RT


def _padded(rows: Sequence[np.ndarray], mask_RT: torch.Tensor) -> torch.Tensor:
    """Rows of different lengths as one tensor shaped like `mask_RT`, zero where it is False."""
    padded_RT = torch.zeros(mask_RT.shape, dtype=torch.float32)
    for row, values in enumerate(rows):
        padded_RT[row, : len(values)] = torch.from_numpy(values)
    return padded_RT.to(mask_RT.device).masked_fill(~mask_RT, 0.0)
