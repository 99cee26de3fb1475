"""The vectors of a segment's rows: a matrix, or the rows of two among each other without a copy.

A past that is looked at shares nearly all its vectors with the present. A copy of them would be as
large for each moment that is kept, and to fault in so much fresh memory takes longer than the
search that needs it. So woven rows say where each one stands in the matrices that are there.
Invariants: nobody writes to the vectors; they are those of a copy, to the bit.
"""

from __future__ import annotations

import numpy as np


class Vectors:
    """A matrix, float32 `[n, d]`, which is kept, not copied."""

    def __init__(self, matrix: np.ndarray) -> None:
        matrix.flags.writeable = False
        self._matrix = matrix

    def multiply(self, query: np.ndarray, out: np.ndarray) -> None:
        """Write the product of each row with a vector `[d]` to `out`, float32 `[n]`."""
        np.matmul(self._matrix, query, out=out)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """A copy of some rows, float32 `[len(rows), d]`."""
        taken: np.ndarray = self._matrix[rows]
        return taken

    def whole(self) -> np.ndarray:
        """All rows, float32 `[n, d]`."""
        return self._matrix

    def placed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Two matrices, and of each row its place in both of them behind each other."""
        return self._matrix, self._matrix[:0], np.arange(len(self._matrix))


class WovenVectors(Vectors):
    """Rows of a matrix with a few of another among them."""

    def __init__(self, matrix: np.ndarray, others: np.ndarray, places: np.ndarray) -> None:
        super().__init__(matrix)
        self._others, self._places = others, places

    def multiply(self, query: np.ndarray, out: np.ndarray) -> None:
        """As of a matrix."""
        products = np.empty(len(self._matrix) + len(self._others), np.float32)
        np.matmul(self._matrix, query, out=products[: len(self._matrix)])
        np.matmul(self._others, query, out=products[len(self._matrix) :])
        np.take(products, self._places, out=out)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """As of a matrix."""
        places = self._places[rows]
        taken = np.empty((len(places), self._matrix.shape[1]), np.float32)
        mine = places < len(self._matrix)
        taken[mine] = self._matrix[places[mine]]
        taken[~mine] = self._others[places[~mine] - len(self._matrix)]
        return taken

    def whole(self) -> np.ndarray:
        """As of a matrix, but made when it is asked for."""
        return self.at(np.arange(len(self._places)))

    def placed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As of a matrix."""
        return self._matrix, self._others, self._places


def weave_vectors(
    first: tuple[Vectors, np.ndarray, np.ndarray], second: tuple[Vectors, np.ndarray, np.ndarray]
) -> Vectors:
    """Some rows of two among each other. With each come the rows and their new numbers.

    Of a matrix that gives less than half its rows these are copied, so that nobody multiplies the
    others for nothing.
    """
    matrix, others, places = first[0].placed()
    own = places[first[1]]
    if 2 * len(own) < len(matrix):
        matrix, others, own = first[0].at(first[1]), matrix[:0], np.arange(len(own))
    late = np.flatnonzero(own >= len(matrix))
    more = np.concatenate([others[own[late] - len(matrix)], second[0].at(second[1])])
    own[late] = len(matrix) + np.arange(len(late))
    woven = np.empty(len(own) + len(second[1]), np.int64)
    woven[first[2]] = own
    woven[second[2]] = len(matrix) + len(late) + np.arange(len(second[1]))
    return WovenVectors(matrix, more, woven)
