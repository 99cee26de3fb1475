"""What is remembered: raw turns, their embeddings, and the store that searches them.

May import errors and config only. The wall between scopes is proved in
`tests/memory/test_store.py`.
"""

from memograd.memory.embedder import Embedder, MiniLMEmbedder, load_embedder
from memograd.memory.retrieved import RetrievedTurn, fill_budget, render_memory
from memograd.memory.store import TurnMemory
from memograd.memory.turns import MONTHS, RawTurn, format_date

__all__ = [
    "MONTHS",
    "Embedder",
    "MiniLMEmbedder",
    "RawTurn",
    "RetrievedTurn",
    "TurnMemory",
    "fill_budget",
    "format_date",
    "load_embedder",
    "render_memory",
]
