"""The 8-bit graph against the same weights in float32, computed here with numpy alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memograd.memory.embedders.e5_graph import build_graph
from memograd.memory.embedders.e5_weights import E5Weights, read_e5
from memograd.memory.embedders.quantised_graph import adds_signed_bytes_exactly, start_session

TEXTS = (
    "query: Where did Ada live before she moved to Turin?",
    "passage: 我们下周去北京旅行，你觉得怎么样？😀",
    "passage: " + "The council met on Monday and put off the vote again. " * 12,
)


@pytest.fixture(scope="module")
def weights() -> E5Weights:
    return read_e5()


@pytest.fixture(scope="module")
def tokens(weights: E5Weights) -> list[list[int]]:
    tokenizer = weights.tokenizer()
    return [tokenizer.encode(text).ids for text in TEXTS]


def by_hand(weights: E5Weights, tokens: list[int]) -> np.ndarray:
    """The mean of BERT's last hidden states (Devlin et al. 2019), post-norm, exact GELU."""
    tensors = weights.state_dict(word_embeddings=False)
    erf = np.vectorize(math.erf, otypes=[np.float32])

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt(x.var(-1, keepdims=True) + weights.layer_norm_eps)
        return scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    def heads(x: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), weights.heads, -1).transpose(1, 0, 2)

    x = weights.word_embeddings.rows(np.array(tokens))
    x = x + tensors["embeddings.position_embeddings.weight"][: len(tokens)]
    x = norm(x + tensors["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for number in range(weights.layers):
        layer = f"encoder.layer.{number}"
        q, k, v = (
            heads(linear(x, f"{layer}.attention.self.{part}")) for part in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        weight = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (weight / weight.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(x.shape)
        output = f"{layer}.attention.output"
        x = norm(x + linear(mixed, f"{output}.dense"), f"{output}.LayerNorm")
        wide = linear(x, f"{layer}.intermediate.dense")
        wide = 0.5 * wide * (1 + erf(wide / math.sqrt(2)))
        x = norm(x + linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return np.asarray(x.mean(0))


def run(weights: E5Weights, graph: bytes, rows: list[list[int]]) -> np.ndarray:
    lengths = np.array([len(row) for row in rows], np.int32)
    padded = np.full((len(rows), lengths.max()), weights.pad)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    words = weights.word_embeddings.rows(padded.ravel()).reshape(*padded.shape, weights.hidden)
    shares = (np.arange(padded.shape[1]) < lengths[:, None]) / lengths[:, None]
    session = start_session(graph)
    inputs = {"words": words, "lengths": lengths, "shares": shares[:, None].astype(np.float32)}
    return np.asarray(session.run(None, inputs)[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "signed",
    [
        pytest.param(
            True,
            marks=pytest.mark.skipif(
                not adds_signed_bytes_exactly(), reason="this processor saturates signed products"
            ),
        ),
        False,
    ],
)
def test_the_vectors_of_float32(weights: E5Weights, tokens: list[list[int]], signed: bool) -> None:
    made = run(weights, build_graph(weights, signed_weights=signed), tokens)
    for mean, row in zip(made, tokens, strict=True):
        exact = by_hand(weights, row)
        assert mean @ exact / (np.linalg.norm(mean) * np.linalg.norm(exact)) > 0.9995


def test_padding_and_neighbours_change_nothing(weights: E5Weights, tokens: list[list[int]]) -> None:
    graph = build_graph(weights, signed_weights=False)
    alone = np.concatenate([run(weights, graph, [row]) for row in tokens])
    np.testing.assert_allclose(run(weights, graph, tokens), alone, atol=1e-5)
