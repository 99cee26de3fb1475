"""The weighted sum of reward functions over a batch of rollouts, checked value by value.

A reward function has TRL's signature `f(prompts, completions, **columns) -> list[float | None]`,
plain or async. It gets the columns that it names (all of them if it takes `**kwargs`); async
functions of a batch run at the same time, while the plain ones are computed. `None` says that the
reward does not apply to a rollout: it is left out of that rollout's total.

What an episode earned by itself (`Rollout.reward`) reaches reward functions as
`environment_rewards`, one number a rollout, beside prompts, completions and columns; the built-in
reward `environment` is that number. So it is weighted, logged and normalised like any other.

Invariants. House rule 8: a value that is not a finite number, a list of the wrong length, an
exception, and a rollout to which no reward applies each stop with a `RewardError` that names the
function and the rollout; never a silent 0. Values stand in rollout order, whichever function ends
first. The environment's number is there for every rollout or for none; a rollout that earned
nothing where others did is an error with its id.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

import numpy as np

from memograd.errors import RAISED_BY_USERS, BadInput, MemogradError, place_in
from memograd.rewards.user_code import source_of, taken_by
from memograd.rollout.async_calls import start
from memograd.rollout.types import Message, is_finite_number, own_copy

RewardFunction = Callable[..., Any]
"""`f(prompts, completions, **columns)`: one number or None per completion (TRL's signature)."""


class RewardError(MemogradError):
    """A reward could not be computed; the message names the function and the rollout.

    `rollout_id` is that rollout, or None where the whole batch is concerned.
    """

    def __init__(self, message: str, rollout_id: str | None = None) -> None:
        super().__init__(message)
        self.rollout_id = rollout_id


@dataclass(frozen=True)
class WeightedReward:
    """A reward function, the name it is logged under, and its factor in the total.

    `reads_messages`: to a chat prompt the function gets each completion as TRL would give it, a
    list of one assistant message, or of all messages of a conversation of several turns; otherwise
    as a text, that of the last turn. Completions of text prompts are texts.
    """

    name: str
    function: RewardFunction
    weight: float = 1.0
    reads_messages: bool = False


@dataclass(frozen=True)
class RewardTable:
    """One number per rollout of a batch: the weighted `total`, and every reward unweighted.

    `by_name` has None where a reward does not apply.
    """

    total: list[float]
    by_name: dict[str, list[float | None]]

    def applied(self, name: str) -> list[float]:
        """The values of one reward, without the rollouts to which it does not apply."""
        return [value for value in self.by_name[name] if value is not None]

    def means(self) -> dict[str, float | None]:
        """Mean of every reward over the rollouts to which it applies; None where there is none."""
        applied = {name: self.applied(name) for name in self.by_name}
        return {name: sum(v) / len(v) if v else None for name, v in applied.items()}


def compute_rewards(
    rewards: Sequence[WeightedReward],
    *,
    rollout_ids: Sequence[str],
    prompts: Sequence[Any],
    completions: Sequence[str],
    columns: Mapping[str, Sequence[Any]],
    conversations: Sequence[Sequence[Message]] | None = None,
) -> RewardTable:
    """Call every reward function once on the whole batch and add the results up by weight.

    Args:
        rewards: at least one, with different names.
        rollout_ids: one id per completion, for error messages.
        prompts: one per completion, texts or chat messages; passed through.
        completions: the generated answers.
        columns: further columns of the rows, e.g. `answer` and `category`, as long as the batch.
        conversations: what followed each prompt, if that is more than one message; else empty.

    Raises:
        RewardError: a function raised, or returned anything but one finite number or None per
            completion, or no reward of a weight other than 0 applies to a rollout.
        BadInput: no rewards, a name twice, or a column that is not as long as the batch.
    """
    _check_names(rewards)
    batch = {**columns, "prompts": prompts, "completions": completions}
    _check_lengths(batch, len(rollout_ids))
    spoken = conversations or [()] * len(rollout_ids)
    running: dict[str, Future[Any]] = {}
    values: dict[str, Any] = {}
    try:
        for reward in rewards:
            with _naming(reward, batch, rollout_ids):
                values[reward.name] = reward.function(**_arguments(reward, batch, spoken))
            if isawaitable(values[reward.name]):
                running[reward.name] = start(values[reward.name])
        for reward in rewards:
            if reward.name in running:
                with _naming(reward, batch, rollout_ids):
                    values[reward.name] = running[reward.name].result()
    finally:
        for future in running.values():
            future.cancel()
    by_name = {
        reward.name: _checked_values(reward.name, values[reward.name], rollout_ids)
        for reward in rewards
    }
    return RewardTable(_totals(rewards, by_name, rollout_ids), by_name)


def _arguments(
    reward: WeightedReward,
    batch: Mapping[str, Sequence[Any]],
    spoken: Sequence[Sequence[Message]],
) -> dict[str, Any]:
    """What this function is called with, as lists of its own.

    Copies all the way down, because a function that edits its arguments must change neither what
    the next one sees nor the rows, which are asked again.
    """
    arguments = {name: own_copy(list(batch[name])) for name in taken_by(reward.function, batch)}
    if reward.reads_messages and "completions" in arguments:
        arguments["completions"] = [
            text
            if isinstance(prompt, str)
            else [dict(message) for message in messages]
            or [Message(role="assistant", content=text)]
            for prompt, text, messages in zip(
                batch["prompts"], batch["completions"], spoken, strict=True
            )
        ]
    return arguments


@contextmanager
def _naming(
    reward: WeightedReward, batch: Mapping[str, Sequence[Any]], rollout_ids: Sequence[str]
) -> Iterator[None]:
    """Turns whatever the block raises into a `RewardError` that says which function, and where."""
    try:
        yield
    except RAISED_BY_USERS as error:
        message = (
            f"Reward {reward.name} raised {type(error).__name__}: {error}"
            f"{place_of(reward.function, error)} (batch of {_some_ids(rollout_ids)})."
        )
        chat = not all(isinstance(prompt, str) for prompt in batch["prompts"])
        if chat and reward.reads_messages and isinstance(error, TypeError | AttributeError):
            message += (
                " The prompts are chats, so a completion is a list of one message: its text is"
                ' completion[0]["content"].'
            )
        raise RewardError(message) from error


def place_of(function: RewardFunction, error: BaseException) -> str:
    """The line of the function's own file at which it raised; empty if it raised elsewhere."""
    return place_in(source_of(function), error)


def _totals(
    rewards: Sequence[WeightedReward],
    by_name: Mapping[str, Sequence[float | None]],
    rollout_ids: Sequence[str],
) -> list[float]:
    """The weighted sum of the rewards that apply; `RewardError` where none of them does."""
    scoring = [reward for reward in rewards if reward.weight != 0] or list(rewards)
    totals = []
    for row, rollout_id in enumerate(rollout_ids):
        parts = [
            reward.weight * value
            for reward in scoring
            if (value := by_name[reward.name][row]) is not None
        ]
        if not parts:
            raise RewardError(
                f"Reward {', '.join(reward.name for reward in scoring)} returned None for rollout "
                f"{rollout_id}, so nothing scores it; at least one reward must apply to every row.",
                rollout_id,
            )
        totals.append(sum(parts))
        if not math.isfinite(totals[-1]):
            raise RewardError(
                f"Reward total returned {totals[-1]!r} for rollout {rollout_id}, "
                "not a finite number.",
                rollout_id,
            )
    return totals


def _checked_values(name: str, values: object, rollout_ids: Sequence[str]) -> list[float | None]:
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
    # Numpy's own True is no number to Python, as True itself is.
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    for rollout_id, value in zip(rollout_ids, values, strict=True):
        if value is not None and not is_finite_number(value):
            raise RewardError(
                f"Reward {name} returned {value!r} for rollout {rollout_id}, not a finite number.",
                rollout_id,
            )
    return [None if value is None else float(value) for value in values]


def _check_names(rewards: Sequence[WeightedReward]) -> None:
    names = [reward.name for reward in rewards]
    if not names or len(set(names)) < len(names):
        raise BadInput(f"At least one reward is needed, and each name once; got {names}.")


def _check_lengths(columns: Mapping[str, Sequence[Any]], size: int) -> None:
    for column, entries in columns.items():
        if len(entries) != size:
            raise BadInput(f"`{column}` has {len(entries)} entries for {size} rollouts.")


def _some_ids(rollout_ids: Sequence[str]) -> str:
    if not rollout_ids:
        return "no rollouts"
    more = f" and {len(rollout_ids) - 3} more" if len(rollout_ids) > 3 else ""
    return f"rollouts {', '.join(rollout_ids[:3])}{more}"


ENVIRONMENT = "environment"
"""The name under which the environment's own reward stands among the rewards."""
ENVIRONMENT_COLUMN = "environment_rewards"
"""The name under which reward functions get it."""


def environment(
    completions: Sequence[str], environment_rewards: Sequence[float] | None = None
) -> list[float]:
    """What each episode earned by itself."""
    if environment_rewards is None:
        raise ValueError(
            f"the environment gave none of these {len(completions)} rollouts a reward; give it a "
            "get_reward that returns a number, or leave this reward out"
        )
    return list(environment_rewards)


def environment_column(
    rollout_ids: Sequence[str], rewards: Sequence[float | None]
) -> dict[str, list[float]]:
    """The column for reward functions; no column if no rollout has a reward of its own.

    Raises:
        RewardError: some have one and others have none; it names the first that has none.
    """
    earned = [reward for reward in rewards if reward is not None]
    if not earned:
        return {}
    if len(earned) < len(rewards):
        without = rollout_ids[list(rewards).index(None)]
        raise RewardError(
            f"The environment gave rollout {without} no reward, but others of its batch have one; "
            "return a number in every case.",
            without,
        )
    return {ENVIRONMENT_COLUMN: earned}
