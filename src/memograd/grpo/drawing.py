"""How a step's rollouts come about: the seam between the trainer and what is trained on.

The trainer hands scenarios to a `Drawing` and gets finished rollouts with their token rows back; it
neither knows nor asks whether they were answers or whole episodes. `SingleTurn` draws one answer a
rollout, `Episodes` lets environments answer back until they are over or a limit stops them.

Invariants: what is drawn depends on the scenarios, the policy and the generator alone, so a resumed
run draws what the uninterrupted one would have drawn; `old_logprobs` are those of the very tokens
in `trees`. Proved in `tests/grpo/test_drawing.py`. May import rollout, policy protocol, batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from memograd.grpo.batch import answer_rows, rollout_ids, sample_groups
from memograd.policy.protocol import Policy
from memograd.rollout.branches import grow_trees
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.episode import Task
from memograd.rollout.episode_metrics import episode_metrics
from memograd.rollout.limits import Limits
from memograd.rollout.lockstep import run_in_lockstep
from memograd.rollout.prefill_metrics import prefill_metrics
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Group, Rollout, Scenario

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Attempts:
    """Groups of finished rollouts and their token rows, numbered as in `Experience`."""

    groups: tuple[Group, ...]
    trees: tuple[TokenTree, ...]
    rollouts_of_tree: tuple[tuple[int, ...], ...]
    old_logprobs: tuple[tuple[np.ndarray, ...], ...]


class Drawing(Protocol):
    """Lets a policy attempt scenarios."""

    def __call__(
        self,
        scenarios: Sequence[Scenario],
        *,
        step: int,
        attempt: int,
        temperature: float,
        generator: torch.Generator | None,
        first: int = 0,
        sizes: Sequence[int] | None = None,
    ) -> Attempts:
        """A group of rollouts for each scenario, of one size or of `sizes` [B]; `step`, `attempt`
        and `first`, the number of the first group, are for their ids."""
        ...

    def metrics(self, rollouts: Sequence[Rollout]) -> dict[str, Any]:
        """What a line of `metrics.jsonl` says of a step's rollouts beside the rest."""
        ...


class SingleTurn:
    """One answer a rollout, as text tasks and memory questions have it."""

    def __init__(self, policy: Policy, *, num_generations: int, max_completion_length: int) -> None:
        self._policy = policy
        self._num_generations = num_generations
        self._max_completion_length = max_completion_length

    def __call__(
        self,
        scenarios: Sequence[Scenario],
        *,
        step: int,
        attempt: int,
        temperature: float,
        generator: torch.Generator | None,
        first: int = 0,
        sizes: Sequence[int] | None = None,
    ) -> Attempts:
        """Every prompt is computed once for all of its answers."""
        groups, sampled = sample_groups(
            self._policy,
            scenarios,
            step=step,
            attempt=attempt,
            first=first,
            sizes=sizes or [self._num_generations] * len(scenarios),
            temperature=temperature,
            max_completion_length=self._max_completion_length,
            generator=generator,
        )
        return Attempts(
            groups=tuple(groups),
            trees=tuple(group.tree for group in sampled),
            rollouts_of_tree=answer_rows(groups),
            old_logprobs=tuple(group.logprobs for group in sampled),
        )

    def metrics(self, rollouts: Sequence[Rollout]) -> dict[str, Any]:
        """Nothing beside the rest."""
        return {}


class Episodes:
    """Episodes of a task, all of a step in lockstep; every rollout has a fresh environment.

    What turns leave behind in the model's layers serves later turns of the same call only, so the
    weights are the same for all of it (`Policy.in_turns`).
    `max_completion_length` bounds one action. Raises what `run_in_lockstep` raises.
    """

    def __init__(
        self,
        policy: Policy,
        chat: ChatIds,
        task: Task,
        *,
        limits: Limits,
        num_generations: int,
        max_completion_length: int,
    ) -> None:
        self._policy = policy
        self._chat = chat
        self._task = task
        self._limits = limits
        self._num_generations = num_generations
        self._max_completion_length = max_completion_length

    def __call__(
        self,
        scenarios: Sequence[Scenario],
        *,
        step: int,
        attempt: int,
        temperature: float,
        generator: torch.Generator | None,
        first: int = 0,
        sizes: Sequence[int] | None = None,
    ) -> Attempts:
        """Play `num_generations` episodes of each scenario, or `sizes`, to their ends."""
        sizes = sizes or [self._num_generations] * len(scenarios)
        played = run_in_lockstep(
            self._policy.in_turns(),
            self._chat,
            [
                self._task.episodes(scenario, size)
                for scenario, size in zip(scenarios, sizes, strict=True)
            ],
            rollout_ids=rollout_ids(scenarios, sizes, step=step, attempt=attempt, first=first),
            limits=self._limits,
            temperature=temperature,
            max_completion_length=self._max_completion_length,
            generator=generator,
        )
        rows = grow_trees(played)
        return Attempts(
            groups=tuple(
                Group(scenario, rollouts)
                for scenario, rollouts in zip(scenarios, played, strict=True)
            ),
            trees=rows.trees,
            rollouts_of_tree=rows.rollouts_of_tree,
            old_logprobs=rows.old_logprobs,
        )

    def metrics(self, rollouts: Sequence[Rollout]) -> dict[str, Any]:
        """Stop reasons, turns, rows, failed calls, mismatches; what prompts cost."""
        return {**episode_metrics(rollouts), **prefill_metrics(rollouts)}
