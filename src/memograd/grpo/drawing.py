"""How a step's rollouts come about: the seam between the trainer and what is trained on.

The trainer hands scenarios to a `Drawing` and gets finished rollouts with their token rows back; it
neither knows nor asks whether they were answers or whole episodes. `SingleTurn` draws one answer a
rollout, `Episodes` lets environments answer back until they are over or a limit stops them.

Three things happen around it. `draw_by_ranks`: each of several ranks attempts its share of a step's
scenarios, and all get all of it. `draw_informative`: a group whose rollouts all earned the same has
no advantages and teaches nothing, so it is replaced by a fresh one, for a limited number of rounds
(dynamic sampling; DAPO, arXiv:2503.14476, samples on without a limit). Dull groups that are left
then stay where they are, or their replacements do where these are of another size. `DrawnAhead`: a
thread draws later steps from the newest weights while this one is learnt from, so that what is
learnt from at step k was drawn by the weights of up to `steps` steps before; the learner corrects
for that (`memograd.grpo.sampler_gap`).

Invariants: what is drawn depends on the scenarios, the policy and the generator alone, so a resumed
run draws what the uninterrupted one would have drawn; `old_logprobs` are those of the very tokens
in `trees`; the batch is in the order of the scenarios, as if one process had drawn it, with as many
groups and rollouts as were asked for, and a group that taught something keeps its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from memograd.grpo.batch import Draw, answer_rows, rollout_ids, sample_groups
from memograd.grpo.distributed import World
from memograd.grpo.experience import Experience, join
from memograd.policy.protocol import Policy
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.episode import EpisodeTask, Limits, episode_metrics, prefill_metrics
from memograd.rollout.lockstep import run_in_lockstep
from memograd.rollout.token_tree import TokenTree, grow_trees
from memograd.rollout.types import Group, Rollout, Scenario

T = TypeVar("T")


@dataclass(frozen=True)
class DrawnBatch:
    """The batch, how many groups were drawn for it in all, and how many of those were dull."""

    experience: Experience
    groups: int
    dull: int


@dataclass(frozen=True)
class Attempts:
    """Groups of finished rollouts and their token rows, numbered as in `Experience`."""

    groups: tuple[Group, ...]
    trees: tuple[TokenTree, ...]
    rollouts_of_tree: tuple[tuple[int, ...], ...]
    old_logprobs: tuple[tuple[np.ndarray, ...], ...]


class Drawing(Protocol):
    """Lets a policy attempt scenarios."""

    def __call__(self, scenarios: Sequence[Scenario], draw: Draw) -> Attempts:
        """A group of rollouts for each scenario."""
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

    def __call__(self, scenarios: Sequence[Scenario], draw: Draw) -> Attempts:
        """Every prompt is computed once for all of its answers."""
        groups, sampled = sample_groups(
            self._policy,
            scenarios,
            draw.sizes_of(scenarios, self._num_generations),
            draw,
            max_completion_length=self._max_completion_length,
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
        task: EpisodeTask,
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

    def __call__(self, scenarios: Sequence[Scenario], draw: Draw) -> Attempts:
        """Play the episodes of all groups to their ends."""
        sizes = draw.sizes_of(scenarios, self._num_generations)
        played = run_in_lockstep(
            self._policy.in_turns(),
            self._chat,
            [
                self._task.episodes(scenario, size)
                for scenario, size in zip(scenarios, sizes, strict=True)
            ],
            rollout_ids=rollout_ids(scenarios, sizes, draw),
            # Servers may take less than the model that the limits were made for.
            limits=self._limits.within(self._policy.context_length),
            temperature=draw.temperature,
            max_completion_length=self._max_completion_length,
            generator=draw.generator,
        )
        return attempts_of([Group(*one) for one in zip(scenarios, played, strict=True)])

    def metrics(self, rollouts: Sequence[Rollout]) -> dict[str, Any]:
        """Stop reasons, turns, rows, failed calls, mismatches; what prompts cost."""
        return {**episode_metrics(rollouts), **prefill_metrics(rollouts)}


def attempts_of(groups: Sequence[Group]) -> Attempts:
    """Groups of finished rollouts with the rows of their tokens."""
    rows = grow_trees([group.rollouts for group in groups])
    return Attempts(tuple(groups), rows.trees, rows.rollouts_of_tree, rows.old_logprobs)


def draw_informative(
    draw: Callable[[int, Sequence[int]], Experience],
    *,
    sizes: Sequence[int],
    rounds: int,
    advantage: str,
) -> DrawnBatch:
    """A group for each of `sizes` from `draw(attempt, sizes)`, the dull ones replaced in up to
    `rounds` rounds.

    Attempt 0 draws the whole batch. `draw` may share out the sum of the sizes that it is given in
    another way. The result is compared as `advantage` says. Where there are rounds, a draw has as
    many groups as sizes; without, it may have more.
    """
    experience = draw(0, sizes)
    count = len(experience.groups)
    empty = _dull(experience)
    groups, dull = count, len(empty)
    for attempt in range(1, rounds + 1):
        if not empty:
            break
        fresh = draw(attempt, [experience.sizes_B[group] for group in empty])
        still_dull = _dull(fresh)
        groups += len(empty)
        dull += len(still_dull)
        parts = [experience.single(group, advantage) for group in range(count)]
        for index, group in enumerate(empty):
            # Of another size, a dull one takes the place too: the sizes sum to what they did.
            if index not in still_dull or fresh.sizes_B[index] != experience.sizes_B[group]:
                parts[group] = fresh.single(index, advantage)
        experience = join(parts, advantage)
        empty = _dull(experience)
    return DrawnBatch(experience, groups, dull)


def _dull(experience: Experience) -> list[int]:
    return [group for group, varied in enumerate(experience.advantages.varied_B) if not varied]


def draw_by_ranks(world: World, own: Callable[[], Attempts | None]) -> Attempts:
    """What all ranks drew, where `own` gives this one's share (`draw_share`)."""
    return join_attempts([part for part in world.together(own) if part is not None])


