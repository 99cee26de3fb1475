"""Which value of an item a message replaces, and by which of its words: "wait, 580" in "room 508".

Where a message corrects or changes an item, the item should say the new value in its own words:
"User's room is 580." A small network reads what layers in the middle of the encoder make of the
message and the item together (behind the last one a token knows what its text means, but hardly
which value it is), and points at two spans: the value in the item, and the one in the message.

The network is a projection, a few layers of attention and three linear functions, trained by
`benchmarks/relation_values.py --write` (`tasks/relations/values.py`) on the corrections and changes
of the written dialogues whose statements differ in one value. It lies beside the weights that it
was trained on, `NAME.values.npz` beside `NAME.npz`.

Invariants: both spans are words as they stand in the texts, and they differ; a model without that
file points at nothing; a file of other weights is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from memograd.errors import BadInput
from memograd.memory.records.archives import read_arrays, what_is_wrong, write_arrays
from memograd.memory.relations.extents import of_one_extent
from memograd.memory.relations.gate import EARLY, digest
from memograd.memory.relations.rows import Span
from memograd.memory.relations.weights import Weights
from memograd.memory.statements.value_types import NUMERALS

DEPTHS: Final = (EARLY, 5, 8)  # layers behind which the encoder is looked at
LONGEST: Final = 10  # tokens of a value
HEADS: Final = 4
_CANDIDATES: Final = 8  # spans of each text that are considered together
_EPS: Final = 1e-5  # of the norms, as torch's


@dataclass(frozen=True)
class OtherValue:
    """old: characters of the item. new: what the message says instead, in its words. sure: the
    probability that it gives another value, and that it is these."""

    old: Span
    new: str
    sure: float


@dataclass(frozen=True)
class ValuePointer:
    """tensors: float32, named as torch names those of `tasks.relations.values.PointerNetwork`."""

    tensors: Mapping[str, np.ndarray]

    @property
    def layers(self) -> int:
        """Layers of attention."""
        return len({name.split(".")[1] for name in self.tensors if name.startswith("layers.")})

    def scores(
        self, vectors_TH: np.ndarray, parts: Sequence[int], message: Span, item: Span
    ) -> tuple[np.ndarray, float]:
        """float32 `[T, 6]`: of each token that it begins, ends, belongs to the old value, and the
        same of the new one in the order old begins, old ends, new begins, new ends, within old,
        within new; and the log-odds that there is no other value.

        vectors_TH: the encoder's, behind all of DEPTHS, side by side. message, item: their tokens.
        """
        t = self.tensors
        x = _norm(vectors_TH, t["norm.weight"], t["norm.bias"])
        x = x @ t["enter.weight"].T + t["enter.bias"] + t["parts.weight"][list(parts)]
        for number in range(self.layers):
            x = self._layer(x, f"layers.{number}")
        means = [x[span.start : span.end].mean(0) for span in (message, item)]
        none = np.concatenate(means) @ t["none.weight"][0] + t["none.bias"][0]
        return np.asarray(x @ t["point.weight"].T + t["point.bias"]), float(none)

    def _layer(self, x: np.ndarray, name: str) -> np.ndarray:
        t = self.tensors
        tokens, width = x.shape
        normed = _norm(x, t[f"{name}.first.weight"], t[f"{name}.first.bias"])
        mixed = normed @ t[f"{name}.mix.weight"].T + t[f"{name}.mix.bias"]
        query, key, value = mixed.reshape(tokens, 3, HEADS, -1).transpose(1, 2, 0, 3)
        weights = _softmax(query @ key.transpose(0, 2, 1) * (width // HEADS) ** -0.5)
        attended = (weights @ value).transpose(1, 0, 2).reshape(tokens, width)
        x = x + attended @ t[f"{name}.out.weight"].T + t[f"{name}.out.bias"]
        normed = _norm(x, t[f"{name}.second.weight"], t[f"{name}.second.bias"])
        wide = np.maximum(normed @ t[f"{name}.wide.weight"].T + t[f"{name}.wide.bias"], 0)
        return np.asarray(x + wide @ t[f"{name}.narrow.weight"].T + t[f"{name}.narrow.bias"])


def pointed_at(
    scores: np.ndarray,
    none: float,
    message: str,
    places: Sequence[tuple[int, int]],
    item: str,
    item_places: Sequence[tuple[int, int]],
) -> OtherValue | None:
    """The likeliest two spans whose words differ; None where there are none.

    scores: `[message tokens + item tokens, 6]` of `ValuePointer.scores`, the message's first.
    places: the characters of each token.
    """
    its, mine = scores[: len(places)], scores[len(places) :]
    olds = _spans(mine[:, 0], mine[:, 1], mine[:, 4])
    news = _spans(its[:, 2], its[:, 3], its[:, 5])
    pairs = sorted(
        ((a.score + b.score, a, b) for a in olds for b in news), key=lambda pair: -pair[0]
    )
    for _, one, other in pairs:
        told = of_one_extent(
            item,
            Span(item_places[one.first][0], item_places[one.last][1]),
            message,
            Span(places[other.first][0], places[other.last][1]),
        )
        if told is None:
            continue
        old, new = told
        if item[old.start : old.end].istitle() and _NO_NAME.search(message[: new.end]):
            continue  # "it's a clarinet" is no other name
        said = _said_once(message[slice(*new)])
        if said.casefold() != item[slice(*old)].casefold():
            return OtherValue(old, said, one.sure * other.sure / (1 + float(np.exp(none))))
    return None


_IS_ONE: Final = re.compile(rf"[\d.,:/+-]+|[{NUMERALS}]+|[A-Za-z\d]+")
_NO_NAME: Final = re.compile(r"\ban? [a-z][\w-]*$")


@dataclass(frozen=True)
class _Candidate:
    """Tokens first to last. sure: the probability of its first and last token."""

    score: float
    sure: float
    first: int
    last: int


def _spans(begins: np.ndarray, ends: np.ndarray, within: np.ndarray) -> list[_Candidate]:
    """The likeliest spans, the best first; of equals the one that stands first."""
    begin, end = _log_softmax(begins), _log_softmax(ends)
    sums = np.concatenate([[0.0], np.cumsum(within)])
    first, last = _places(len(begin))
    edges = begin[first] + end[last]
    scores = edges + sums[last + 1] - sums[first]
    best = np.argsort(-scores, kind="stable")[:_CANDIDATES]
    return [
        _Candidate(float(scores[n]), float(np.exp(edges[n])), int(first[n]), int(last[n]))
        for n in best
    ]


@lru_cache(maxsize=128)
def _places(tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last token of every span of at most LONGEST tokens, in order."""
    first, last = np.indices((tokens, tokens)).reshape(2, -1)
    short = (first <= last) & (last < first + LONGEST)
    return first[short], last[short]


