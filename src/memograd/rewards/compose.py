"""Reward functions by name, and their weighted sum over a batch of rollouts.

A reward function has TRL's signature `f(prompts, completions, **columns) -> list[float | None]`.
TRL reads `None` as "does not apply" and others turn failures into 0; both train a model on a number
that nobody computed. Invariant (house rule 8): a value that is missing, not finite or not a number,
a list of the wrong length, and an exception each stop with a `RewardError` that names the function
and the rollout; never a silent 0. Proved in `tests/rewards/test_compose.py`.

May import: errors, rewards.locomo, rewards.mem0.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from memograd.errors import BadInput, MemogradError
from memograd.rewards.locomo import locomo_f1
from memograd.rewards.mem0 import mem0_bleu1, mem0_f1

RewardFunction = Callable[..., list[float | None]]
"""`f(prompts, completions, **columns)`: one number per completion (TRL's signature)."""

REWARDS: dict[str, RewardFunction] = {
    "locomo_f1": locomo_f1,
    "mem0_f1": mem0_f1,
    "mem0_bleu1": mem0_bleu1,
}


class RewardError(MemogradError):
    """A reward could not be computed; the message names the function and the rollout."""


@dataclass(frozen=True)
class WeightedReward:
    """A reward function, the name it is logged under, and its factor in the total."""

    name: str
    function: RewardFunction
    weight: float = 1.0


@dataclass(frozen=True)
class RewardTable:
    """One number per rollout of a batch: the weighted `total`, and every reward unweighted."""

    total: list[float]
    by_name: dict[str, list[float]]


def get_reward(name: str) -> RewardFunction:
    """The registered reward of that name; if there is none, `BadInput` with the nearest names."""
    if name in REWARDS:
        return REWARDS[name]
    near = difflib.get_close_matches(name, REWARDS, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(REWARDS)}."
    raise BadInput(f'There is no reward "{name}"; {hint}')


def parse_rewards(spec: str) -> list[WeightedReward]:
    """Read `"locomo_f1"` or `"locomo_f1:1.0,mem0_bleu1:0.2"`; a weight left out is 1.

    Raises:
        BadInput: a name is unknown, empty or given twice, or a weight is not a finite number, or
            all weights are 0.
    """
    rewards: list[WeightedReward] = []
    for part in spec.split(","):
        name, colon, weight = (piece.strip() for piece in part.partition(":"))
        if not name:
            raise BadInput(f'Reward "{spec}" has an empty entry; write name or name:weight.')
        if name in (reward.name for reward in rewards):
            raise BadInput(f'Reward "{spec}" names {name} twice; give it one weight.')
        factor = _parse_weight(weight, part.strip()) if colon else 1.0
        rewards.append(WeightedReward(name, get_reward(name), factor))
    if all(reward.weight == 0 for reward in rewards):
        raise BadInput(f'Reward "{spec}" gives every function weight 0; nothing would be learned.')
    return rewards


def _parse_weight(text: str, part: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight):
        raise BadInput(f'"{text}" in reward "{part}" is not a finite number; write name:0.5.')
    return weight


def compute_rewards(
    rewards: Sequence[WeightedReward],
    *,
    rollout_ids: Sequence[str],
    prompts: Sequence[Any],
    completions: Sequence[str],
    columns: Mapping[str, Sequence[Any]],
) -> RewardTable:
    """Call every reward function once on the whole batch and add the results up by weight.

    Args:
        rewards: at least one, with different names.
        rollout_ids: one id per completion, for error messages.
        prompts: one per completion, texts or chat messages; passed through.
        completions: the generated answers.
        columns: further columns of the rows, e.g. `answer` and `category`, as long as the batch.

    Raises:
        RewardError: a function raised, or returned anything but one finite number per completion.
        BadInput: no rewards, a name twice, or a column that is not as long as the batch.
    """
    _check_names(rewards)
    batch = {**columns, "prompts": prompts, "completions": completions}
    _check_lengths(batch, len(rollout_ids))
    by_name: dict[str, list[float]] = {}
    for reward in rewards:
        try:
            # Copies: a function that edits its arguments must not change what the next one sees.
            values = reward.function(**{name: list(entries) for name, entries in batch.items()})
        except Exception as error:
            raise RewardError(
                f"Reward {reward.name} raised {type(error).__name__}: {error} "
                f"(batch of {_some_ids(rollout_ids)})."
            ) from error
        by_name[reward.name] = _checked_values(reward.name, values, rollout_ids)
    total = [
        sum(reward.weight * by_name[reward.name][row] for reward in rewards)
        for row in range(len(rollout_ids))
    ]
    return RewardTable(_checked_values("total", total, rollout_ids), by_name)


def _checked_values(name: str, values: object, rollout_ids: Sequence[str]) -> list[float]:
    batch = f"batch of {_some_ids(rollout_ids)}"
    if not isinstance(values, list | tuple):
        raise RewardError(
            f"Reward {name} returned {type(values).__name__}, not a list of numbers ({batch})."
        )
    if len(values) != len(rollout_ids):
        raise RewardError(
            f"Reward {name} returned {len(values)} values for {len(rollout_ids)} completions "
            f"({batch})."
        )
    for rollout_id, value in zip(rollout_ids, values, strict=True):
        if not isinstance(value, Real) or not math.isfinite(value):
            raise RewardError(
                f"Reward {name} returned {value!r} for rollout {rollout_id}, not a finite number."
            )
    return [float(value) for value in values]


def _check_names(rewards: Sequence[WeightedReward]) -> None:
    names = [reward.name for reward in rewards]
    if not names or len(set(names)) < len(names):
        raise BadInput(f"At least one reward is needed, and each name once; got {names}.")


def _check_lengths(columns: Mapping[str, Sequence[Any]], size: int) -> None:
    for column, entries in columns.items():
        if len(entries) != size:
            raise BadInput(f"`{column}` has {len(entries)} entries for {size} rollouts.")


def _some_ids(rollout_ids: Sequence[str], shown: int = 8) -> str:
    if not rollout_ids:
        return "no rollouts"
    more = f" and {len(rollout_ids) - shown} more" if len(rollout_ids) > shown else ""
    return f"rollouts {', '.join(rollout_ids[:shown])}{more}"
