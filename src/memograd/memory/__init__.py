"""What is remembered: items and raw turns, their journal, and everything that makes them useful.

`Memory` is what applications hold. Behind it, bottom up: `journal` (the truth, in SQL), `state` (an
owner's memory folded into forkable structures), `index` (Milvus, for what is too large for a
state), `search` (finding), `reader` and `manager` (what to remember), `write` (everything that
changes a memory), each with its invariant in its own docstring. The names below are loaded when
first used, so importing this room costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, OpKind
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import MONTHS, RawTurn, format_date
from memograd.memory.search.context import RetrievedTurn, fill_budget, render_memory

if TYPE_CHECKING:
    from memograd.memory.async_memory import AsyncMemory
    from memograd.memory.embedders import Embedder, load_embedder
    from memograd.memory.memory import Memory
    from memograd.memory.turn_memory import TurnMemory

_LAZY = {
    "AsyncMemory": "async_memory",
    "Embedder": "embedders",
    "Memory": "memory",
    "TurnMemory": "turn_memory",
    "load_embedder": "embedders",
}

__all__ = [
    "MONTHS",
    "AsyncMemory",
    "Decision",
    "Embedder",
    "Kind",
    "Memory",
    "MemoryItem",
    "MemoryOp",
    "OpKind",
    "RawTurn",
    "RetrievedTurn",
    "Scope",
    "TurnMemory",
    "fill_budget",
    "format_date",
    "load_embedder",
    "render_memory",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"memograd.memory.{_LAZY[name]}"), name)
