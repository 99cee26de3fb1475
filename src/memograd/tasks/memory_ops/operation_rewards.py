"""Rewards known the moment an operation is chosen, in place of `delta_qa`: every action of a state.

    reward = operation_reward("my_rewards.py")      rewards.operation_code
    rewards_of_actions(reward, point, "log-1")      [ACTIONS], as `delta_qa` gives them

The function sees what the decision sees: the fact and the related items, with the target marked.
Invariant: the reward of an action is what the function returns for that operation alone; places
without an item, and what is not allowed, are never asked about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memograd.memory.manager.trained.observation import ACTIONS, operation_of
from memograd.memory.records.operations import OpKind
from memograd.tasks.memory_ops.rewards import (
    ChosenOperation,
    OperationReward,
    RetrievedFact,
    compute_operation_rewards,
)

if TYPE_CHECKING:
    from memograd.tasks.memory_ops.walk import Point


def rewards_of_actions(reward: OperationReward, point: Point, log_id: str) -> np.ndarray:
    """The reward of every allowed action [ACTIONS], 0 elsewhere.

    Raises RewardError, with the log and the statement in it, when the function raises or returns
    anything but one finite number.
    """
    allowed = np.flatnonzero(point.observation.allowed_A)
    chosen = [_chosen(int(action), point) for action in allowed]
    where = f"{log_id}, statement {point.number + 1}"
    rewards_A = np.zeros(ACTIONS)
    rewards_A[allowed] = compute_operation_rewards(
        reward, chosen, rollout_ids=[where] * len(chosen)
    )
    return rewards_A


def _chosen(action: int, point: Point) -> ChosenOperation:
    op = operation_of(action, point.fact, point.hits)
    target = op.item_id if op.kind in (OpKind.UPDATE, OpKind.DELETE) else None
    return ChosenOperation(
        op.kind,
        point.fact.text,
        tuple(
            RetrievedFact(
                hit.record.id, hit.record.text, hit.why.similarity, hit.record.id == target
            )
            for hit in point.hits
        ),
    )
