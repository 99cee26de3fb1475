"""Shapes: the weights of `transformers`, whatever the family; bad input in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from memograd.errors import BadInput
from memograd.planning.shapes import BUILT_IN, ModelShape, shape_of


def config_of(shape: ModelShape):
    kind = Qwen3Config if shape.qk_norm else Qwen2Config if shape.attention_bias else LlamaConfig
    return kind(
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,
        intermediate_size=shape.inner,
        vocab_size=shape.vocabulary,
        tie_word_embeddings=shape.tied,
    )


# The tallest ones take seconds to lay out; their families are here.
@pytest.mark.parametrize("name", [name for name, one in BUILT_IN.items() if one.layers <= 36])
def test_weights_are_those_of_transformers(name: str) -> None:
    shape = BUILT_IN[name]
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config_of(shape))
    assert shape.weights == sum(weight.numel() for weight in model.parameters())


# Figures that the makers publish beside the weights.
@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("Qwen2.5-7B-Instruct", 7_615_616_512),
        ("qwen2.5-1.5b", 1_543_714_304),
        ("meta-llama/Llama-3.1-8B-Instruct", 8_030_261_248),
        ("SmolLM2-135M-Instruct", 134_515_008),
    ],
)
def test_weights_are_the_published_ones(name: str, weights: int) -> None:
    assert shape_of(name).weights == weights


@pytest.mark.parametrize("name", ["Qwen/Qwen2.5-1.5B-Instruct", "Qwen/Qwen3-0.6B"])
def test_a_configuration_file_says_the_same(tmp_path: Path, name: str) -> None:
    built_in = BUILT_IN[name]
    config_of(built_in).save_pretrained(tmp_path)
    assert AutoConfig.from_pretrained(tmp_path).hidden_size == built_in.hidden
    for place in (tmp_path, tmp_path / "config.json"):
        read = shape_of(place)
        assert read.weights == built_in.weights
        assert read.kv_bytes() == built_in.kv_bytes()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("[]", "holds no JSON object"),
        ("{}", '"num_attention_heads" must be a whole number'),
        (json.dumps({"num_experts": 8}), "only dense decoders can be planned"),
    ],
)
def test_what_is_no_configuration_is_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(BadInput, match=says):
        shape_of(path)


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(BadInput, match=r"nearest built-in one is Qwen/Qwen2\.5-7B-Instruct"):
        shape_of("Qwen/Qwen2.5-7B-Instrukt")
