"""Managers: from a fact and the items related to it to one memory operation.

`RuleManager` needs no model; `ChatManager` asks a chat model; a trained policy fills the same
protocol.
"""

from memograd.memory.manager.chat import ChatManager
from memograd.memory.manager.protocol import (
    Change,
    ForeseeingManager,
    MemoryManager,
    MessageManager,
)
from memograd.memory.manager.relations import RelationManager
from memograd.memory.manager.rules import RuleManager, decide_by_rules

__all__ = [
    "Change",
    "ChatManager",
    "ForeseeingManager",
    "MemoryManager",
    "MessageManager",
    "RelationManager",
    "RuleManager",
    "decide_by_rules",
]
