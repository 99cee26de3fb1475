"""Mem-alpha's reward of a whole walk, as its published code has it (arXiv:2509.25911).

Every `CHUNK` statements are a chunk. Each chunk earns r1 + r2 + beta r3 + gamma r4, and the walk
their mean: doing nothing in a chunk and deleting cost, a repeated insert is a failure. It is here
to be compared with. A written text counts as valid when it does not repeat an item; no judge reads
it. Invariant: a walk that writes nothing earns r1 and r3 only.
"""

from __future__ import annotations

from typing import Final

from memograd.memory.records.operations import OpKind
from memograd.rewards.mem_alpha import MEM_ALPHA_ORIGINAL, ToolOutcome, mem_alpha_reward
from memograd.tasks.memory_ops.walk import Walk

CHUNK: Final = 10


def mem_alpha_outcome(walk: Walk) -> float:
    """The mean reward of a finished walk's chunks."""
    scores = [one.score for one in walk.asked] or [0.0]
    rewards = []
    for start in range(0, len(walk.taken), CHUNK):
        calls = [
            ToolOutcome(
                taken.kind,
                ok=True,
                duplicate=taken.repeats and taken.kind is OpKind.ADD,
                valid=None if taken.kind is OpKind.DELETE else not taken.repeats,
            )
            for taken in walk.taken[start : start + CHUNK]
            if taken.kind is not OpKind.NONE
        ]
        reward = mem_alpha_reward(
            calls,
            qa_scores=scores,
            memory_tokens=walk.memory.tokens,
            chunk_tokens=int(walk.log.tokens_N.sum()),
            rules=MEM_ALPHA_ORIGINAL,
        )
        rewards.append(reward.total)
    return sum(rewards) / len(rewards) if rewards else 0.0
