"""Replay: groups that taught something are learned from again, while they are young.

Sampling costs most of a step, and a group is thrown away after it was learned from once. Here those
whose rewards differed go into a bounded buffer, from which every later step takes a few and adds
them to its fresh groups, which stay the main part of it. They come back with the log-probabilities
of the policy that sampled them as old ones, so their ratios are not 1 and are clipped as usual;
because the policy moves away, what is older than some steps is dropped. (Replay with an age limit
beside fresh rollouts: Yoo et al. 2026, arXiv:2606.04560, who choose rollouts by their advantage;
here a group stays whole, since its rollouts are each other's baseline, and the draw is uniform.)

The buffer holds whole batches of all ranks, like everything that a batch is computed from; each
rank then does its share of the groups, fresh and replayed.

Invariants: never more groups than the capacity, none older than the age limit, none more often than
allowed, none whose rewards were all equal; what is drawn is a pure function of (seed, step,
buffer); a drawn group's tokens, log-probabilities and rewards are those it had.

The replay buffer in a checkpoint: plain values and tensors, nothing that runs code on loading.

A group is written down with all that learning computes from (token trees, log-probabilities,
rewards) and of its rollouts what is shown when something goes wrong; their chat messages, which
only rewards read, are left out. Its scenario is named by id: a run that goes on has the same ones
(`memograd.grpo.resume`).

Invariant: `kept_groups(plain_groups(kept), scenarios)` equals `kept` to the bit, messages aside.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from memograd.grpo.advantage import GroupAdvantages
from memograd.grpo.experience import Experience, join
from memograd.rewards import RewardTable
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Group, Rollout, Scenario, Turn, VersionSpan


def plain_groups(kept: Sequence[KeptGroup]) -> list[dict[str, Any]]:
    """The buffer as `torch.save` writes it and `torch.load(weights_only=True)` reads it."""
    return [
        {"step": one.step, "uses": one.uses, **_plain_experience(one.experience)} for one in kept
    ]


def kept_groups(plain: Sequence[dict[str, Any]], scenarios: Sequence[Scenario]) -> list[KeptGroup]:
    """The buffer that `plain` was made of; `scenarios` are those that the run trains on."""
    by_id = {scenario.id: scenario for scenario in scenarios}
    return [
        KeptGroup(_experience(one, by_id[one["scenario"]]), step=one["step"], uses=one["uses"])
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
        "allowed": dict(tree.allowed),
    }


def _tree(plain: dict[str, Any]) -> TokenTree:
    return TokenTree(
        trunk=plain["trunk"],
        tokens_N=plain["tokens"].numpy(),
        parents_N=plain["parents"].numpy(),
        branches=_arrays(plain["branches"]),
        scored=_arrays(plain["scored"]),
        allowed=plain.get("allowed", {}),
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
            "allowed": turn.allowed,
            "versions": tuple((span.version, span.tokens) for span in turn.versions),
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
    turns = tuple(
        Turn(
            **{
                **turn,
                "logprobs": turn["logprobs"].numpy(),
                "versions": tuple(VersionSpan(*span) for span in turn.get("versions", ())),
            }
        )
        for turn in plain["turns"]
    )
    return Rollout(**{**plain, "turns": turns})


def _tensors(arrays: Sequence[np.ndarray]) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in arrays]


def _arrays(tensors: Sequence[torch.Tensor]) -> tuple[np.ndarray, ...]:
    return tuple(tensor.numpy() for tensor in tensors)


@dataclass(frozen=True)
class KeptGroup:
    """One group as an experience of its own, the step that sampled it, and how often it was
    replayed."""

    experience: Experience
    step: int
    uses: int = 0


class Replay:
    """The buffer. `capacity` is in groups, `max_age` in steps, `max_uses` for each group."""

    def __init__(self, *, capacity: int, max_age: int, max_uses: int) -> None:
        self._capacity = capacity
        self._max_age = max_age
        self._max_uses = max_uses
        self._kept: tuple[KeptGroup, ...] = ()

    def draw(self, count: int, *, step: int, seed: int) -> list[KeptGroup]:
        """Up to `count` different groups of earlier steps, as they are now, oldest first."""
        self._kept = tuple(kept for kept in self._kept if step - kept.step <= self._max_age)
        places = range(len(self._kept))
        generator = random.Random(f"{seed}/{step}/replay")
        drawn = sorted(generator.sample(places, min(count, len(places))))
        found = [self._kept[place] for place in drawn]
        used = [
            replace(kept, uses=kept.uses + (place in drawn))
            for place, kept in enumerate(self._kept)
        ]
        self._kept = tuple(kept for kept in used if kept.uses < self._max_uses)
        return found

    def add(self, experience: Experience, *, step: int, advantage: str) -> None:
        """Keep the groups of a step whose rewards differ; the oldest make room for them."""
        fresh = [
            KeptGroup(experience.single(group, advantage), step)
            for group, varied in enumerate(experience.advantages.varied_B)
            if varied
        ]
        self._kept = (*self._kept, *fresh)[-self._capacity :]

    def state(self) -> tuple[KeptGroup, ...]:
        """The whole buffer, oldest first; immutable."""
        return self._kept

    def restore(self, state: Sequence[KeptGroup]) -> None:
        """Hold what `state` holds, and nothing else."""
        self._kept = tuple(state)


def with_replayed(fresh: Experience, replayed: Sequence[KeptGroup], advantage: str) -> Experience:
    """What a step learns from: its own groups, and replayed ones after them."""
    if not replayed:
        return fresh
    joined = join([fresh, *(kept.experience for kept in replayed)], advantage)
    return replace(joined, replayed=len(replayed))
