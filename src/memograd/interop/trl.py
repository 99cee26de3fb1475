"""Our rows and rewards for TRL's `GRPOTrainer`; our environments are `environment_factory` already.

    GRPOTrainer(..., train_dataset=trl_rows(rows), reward_funcs=trl_rewards(spec)[0],
                environment_factory=SqlEnvironment)

Invariant: a reward function gets from TRL what it gets here, calls in the text of the assistant: of
a chat, messages if it reads them, else (the built-in ones) the text of the last.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memograd.errors import BadInput
from memograd.interop.scoring import as_said, rewards_of
from memograd.rewards import RewardFunction, WeightedReward
from memograd.rewards.user_code import taken_by
from memograd.tasks.text.rows import TextRow

if TYPE_CHECKING:
    from datasets import Dataset


def trl_rows(rows: Sequence[TextRow]) -> Dataset:
    """The rows as a data set with the columns `prompt` and those of the rows.

    Raises:
        BadInput: the package `datasets` is missing.
    """
    try:
        from datasets import Dataset
    except ModuleNotFoundError:
        raise BadInput("TRL's rows need datasets; run pip install 'memograd[trl]'.") from None
    return Dataset.from_list([{**row.columns, "prompt": _prompt(row)} for row in rows])


def trl_rewards(spec: str) -> tuple[list[RewardFunction], list[float]]:
    """The reward functions of a specification, and their weights (`GRPOConfig(reward_weights=)`).

    Raises:
        BadInput: the specification cannot be read, or asks for the environment's own reward,
            which TRL takes from `get_reward` by itself.
    """
    rewards = rewards_of(spec)
    return [_for_trl(one) for one in rewards], [one.weight for one in rewards]


def _for_trl(ours: WeightedReward) -> Callable[..., Any]:
    function = ours.function

    @functools.wraps(function)
    def reward(prompts: list[Any], completions: list[Any], **columns: Any) -> Any:
        said = [one if isinstance(one, str) else as_said(one) for one in completions]
        if not ours.reads_messages:
            said = [one if isinstance(one, str) else _last_text(one) for one in said]
        given = {**columns, "prompts": prompts, "completions": said}
        return function(**{one: given[one] for one in taken_by(function, given)})

    reward.__name__ = ours.name
    del reward.__wrapped__
    return reward


def _last_text(said: Sequence[Mapping[str, str]]) -> str:
    return said[-1]["content"] if said else ""


def _prompt(row: TextRow) -> Any:
    return row.prompt if isinstance(row.prompt, str) else [dict(one) for one in row.prompt]