def _said_once(value: str) -> str:
    """周日 of 周日周日, but 2020 of 2020 and coco of coco: a number or a word is no value twice."""
    half = len(value) // 2
    twice = half > 1 and value[:half] == value[half:]
    return value[:half] if twice and not _IS_ONE.fullmatch(value) else value


def _norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(-1, keepdims=True) + _EPS)
    return np.asarray(centred / spread * weight + bias)


def _softmax(x: np.ndarray) -> np.ndarray:
    raised = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))


def _log_softmax(x: np.ndarray) -> np.ndarray:
    shifted = x - x.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def values_file(weights_file: Path) -> Path:
    """Where the pointer of these weights lies."""
    return weights_file.with_name(f"{weights_file.stem}.values.npz")


def write_pointer(pointer: ValuePointer, weights: Weights, path: Path) -> None:
    """Writes the file whole or not at all; its numbers in 16 bits."""
    arrays: dict[str, np.ndarray] = {"of": np.array(digest(weights))}
    arrays |= {name: tensor.astype(np.float16) for name, tensor in pointer.tensors.items()}
    write_arrays(path, arrays)


def read_pointer(path: Path, weights: Weights) -> ValuePointer | None:
    """The pointer in that file, None where there is no file.

    Raises BadInput where it is damaged or was trained on other weights.
    """
    try:
        arrays = read_arrays(path)
        if str(arrays.pop("of")) != digest(weights):
            raise ValueError("it was trained on other weights")
        tensors = {name: array.astype(np.float32) for name, array in arrays.items()}
        if not all(np.isfinite(tensor).all() for tensor in tensors.values()):
            raise ValueError("not all its numbers are finite")
        pointer = ValuePointer(tensors)
        vectors = np.zeros((2, len(DEPTHS) * weights.hidden), np.float32)
        pointer.scores(vectors, [1, 2], Span(0, 1), Span(1, 2))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise BadInput(
            f"The file {path} is not the value pointer of the relation model beside it"
            f" ({what_is_wrong(error)}): remove it, and values are found by rules, or train one"
            " with benchmarks/relation_values.py."
        ) from error
    return pointer
