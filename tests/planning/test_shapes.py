"""Shapes: the weights of `transformers`, whatever the family; bad input in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from memograd.errors import BadInput
from memograd.planning.shapes import ALIKE, BUILT_IN, ModelShape, shape_of


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


@pytest.mark.parametrize("kind", ALIKE)
def test_types_that_are_alike_have_these_weights(tmp_path: Path, kind: str) -> None:
    config = AutoConfig.for_model(
        kind,
        hidden_size=1024,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=128,
        intermediate_size=2816,
        vocab_size=16000,
        pad_token_id=0,
    )
    if getattr(config, "layer_types", None):  # one for each layer
        config.layer_types = config.layer_types[:2]
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    written = config.to_dict()
    del written["tie_word_embeddings"]  # it is that of the type then
    (tmp_path / "config.json").write_text(json.dumps(written))
    weights = sum(weight.numel() for weight in model.parameters())
    assert shape_of(tmp_path).weights == pytest.approx(weights, rel=1e-3)


LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 100,
}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("[]", "holds no JSON object"),
        ("{}", 'only dense decoders can be planned, and "model_type" is None'),
        (json.dumps({**LLAMA, "model_type": "qwen3_moe"}), "only dense decoders can be planned"),
        # Two matrices where these have three; nothing in the numbers shows it.
        (json.dumps({**LLAMA, "model_type": "gpt_neox"}), "\"model_type\" is 'gpt_neox'"),
        (json.dumps({"model_type": "qwen2_5_vl", "text_config": LLAMA}), "'qwen2_5_vl'"),
        (json.dumps({"model_type": "llama"}), '"num_attention_heads" must be a whole number'),
        (json.dumps({**LLAMA, "hidden_size": 64.0}), '"hidden_size" must be a whole number'),
        (json.dumps({**LLAMA, "num_key_value_heads": 3}), "4 heads cannot share 3 heads"),
        (json.dumps({**LLAMA, "hidden_size": 66}), "4 heads do not divide a hidden size of 66"),
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
