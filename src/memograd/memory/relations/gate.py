"""Linear functions of vectors that the encoder has anyway: what need not be read to the end, and
secrets.

**Closes.** Most messages close nothing, and their own words say so: "sold", "no longer" and "now"
stand in the others. The encoder has read the message alone, for the worth of its sentences; one
linear function of the mean of its vectors tells how sure the model would at most be that an item is
closed. Where that is below a bound, the row of message and items, which costs several times as
much, is not computed.

**Keeps.** Of what an assistant says hardly anything is kept, and an assistant says much. After the
first `EARLY` layers another linear function, of a sentence's vectors beside the message's, tells
its worth roughly; a row in which no sentence reaches the bound is not computed further.

**Crowded.** Among many items some always looks closed. A fourth function weighs what several
readings say of those that stand out.

**Few.** Beside one or two items a message that speaks of neither looks as if it closed one. A
seventh function weighs the same evidence, and what stays below its bound is not closed.

**Requests.** What a request to forget means of the memories near it is weighed by a fifth.

**Secrets.** Many are told in passing ("the alarm there is 5590 then hash", "the spare is under the
second pot") and have no form that a rule knows. A third function, of what the worth of a user's
sentence is read from, tells the log-odds that it holds one.

**Worth.** The head that tells the worth learnt from messages of which most tell something, so of
short chat ("no way", "set an alarm for 7") it keeps a third. A sixth function, of what the head
reads, of the log-odds that it gives, of lengths and of whether a question came before, tells the
log-odds of a fact anew. It learnt from chat, and from dialogues that the weights have not read.

The functions and their bounds are fitted to one model (`tasks/relations/gate.py`, by the command
`benchmarks/relations_gate.py --write`) and lie beside its file, `NAME.gate.npz` beside `NAME.npz`.
Invariant: a model without that file reads everything, one whose file has no second function reads
every sentence of an assistant, one without a third finds no secret (rules still do), one without a
fourth leaves many items to the row that they are read in, one without a fifth takes what the model
is sure of, one without a sixth believes the head, one without a seventh believes the row of few
items, and a gate of other weights is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from memograd.errors import BadInput
from memograd.memory.records.archives import read_arrays, what_is_wrong, write_arrays
from memograd.memory.relations.weights import WORTHS, Weights

EARLY: Final = 2  # layers that are computed before the second function
WORTH_SEEN: Final = 10  # numbers beside the vectors that the sixth function sees
_LEAST_WORTH: Final = 1e-4
_PARTS: Final = ("weight", "bias", "least")


@dataclass(frozen=True)
class Linear:
    """weight: float32 `[width]`. bias, least: of the log-odds; below `least` it says no."""

    weight: np.ndarray
    bias: float
    least: float

    def scores(self, vectors: np.ndarray) -> np.ndarray:
        """`[n]` of vectors `[n, width]`: log-odds."""
        return np.asarray(vectors @ self.weight + self.bias)

    def lets_in(self, vectors: np.ndarray) -> bool:
        """Whether one of the vectors `[n, width]` reaches the bound."""
        return bool((self.scores(vectors) >= self.least).any())


@dataclass(frozen=True)
class Gate:
    """closes: of a message's vectors, hidden wide. keeps: of an assistant's sentence and its
    message, twice as wide. of: `digest` of the weights they were fitted to. secrets: of a user's
    sentence and its message. crowded: of what `manager/crowded.py` knows of one of many items,
    requests: of what `manager/requests.py` knows of a part of one. worth: of a user's sentence, its
    message, the log-odds of a fact, lengths and the like (WORTH_SEEN). These three have no bound:
    their `least` is not used. few: of what `manager/crowded.py` knows of one of a few items."""

    closes: Linear
    of: str
    keeps: Linear | None = None
    secrets: Linear | None = None
    crowded: Linear | None = None
    requests: Linear | None = None
    worth: Linear | None = None
    few: Linear | None = None


def worth_evidence(
    both: np.ndarray, worths: np.ndarray, lengths: Sequence[int], message: int, answers: bool
) -> np.ndarray:
    """float32 `[n, 2 hidden + WORTH_SEEN]`: what the sixth function sees of a user's sentences.

    both: `[n, 2 hidden]`, each sentence's vectors beside the message's. worths: `[n, WORTHS]`, by
    the head. lengths, message: tokens of each sentence, and of the message. answers: whether an
    assistant has just asked something.
    """
    fact, nothing = (worths[:, WORTHS.index(name)] for name in ("fact", "nothing"))
    odds = np.log((fact + _LEAST_WORTH) / (nothing + _LEAST_WORTH))
    part = np.log(lengths)
    whole, asked = np.full(len(part), np.log(message)), np.full(len(part), float(answers))
    seen = [odds, part, whole, odds * part, odds * whole, part * part, whole * whole]
    seen += [asked, asked * odds, asked * part]
    return np.concatenate([both, np.stack(seen, axis=1)], axis=1).astype(np.float32)


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
    arrays: dict[str, np.ndarray] = {"of": np.array(gate.of)}
    functions: dict[str, Linear | None]
    functions = {"": gate.closes, "keeps_": gate.keeps, "secrets_": gate.secrets}
    functions |= {"crowded_": gate.crowded, "requests_": gate.requests, "worth_": gate.worth}
    functions["few_"] = gate.few
    for prefix, linear in functions.items():
        for part in _PARTS if linear is not None else ():
            arrays[prefix + part] = np.asarray(getattr(linear, part), dtype=np.float32)
    write_arrays(path, arrays)


def read_gate(path: Path, weights: Weights) -> Gate | None:
    """The gate in that file, None where there is no file.

    Raises BadInput where it is damaged or was fitted to other weights.
    """
    try:
        arrays = read_arrays(path)
        widths = {"keeps_": 2 * weights.hidden, "secrets_": 2 * weights.hidden}
        widths["worth_"] = 2 * weights.hidden + WORTH_SEEN
        keeps, secrets, worth = (
            _linear(arrays, prefix, width) if f"{prefix}weight" in arrays else None
            for prefix, width in widths.items()
        )
        crowded, requests, few = (  # how wide they are their readers know
            _linear(arrays, prefix, len(arrays[f"{prefix}weight"]))
            if f"{prefix}weight" in arrays
            else None
            for prefix in ("crowded_", "requests_", "few_")
        )
        closes = _linear(arrays, "", weights.hidden)
        gate = Gate(closes, str(arrays["of"]), keeps, secrets, crowded, requests, worth, few)
        if gate.of != digest(weights):
            raise ValueError("it was fitted to other weights")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"The file {path} is not the gate of the relation model beside it"
            f" ({what_is_wrong(error)}): remove it, and everything is read, or fit one with"
            " benchmarks/relations_gate.py."
        ) from error
    return gate


def _linear(arrays: Mapping[str, np.ndarray], prefix: str, width: int) -> Linear:
    weight, bias, least = (arrays[prefix + part] for part in _PARTS)
    if weight.shape != (width,) or weight.dtype != np.float32:
        raise ValueError(f"its {prefix}weight is not float32 [{width}]")
    if not np.isfinite([*weight, bias, least]).all():
        raise ValueError("not all its numbers are finite")
    return Linear(weight, float(bias), float(least))
