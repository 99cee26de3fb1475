"""Readers: from the turns of a conversation to facts.

`RuleReader` needs no model and reads English and Chinese; `ChatReader` asks a chat model.
"""

from memograd.memory.reader.chat import ChatReader
from memograd.memory.reader.fact import Fact, Heard, MemReader, MessageReader
from memograd.memory.reader.rules import RuleReader
from memograd.memory.reader.trained import TrainedReader

__all__ = [
    "ChatReader",
    "Fact",
    "Heard",
    "MemReader",
    "MessageReader",
    "RuleReader",
    "TrainedReader",
]
