"""The replay buffer in a checkpoint: plain values and tensors, nothing that runs code on loading.

A group is written down with all that learning computes from (token trees, log-probabilities,
rewards) and of its rollouts what is shown when something goes wrong; their chat messages, which
only rewards read, are left out. Its scenario is named by id: a run that goes on has the same ones
(`memograd.grpo.data_fingerprint`).

Invariant: `kept_groups(plain_groups(kept), scenarios)` equals `kept` to the bit, messages aside.
Proved in `tests/grpo/test_replay_state.py`. May import experience, replay, rollout, torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from memograd.grpo.advantage import GroupAdvantages
from memograd.grpo.experience import Experience
from memograd.grpo.replay import Kept
from memograd.rewards import RewardTable
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Group, Rollout, Scenario, Turn


def plain_groups(kept: Sequence[Kept]) -> list[dict[str, Any]]:
    """The buffer as `torch.save` writes it and `torch.load(weights_only=True)` reads it."""
    return [
        {"step": one.step, "uses": one.uses, **_plain_experience(one.experience)} for one in kept
    ]


def kept_groups(plain: Sequence[dict[str, Any]], scenarios: Sequence[Scenario]) -> list[Kept]:
    """The buffer that `plain` was made of; `scenarios` are those that the run trains on."""
    by_id = {scenario.id: scenario for scenario in scenarios}
    return [
        Kept(_experience(one, by_id[one["scenario"]]), step=one["step"], uses=one["uses"])
        for one in plain
    ]


def _plain_experience(experience: Experience) -> dict[str, Any]:
    (group,) = experience.groups
    return {
        "scenario": group.scenario.id,
        "rollouts": [_plain_rollout(rollout) for rollout in group.rollouts],
        "trees": [_plain_tree(tree) for tree in experience.trees],
        "rollouts_of_tree": experience.rollouts_of_tree,
        "old_logprobs": [_tensors(rows) for rows in experience.old_logprobs],
        "total": experience.rewards.total,
        "by_name": experience.rewards.by_name,
        "compared": torch.from_numpy(experience.compared_K),
        "advantages": torch.from_numpy(experience.advantages.advantages_K),
        "varied": torch.from_numpy(experience.advantages.varied_B),
    }


def _experience(plain: dict[str, Any], scenario: Scenario) -> Experience:
    rollouts = tuple(_rollout(one) for one in plain["rollouts"])
    return Experience(
        groups=(Group(scenario, rollouts),),
        trees=tuple(_tree(one) for one in plain["trees"]),
        rollouts_of_tree=plain["rollouts_of_tree"],
        old_logprobs=tuple(_arrays(rows) for rows in plain["old_logprobs"]),
        rewards=RewardTable(total=plain["total"], by_name=plain["by_name"]),
        compared_K=plain["compared"].numpy(),
        advantages=GroupAdvantages(plain["advantages"].numpy(), plain["varied"].numpy()),
    )


def _plain_tree(tree: TokenTree) -> dict[str, Any]:
    return {
        "trunk": tree.trunk,
        "tokens": torch.from_numpy(tree.tokens_N),
        "parents": torch.from_numpy(tree.parents_N),
        "branches": _tensors(tree.branches),
        "scored": _tensors(tree.scored),
    }


def _tree(plain: dict[str, Any]) -> TokenTree:
    return TokenTree(
        trunk=plain["trunk"],
        tokens_N=plain["tokens"].numpy(),
        parents_N=plain["parents"].numpy(),
        branches=_arrays(plain["branches"]),
        scored=_arrays(plain["scored"]),
    )


def _plain_rollout(rollout: Rollout) -> dict[str, Any]:
    turns = [
        {
            "observation_ids": turn.observation_ids,
            "action_ids": turn.action_ids,
            "logprobs": torch.from_numpy(turn.logprobs),
            "stop_reason": turn.stop_reason,
            "starts_row": turn.starts_row,
            "reused_tokens": turn.reused_tokens,
        }
        for turn in rollout.turns
    ]
    return {
        "id": rollout.id,
        "turns": turns,
        "completion": rollout.completion,
        "reward": rollout.reward,
        "stopped_by": rollout.stopped_by,
    }


def _rollout(plain: dict[str, Any]) -> Rollout:
    turns = tuple(Turn(**{**turn, "logprobs": turn["logprobs"].numpy()}) for turn in plain["turns"])
    return Rollout(**{**plain, "turns": turns})


def _tensors(arrays: Sequence[np.ndarray]) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in arrays]


def _arrays(tensors: Sequence[torch.Tensor]) -> tuple[np.ndarray, ...]:
    return tuple(tensor.numpy() for tensor in tensors)