def draw_share(
    world: World, drawing: Drawing, scenarios: Sequence[Scenario], draw: Draw
) -> Attempts | None:
    """What `drawing` makes of this rank's share of `scenarios`, groups whole on a rank; None of no
    scenario. Nothing is exchanged."""
    share = world.share(len(scenarios))
    if not share:
        return None
    return drawing(
        scenarios[share.start : share.stop],
        replace(
            draw,
            first=share.start,
            sizes=None if draw.sizes is None else draw.sizes[share.start : share.stop],
        ),
    )


def join_attempts(parts: Sequence[Attempts]) -> Attempts:
    """The attempts of all `parts` as one, rollouts numbered through."""
    rollouts_of_tree: list[tuple[int, ...]] = []
    before = 0
    for part in parts:
        rollouts_of_tree += [
            tuple(before + rollout for rollout in rollouts) for rollouts in part.rollouts_of_tree
        ]
        before += sum(len(group.rollouts) for group in part.groups)
    return Attempts(
        groups=tuple(group for part in parts for group in part.groups),
        trees=tuple(tree for part in parts for tree in part.trees),
        rollouts_of_tree=tuple(rollouts_of_tree),
        old_logprobs=tuple(rows for part in parts for rows in part.old_logprobs),
    )


class DrawnAhead(Generic[T]):
    """Up to `steps` steps drawn before they are taken. Close it in the end."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="memograd-draws-ahead")
        self._drawn: dict[int, Future[T]] = {}

    def take(self, step: int, last: int, prepare: Callable[[int], Callable[[], T]]) -> T:
        """What was drawn for `step`; later ones, up to `last`, are on their way from here on.

        `prepare` is called here for each step that is not on its way yet, in their order, and gives
        what the thread does. Raises what that raised.
        """
        for ahead in range(step, min(step + self._steps, last) + 1):
            if ahead not in self._drawn:
                self._drawn[ahead] = self._threads.submit(prepare(ahead))
        return self._drawn.pop(step).result()

    def close(self) -> None:
        """Give up what is on its way; what a server is still asked for ends by itself."""
        self._drawn.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)
