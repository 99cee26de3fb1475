"""From a name, or from settings, to an embedder.

Names: `e5`, `minilm`, `st:<model id or folder>`, `openai:<model>`. Invariant: an embedder that is
made from settings has the dimension that they ask for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from memograd.config import MemorySettings
from memograd.config.memory_settings import cache_folder
from memograd.errors import BadInput
from memograd.memory.chat.openai_endpoint import OpenAIEndpoint
from memograd.memory.embedders.e5 import E5Embedder
from memograd.memory.embedders.embedder import Embedder
from memograd.memory.embedders.openai_model import OpenAIEmbedder
from memograd.memory.embedders.sentence_transformers_model import (
    MiniLMEmbedder,
    SentenceTransformerEmbedder,
)
from memograd.memory.embedders.stored import CachedEmbedder, StoredEmbedder

KNOWN_NAMES: Final = "e5, minilm, st:<model id or folder>, openai:<model>"


def load_embedder(
    name: str, *, dimension: int | None = None, endpoint: OpenAIEndpoint | None = None
) -> Embedder:
    """The embedder of that name.

    dimension: what it must have, None for any. endpoint: where `openai:<model>` is, by default
    OpenAI's own server. Raises BadInput for an unknown name (naming the known ones), a missing
    package, and another dimension.
    """
    embedder = _make(name, dimension, endpoint or OpenAIEndpoint())
    if dimension not in (None, embedder.dimension):
        raise BadInput(
            f"The setting dimension is {dimension}, but the embedder {name!r} makes vectors of"
            f" {embedder.dimension}: leave dimension out, or choose another embedder."
        )
    return embedder


def check_embedder(name: str) -> None:
    """Raise BadInput for a name that no embedder has, naming the known ones, and for a folder that
    is missing or holds no model; loads nothing."""
    kind, _, model = name.partition(":")
    if name not in ("e5", "minilm") and not (kind in ("st", "openai") and model):
        raise BadInput(f"There is no embedder {name!r}: choose one of {KNOWN_NAMES}.")
    if kind == "st":
        _check_folder(name, model)


def _check_folder(name: str, model: str) -> None:
    folder = Path(model)
    if folder.exists():
        if not any((folder / file).is_file() for file in ("modules.json", "config.json")):
            raise BadInput(
                f"The embedder {name!r} names {folder}, which holds no saved"
                " sentence-transformers model: it has neither modules.json nor config.json."
            )
    elif model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise BadInput(
            f"The embedder {name!r} names a folder that does not exist: give the folder of a saved"
            " sentence-transformers model, or a model id of the hub."
        )


def embedder_from_settings(settings: MemorySettings) -> CachedEmbedder:
    """The embedder that the settings name, with a cache; raises BadInput like `load_embedder`."""
    name = settings.embedder
    if name == "openai":
        if settings.openai_embedding_model is None:
            raise BadInput(
                "The embedder 'openai' needs a model: set OPENAI_EMBEDDING_MODEL, or name the"
                " embedder openai:<model>."
            )
        name = f"openai:{settings.openai_embedding_model}"
    return CachedEmbedder(
        load_embedder(name, dimension=settings.dimension, endpoint=endpoint_of(settings))
    )


def open_embedder(name: str) -> Embedder:
    """The embedder of that name, its vectors kept in the cache folder: for training and measuring,
    which embed the same texts in every run."""
    return StoredEmbedder(load_embedder(name), cache_folder() / "vectors.db")


def endpoint_of(settings: MemorySettings) -> OpenAIEndpoint:
    """The OpenAI-compatible endpoint that the settings name."""
    key = settings.openai_api_key
    return OpenAIEndpoint(settings.openai_base_url, key.get_secret_value() if key else None)


def _make(name: str, dimension: int | None, endpoint: OpenAIEndpoint) -> Embedder:
    check_embedder(name)
    kind, _, model = name.partition(":")
    if name == "e5":
        return E5Embedder()
    if name == "minilm":
        return MiniLMEmbedder()
    if kind == "st":
        return SentenceTransformerEmbedder(model)
    return OpenAIEmbedder(model, endpoint, dimension)
