"""Texts become unit vectors; the only door to an embedding model.

One file an embedder; `embedder` says what all of them promise, `stored` keeps what was embedded and
`load` finds them by name. Importing this brings no model, neither numpy nor torch.
"""

from __future__ import annotations

from memograd.memory.embedders.e5 import E5Embedder
from memograd.memory.embedders.embedder import Embedder, check_vectors
from memograd.memory.embedders.load import embedder_from_settings, endpoint_of, load_embedder
from memograd.memory.embedders.openai_model import OpenAIEmbedder
from memograd.memory.embedders.sentence_transformers_model import (
    MiniLMEmbedder,
    SentenceTransformerEmbedder,
)
from memograd.memory.embedders.stored import CachedEmbedder

__all__ = [
    "CachedEmbedder",
    "E5Embedder",
    "Embedder",
    "MiniLMEmbedder",
    "OpenAIEmbedder",
    "SentenceTransformerEmbedder",
    "check_vectors",
    "embedder_from_settings",
    "endpoint_of",
    "load_embedder",
]
