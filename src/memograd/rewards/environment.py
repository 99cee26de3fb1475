"""The environment's own reward, as one among the rewards of a run.

What an episode earned (`Rollout.reward`) reaches reward functions as `environment_rewards`, one
number a rollout, beside prompts, completions and columns; the built-in reward `environment` is that
number. So it is weighted, logged and normalised like any other.

Invariant: a number is there for every rollout or for none; a rollout that earned nothing where
others did is an error with its id, never a 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from memograd.rewards.compose import RewardError

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
