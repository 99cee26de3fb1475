"""The setting `reward` of memory-ops: what one operation earns, instead of `delta_qa`.

Invariant: what cannot be loaded or called is one `BadInput` sentence before anything is written,
and a resumed run goes on with the function that it began with (`tests/recipes/
test_memory_ops_reward.py`). May import every room below the recipes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from memograd.config.operations_settings import OperationsConfig
from memograd.rewards.operation_code import OPERATION_REWARDS, operation_reward
from memograd.rewards.operations import OperationReward
from memograd.rewards.signature import source_of

DELTA_QA: Final = "delta_qa"


def reward_of(config: OperationsConfig) -> OperationReward | None:
    """The reward of single operations that the settings name; None for `delta_qa`.

    Raises BadInput when there is none of that name, or its file or function cannot be used.
    """
    if config.reward == DELTA_QA:
        return None
    return operation_reward(config.reward, also=[DELTA_QA])


def code_fingerprint(reward: OperationReward | None) -> str | None:
    """SHA-256 of the file that the user's own reward is written in; None for all others."""
    if reward is None or reward in OPERATION_REWARDS.values():
        return None
    source = source_of(reward)
    if source is None or not Path(source).is_file():
        return None
    return hashlib.sha256(Path(source).read_bytes()).hexdigest()
