"""The encoder's graphs one behind the other, and what they made of the last rows.

They are cut where somebody looks at the vectors on the way (`EARLY` of the gate, `DEPTHS` of the
values), and what each has made of a row is kept, so a row goes through no layer twice.

Invariant: the same row gives the same numbers, in any thread and after a fork.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from memograd.memory.embedders.quantised_graph import adds_signed_bytes_exactly, start_session
from memograd.memory.relations.gate import EARLY
from memograd.memory.relations.graph import build_graph, skips_first
from memograd.memory.relations.rows import BEFORE, RelationRow, RowBuilder
from memograd.memory.relations.values import DEPTHS
from memograd.memory.relations.weights import Weights

if TYPE_CHECKING:
    import numpy as np

ROWS_KEPT: Final = 16  # behind each graph, of half a megabyte at most


class Encoder:
    """Thread-safe. Computes on the core of the caller only."""

    def __init__(
        self, weights: Weights, builder: RowBuilder, second: Weights | None = None
    ) -> None:
        self._weights, self._builder, self._second = weights, builder, second
        self._graphs = len(_layers(weights))
        self._sessions, self._process = _start(weights, second), os.getpid()
        # A message's clauses are asked about behind its sentences, in the very same row.
        self._behind = [
            lru_cache(maxsize=ROWS_KEPT)(partial(self._run, number))
            for number in range(len(self._sessions))
        ]

    def begin(self, row: RelationRow) -> np.ndarray:
        """float32 `[tokens, hidden]`: behind the first graph."""
        return self._behind[0](*_key(row))

    def encode(self, row: RelationRow) -> np.ndarray:
        """float32 `[tokens, hidden]`: behind the last graph."""
        return self._behind[self._graphs - 1](*_key(row))

    def encode_again(self, row: RelationRow) -> np.ndarray:
        """The same behind the layers of the second reading, which must be there."""
        return self._behind[self._graphs](*_key(row))

    def behind_each(self, row: RelationRow, graphs: int) -> list[np.ndarray]:
        """The same behind each of the first graphs."""
        return [behind(*_key(row)) for behind in self._behind[:graphs]]

    def drop(self) -> None:
        """Forgets the rows; their tokens are texts."""
        for kept in self._behind:
            kept.cache_clear()

    def _run(self, number: int, tokens: tuple[int, ...], parts: tuple[int, ...]) -> np.ndarray:
        """float32 `[tokens, hidden]`: behind this graph; behind the last one, and behind that of
        the second reading, which begins where the last one does, zeros for what came before the
        message."""
        import numpy as np

        last = self._graphs - 1
        if number:
            inputs = {"entered": self._behind[min(number, last) - 1](tokens, parts)}
        else:
            vectors = self._weights.vectors
            embedded = self._builder.words(tokens)
            embedded += vectors["embeddings.positions"][: len(parts)]
            embedded += vectors["embeddings.parts"][list(parts)]
            inputs = {"entered": embedded}
        first = 0
        if skips_first(self._weights, _layers(self._weights)[min(number, last)]):
            first = parts.count(BEFORE)
            inputs["first"] = np.array([first])
        behind: np.ndarray = self._own_sessions()[number].run(None, inputs)[0]
        nothing = np.zeros((first, behind.shape[1]), np.float32)
        return np.concatenate([nothing, behind]) if first else behind

    def _own_sessions(self) -> list[Any]:
        """A forked child takes new ones, and does not touch the old ones even to destroy them.

        A thread that is gone in the child may have held a lock within them.
        """
        if self._process != os.getpid():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._sessions))
            self._sessions, self._process = _start(self._weights, self._second), os.getpid()
        return self._sessions


def _key(row: RelationRow) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(row.tokens), tuple(row.parts)


def _start(weights: Weights, second: Weights | None) -> list[Any]:
    """A session for each graph, that of the second reading last."""
    signed = adds_signed_bytes_exactly()
    graphs = [(weights, layers) for layers in _layers(weights)]
    if second is not None:
        graphs.append((second, graphs[-1][1]))
    return [start_session(build_graph(of, layers, signed_weights=signed)) for of, layers in graphs]


def _layers(weights: Weights) -> list[range]:
    """The layers of each graph: it ends where the vectors are looked at."""
    later = [depth for depth in DEPTHS if EARLY < depth < weights.layers]
    cuts = [0, min(EARLY, weights.layers), *later, weights.layers]
    return [range(start, end) for start, end in itertools.pairwise(cuts)]
