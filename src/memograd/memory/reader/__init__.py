"""Readers: from the turns of a conversation to facts.

`RuleReader` needs no model and reads English and Chinese; `ChatReader` asks a chat model.
"""

from memograd.memory.reader.chat import ChatReader
from memograd.memory.reader.fact import Fact, MemReader
from memograd.memory.reader.rules import RuleReader

__all__ = ["ChatReader", "Fact", "MemReader", "RuleReader"]
