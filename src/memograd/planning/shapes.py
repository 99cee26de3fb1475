"""Shapes of decoder models: how many weights and how many bytes of cache, from seven numbers.

The common models are built in; another one comes by its `config.json`. The layer that is counted is
that of Llama and Qwen: grouped-query attention, a gated feed-forward part of three matrices, two
RMS norms (four with norms of queries and keys). Models of other layers are refused, for nothing in
their numbers shows that they are of another kind. Invariant: the weights counted here are those
that `transformers` makes of the same configuration, all of them for what is built in, and to a
thousandth, which extra norms and biases take, for `ALIKE` (`tests/planning/test_shapes.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from memograd.errors import BadInput


@dataclass(frozen=True)
class ModelShape:
    """A dense decoder. attention_bias: queries, keys and values have one. qk_norm: norms."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int
    vocabulary: int
    tied: bool
    attention_bias: bool = False
    qk_norm: bool = False

    @property
    def query_size(self) -> int:
        """Numbers in the queries of a token and layer."""
        return self.heads * self.head_size

    @property
    def kv_size(self) -> int:
        """Numbers in the keys of a token and layer; the values have as many."""
        return self.kv_heads * self.head_size

    @property
    def layer_matrices(self) -> int:
        """Weights of the matrices of one layer."""
        attention = self.hidden * (2 * self.query_size + 2 * self.kv_size)
        return attention + 3 * self.hidden * self.inner

    @property
    def layer_weights(self) -> int:
        """All weights of one layer."""
        biases = (self.query_size + 2 * self.kv_size) * self.attention_bias
        norms = 2 * self.hidden + 2 * self.head_size * self.qk_norm
        return self.layer_matrices + biases + norms

    @property
    def embedding_weights(self) -> int:
        """Weights of the embedding; a head that is not tied has as many again."""
        return self.vocabulary * self.hidden

    @property
    def weights(self) -> int:
        """All weights; what is tied counts once."""
        outside = self.embedding_weights * (1 if self.tied else 2) + self.hidden
        return self.layers * self.layer_weights + outside

    @property
    def matrix_inputs(self) -> int:
        """Numbers that go into the seven matrices of a layer, for one token."""
        return 5 * self.hidden + self.query_size + self.inner

    @property
    def matrix_outputs(self) -> int:
        """Numbers that come out of them."""
        return 2 * self.hidden + self.query_size + 2 * self.kv_size + 2 * self.inner

    def lora_weights(self, rank: int) -> int:
        """Weights of an adapter on all seven matrices of every layer."""
        return self.layers * rank * (self.matrix_inputs + self.matrix_outputs)

    def kv_bytes(self) -> int:
        """Bytes of keys and values, of two bytes each, that one token keeps in all layers."""
        return 2 * self.layers * self.kv_size * 2


_QWEN25 = 151936
_QWEN25_LARGE = 152064
_LLAMA3 = 128256

# The published config.json of each; the numbers are in the order of the fields.
_BUILT_IN = (
    ModelShape("HuggingFaceTB/SmolLM2-135M-Instruct", 576, 30, 9, 3, 64, 1536, 49152, True),
    ModelShape("HuggingFaceTB/SmolLM2-360M-Instruct", 960, 32, 15, 5, 64, 2560, 49152, True),
    ModelShape("HuggingFaceTB/SmolLM2-1.7B-Instruct", 2048, 24, 32, 32, 64, 8192, 49152, True),
    ModelShape("Qwen/Qwen2.5-0.5B-Instruct", 896, 24, 14, 2, 64, 4864, _QWEN25, True, True),
    ModelShape("Qwen/Qwen2.5-1.5B-Instruct", 1536, 28, 12, 2, 128, 8960, _QWEN25, True, True),
    ModelShape("Qwen/Qwen2.5-3B-Instruct", 2048, 36, 16, 2, 128, 11008, _QWEN25, True, True),
    ModelShape("Qwen/Qwen2.5-7B-Instruct", 3584, 28, 28, 4, 128, 18944, _QWEN25_LARGE, False, True),
    ModelShape(
        "Qwen/Qwen2.5-14B-Instruct", 5120, 48, 40, 8, 128, 13824, _QWEN25_LARGE, False, True
    ),
    ModelShape(
        "Qwen/Qwen2.5-32B-Instruct", 5120, 64, 40, 8, 128, 27648, _QWEN25_LARGE, False, True
    ),
    ModelShape(
        "Qwen/Qwen2.5-72B-Instruct", 8192, 80, 64, 8, 128, 29568, _QWEN25_LARGE, False, True
    ),
    ModelShape("Qwen/Qwen3-0.6B", 1024, 28, 16, 8, 128, 3072, _QWEN25, True, False, True),
    ModelShape("Qwen/Qwen3-1.7B", 2048, 28, 16, 8, 128, 6144, _QWEN25, True, False, True),
    ModelShape("Qwen/Qwen3-4B", 2560, 36, 32, 8, 128, 9728, _QWEN25, True, False, True),
    ModelShape("Qwen/Qwen3-8B", 4096, 36, 32, 8, 128, 12288, _QWEN25, False, False, True),
    ModelShape("Qwen/Qwen3-14B", 5120, 40, 40, 8, 128, 17408, _QWEN25, False, False, True),
    ModelShape("Qwen/Qwen3-32B", 5120, 64, 64, 8, 128, 25600, _QWEN25, False, False, True),
    ModelShape("meta-llama/Llama-3.2-1B-Instruct", 2048, 16, 32, 8, 64, 8192, _LLAMA3, True),
    ModelShape("meta-llama/Llama-3.2-3B-Instruct", 3072, 28, 24, 8, 128, 8192, _LLAMA3, True),
    ModelShape("meta-llama/Llama-3.1-8B-Instruct", 4096, 32, 32, 8, 128, 14336, _LLAMA3, False),
    ModelShape("meta-llama/Llama-3.1-70B-Instruct", 8192, 80, 64, 8, 128, 28672, _LLAMA3, False),
)
BUILT_IN: Mapping[str, ModelShape] = {shape.name: shape for shape in _BUILT_IN}

