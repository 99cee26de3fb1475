"""A second reading of what looks closed: the last layers of the encoder once more, trained for one
question.

Beside two facts a message that ends something ("sold my old amp at last") looks as if it ended one
of them: the relation model has learnt mostly from messages that stand beside what they close. What
looks closed is therefore read again by layers that begin where `DEPTHS` ends, so the layers below
are computed once. They have learnt from pairs of messages of which one closes a fact and the other
only sounds so (`tasks/relations/second.py`, by `benchmarks/relation_second.py --write`). What they
say is evidence beside the first reading (`manager/crowded.py`); it closes nothing by itself.

They lie beside the weights that they go on from, `NAME.second.npz` beside `NAME.npz`, and are
weights of the same form with these layers and the head of the relations alone.

Invariants: a model without that file has no second reading; a file of other weights is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from memograd.errors import BadInput
from memograd.memory.records.archives import read_arrays, what_is_wrong, write_arrays
from memograd.memory.relations.gate import digest
from memograd.memory.relations.values import DEPTHS
from memograd.memory.relations.weights import CLOSING, RELATIONS, Weights, matrix_names

MOST: Final = 6.9  # log-odds: a thousandth, as of the first reading


def second_layers(layers: int) -> range:
    """Which layers of an encoder of so many are read a second time."""
    return range(min(DEPTHS[-1], layers), layers)


def odds_of(logits: np.ndarray, relations: Sequence[str] = CLOSING) -> np.ndarray:
    """`[n]` of logits `[n, RELATIONS]`: the log-odds of these relations, within MOST."""
    these = [RELATIONS.index(name) for name in relations]
    others = [n for n in range(len(RELATIONS)) if n not in these]
    sums = [np.logaddexp.reduce(logits[:, side], axis=1) for side in (these, others)]
    return np.asarray(np.clip(sums[0] - sums[1], -MOST, MOST))


def second_of(weights: Weights) -> Weights:
    """Of a whole model the part that is a second reading."""
    layers = second_layers(weights.layers)
    names = [name for name in matrix_names(weights.layers) if _layer(name) in layers]
    vectors = {
        name: vector
        for name, vector in weights.vectors.items()
        if name.startswith("relations.") or _layer(name) in layers
    }
    return replace(
        weights, matrices={name: weights.matrices[name] for name in names}, vectors=vectors
    )


def _layer(name: str) -> int | None:
    """The layer that a tensor belongs to."""
    first, _, rest = name.partition(".")
    return int(rest.partition(".")[0]) if first == "layers" else None


def second_file(weights_file: Path) -> Path:
    """Where the second reading of these weights lies."""
    return weights_file.with_name(f"{weights_file.stem}.second.npz")


def write_second(second: Weights, weights: Weights, path: Path) -> None:
    """Writes the file whole or not at all.

    second: of `second_of`. weights: those that it goes on from.
    """
    arrays: dict[str, np.ndarray] = {"of": np.array(digest(weights)), **second.vectors}
    arrays["origin"] = np.array(json.dumps(second.about.origin))
    for name, (whole, scales) in second.matrices.items():
        arrays |= {f"{name}.int8": whole, f"{name}.scales": scales}
    write_arrays(path, arrays)


def read_second(path: Path, weights: Weights) -> Weights | None:
    """The second reading in that file, None where there is no file.

    Raises BadInput where it is damaged or goes on from other weights.
    """
    try:
        arrays = read_arrays(path)
        if str(arrays.pop("of")) != digest(weights):
            raise ValueError("it goes on from other weights")
        origin: dict[str, Any] = json.loads(str(arrays.pop("origin")))
        wanted = second_of(weights)
        matrices = {
            name: (arrays.pop(f"{name}.int8"), arrays.pop(f"{name}.scales"))
            for name in wanted.matrices
        }
        if any(whole.dtype != np.int8 for whole, _ in matrices.values()):
            raise ValueError("its matrices are not of 8 bits")
        if _shapes(matrices, arrays) != _shapes(wanted.matrices, wanted.vectors):
            raise ValueError("its tensors have other names or sizes")
        numbers = [*arrays.values(), *(scales for _, scales in matrices.values())]
        if not all(np.isfinite(array).all() for array in numbers):
            raise ValueError("not all its numbers are finite")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"The file {path} is not the second reading of the relation model beside it"
            f" ({what_is_wrong(error)}): remove it, and everything is read once, or train one with"
            " benchmarks/relation_second.py."
        ) from error
    return Weights(replace(weights.about, origin=origin), matrices, arrays)


def _shapes(
    matrices: Mapping[str, tuple[np.ndarray, np.ndarray]], vectors: Mapping[str, np.ndarray]
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Of every tensor by name, of a matrix that of its scales, too."""
    of_matrices = {name: (whole.shape, scales.shape) for name, (whole, scales) in matrices.items()}
    return {**of_matrices, **{name: (vector.shape,) for name, vector in vectors.items()}}
