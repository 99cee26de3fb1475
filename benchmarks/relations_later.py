"""What relation models leave answerable on dialogues of authors that they have not read.

    python benchmarks/relations_later.py --authors h,j \
        --models "ships=" "supervised=runs/s0,runs/s1,runs/s2" "GRPO=runs/g0,runs/g1,runs/g2"

A model is a run folder or a file of weights, nothing: the weights that ship. Several models of one
name are seeds: their mean stands beside half the width of its 95% interval (Student's t).
`--calibrate e` chooses temperatures and a shift on those authors first, as `memograd train
relations` does after supervised training. Models with one encoder (`learning_layers=0`) share what
it computes.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from memograd.evaluation.report import markdown_table
from memograd.memory.relations.model import SHIPPED, RelationModel
from memograd.memory.relations.weights import Weights, read_weights
from memograd.tasks.relations.measure import HeardShares, answered, calibrated
from memograd.tasks.relations.questions import AskedDialogue, read_asked
from memograd.tasks.relations.settings import LaterConfig

DIALOGUES = Path(__file__).resolve().parents[1] / "corpus" / "dialogues"
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}  # two-sided, by degrees of freedom


Encoded = dict[tuple[tuple[int, ...], tuple[int, ...]], np.ndarray]


class SharingModel(RelationModel):
    """A relation model that keeps all that its encoder computed, for others of the same encoder."""

    def __init__(self, weights: Weights, encoded: Encoded) -> None:
        self._kept = encoded
        super().__init__(weights)

    def _encode_anew(self, tokens: tuple[int, ...], parts: tuple[int, ...]) -> np.ndarray:
        if (tokens, parts) not in self._kept:
            self._kept[tokens, parts] = super()._encode_anew(tokens, parts)
        return self._kept[tokens, parts]


def encoder_of(weights: Weights) -> str:
    """A fingerprint of all weights but the heads'."""
    found = hashlib.sha256()
    for name in sorted(weights.matrices):
        found.update(weights.matrices[name][0].tobytes() + weights.matrices[name][1].tobytes())
    for name in sorted(weights.vectors):
        if not name.startswith(("relations.", "worths.")):
            found.update(weights.vectors[name].tobytes())
    return found.hexdigest()


def dialogues_of(authors: str) -> list[AskedDialogue]:
    """Of both languages."""
    return [
        one
        for author in authors.split(",")
        for language in ("en", "zh")
        for one in read_asked(DIALOGUES / f"{language}-{author}.jsonl")
    ]


def file_of(name: str) -> Path:
    """The weights that a name means."""
    if not name:
        return SHIPPED
    path = Path(name)
    return path / "final" / "relations.npz" if path.is_dir() else path


def cell(values: Sequence[float]) -> str:
    """Mean of per cent and half of its interval."""
    mean = f"{100 * np.mean(values):.1f}"
    if len(values) == 1:
        return mean
    half = T_95[len(values) - 1] * np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{mean} ± {100 * half:.1f}"


def main() -> None:
    """Prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--authors", required=True, help="letters, with commas between")
    parser.add_argument("--models", nargs="+", required=True, help="LABEL=MODEL[,MODEL...]")
    parser.add_argument("--calibrate", help="authors to calibrate on")
    given = parser.parse_args()
    unseen = dialogues_of(given.authors)
    chosen_by = dialogues_of(given.calibrate) if given.calibrate else []
    names = [one.name for one in fields(HeardShares)]
    rows, encoded = [], dict[str, Encoded]()
    for model in given.models:
        label, _, paths = model.partition("=")
        found = []
        for path in paths.split(","):
            weights = read_weights(file_of(path))
            if chosen_by:
                weights = calibrated(weights, [said for one in chosen_by for said in one.turns])
            shared = encoded.setdefault(encoder_of(weights), {})
            found.append(answered(SharingModel(weights, shared), unseen, LaterConfig()))
        for language in found[0]:
            of = [one[language] for one in found]
            rows.append(
                [label, language, *(cell([getattr(one, name) for one in of]) for name in names)]
            )
            print(" | ".join(rows[-1]), flush=True)
    print(f"\n{len(unseen)} dialogues of {given.authors}\n")
    print(markdown_table(["model", "language", *names], rows))


if __name__ == "__main__":
    main()