_TIED = ("cohere", "cohere2", "ernie4_5", "gemma", "gemma2", "gemma3_text", "smollm3")
_UNTIED = (
    *("exaone4", "glm", "glm4", "granite", "hunyuan_v1_dense", "internlm3", "llama", "ministral"),
    *("mistral", "olmo", "olmo2", "olmo3", "phi3", "qwen2", "qwen3", "seed_oss"),
)
ALIKE: Mapping[str, bool] = {**dict.fromkeys(_TIED, True), **dict.fromkeys(_UNTIED, False)}
"""Types (`model_type`) of models that have these layers, and whether embedding and output layer are
one where the file does not say it."""


def shape_of(model: str | Path) -> ModelShape:
    """The shape of a model: a built-in name, a `config.json`, or a folder that holds one.

    A name may leave out its owner ("Qwen2.5-7B-Instruct") and the ending "-Instruct". Raises
    BadInput for an unknown name, a file that is no configuration, and models of other layers.
    """
    path = Path(model)
    if path.is_dir():
        path = path / "config.json"
    if path.suffix == ".json" or path.is_file():
        return _read(path)
    name = str(model)
    for full, shape in BUILT_IN.items():
        short = full.partition("/")[2]
        if name.lower() in {
            full.lower(),
            short.lower(),
            full.removesuffix("-Instruct").lower(),
            short.removesuffix("-Instruct").lower(),
        }:
            return shape
    near = get_close_matches(name, BUILT_IN, n=1, cutoff=0.3)
    hint = f"; the nearest built-in one is {near[0]}" if near else ""
    raise BadInput(
        f"The shape of the model {name!r} is not built in{hint}. Give the path of its config.json."
    )


def _read(path: Path) -> ModelShape:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise BadInput(f"{path} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise BadInput(f"{path} is not the configuration of a model: it holds no JSON object.")
    kind = found.get("model_type")
    if not isinstance(kind, str) or kind not in ALIKE:
        raise BadInput(
            f'{path}: only dense decoders can be planned, and "model_type" is {kind!r}; those that '
            f"are known are {', '.join(sorted(ALIKE))}."
        )
    heads = _number(found, "num_attention_heads", path)
    hidden = _number(found, "hidden_size", path)
    kv_heads = _number(found, "num_key_value_heads", path, heads)
    if heads % kv_heads:
        raise BadInput(f"{path}: {heads} heads cannot share {kv_heads} heads of keys and values.")
    if found.get("head_dim") is None and hidden % heads:
        raise BadInput(f"{path}: {heads} heads do not divide a hidden size of {hidden}.")
    return ModelShape(
        name=path.parent.name or str(path),
        hidden=hidden,
        layers=_number(found, "num_hidden_layers", path),
        heads=heads,
        kv_heads=kv_heads,
        head_size=_number(found, "head_dim", path, hidden // heads),
        inner=_number(found, "intermediate_size", path),
        vocabulary=_number(found, "vocab_size", path),
        tied=bool(found.get("tie_word_embeddings", ALIKE[kind])),
        attention_bias=bool(found.get("attention_bias", kind == "qwen2")),
        qk_norm=kind == "qwen3",
    )


def _number(found: Mapping[str, Any], key: str, path: Path, default: int | None = None) -> int:
    value = found.get(key)
    if value is None:
        value = default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f'{path}: "{key}" must be a whole number above 0, not {value!r}.')
    return value
