"""Whether a message may close anything at all, seen before any item is read with it.

Most messages close nothing, and their own words say so: "sold", "no longer" and "now" stand in the
others. The encoder has read the message alone, for the worth of its sentences; one linear function
of the mean of its vectors tells how sure the model would at most be that an item is closed. Where
that is below a bound, the row of message and items, which costs several times as much, is not
computed.

The function and its bound are fitted to one model (`tasks/relations/gate.py`, by the command
`benchmarks/relations_gate.py --write`) and lie beside its file, `NAME.gate.npz` beside `NAME.npz`.
Invariant: a model without that file reads every item, and a gate of other weights is refused.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memograd.errors import BadInput
from memograd.memory.relations.weights import Weights

if TYPE_CHECKING:
    import numpy as np

_ARRAYS: Final = ("weight", "bias", "least", "of")


@dataclass(frozen=True)
class Gate:
    """weight: float32 `[hidden]`. bias, least: of the log-odds; below `least` nothing is closed.
    of: `digest` of the weights it was fitted to."""

    weight: np.ndarray
    bias: float
    least: float
    of: str

    def lets_in(self, vectors: np.ndarray) -> bool:
        """Whether one of the messages `[n, hidden]` may close an item."""
        return bool(((vectors @ self.weight + self.bias) >= self.least).any())


def digest(weights: Weights) -> str:
    """Changes with any matrix of the encoder, not with temperatures and thresholds."""
    found = hashlib.sha256()
    for name in sorted(weights.matrices):
        found.update(weights.matrices[name][0].tobytes())
    return found.hexdigest()[:16]


def gate_file(weights_file: Path) -> Path:
    """Where the gate of these weights lies."""
    return weights_file.with_name(f"{weights_file.stem}.gate.npz")


def write_gate(gate: Gate, path: Path) -> None:
    """Writes the file whole or not at all."""
    import numpy as np

    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as aside:
        np.savez(
            aside,
            weight=gate.weight.astype(np.float32),
            bias=np.float32(gate.bias),
            least=np.float32(gate.least),
            of=np.array(gate.of),
        )
    os.chmod(aside.name, 0o644)
    os.replace(aside.name, path)


def read_gate(path: Path, weights: Weights) -> Gate | None:
    """The gate in that file, None where there is no file.

    Raises BadInput where it is damaged or was fitted to other weights.
    """
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            weight, bias, least, of = (archive[name] for name in _ARRAYS)
        gate = Gate(weight, float(bias), float(least), str(of))
        if gate.weight.shape != (weights.hidden,) or gate.weight.dtype != np.float32:
            raise ValueError(f"its weight is not float32 [{weights.hidden}]")
        if not np.isfinite([*gate.weight, gate.bias, gate.least]).all():
            raise ValueError("not all its numbers are finite")
        if gate.of != digest(weights):
            raise ValueError("it was fitted to other weights")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(
            f"The file {path} is not the gate of the relation model beside it ({error}): remove it,"
            " and every item is read, or fit one with benchmarks/relations_gate.py."
        ) from error
    return gate
