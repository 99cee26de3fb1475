"""Fits the gate of a relation model: which messages close nothing (`memory/relations/gate.py`).

The model teaches: of each turn it says how sure it is at most that an item is closed, and a ridge
regression finds the log-odds of that in the vectors of the message alone. The bound is chosen on
other authors.

Invariant: below the bound lie at most MISSED of the turns in which the manager would close, doubt
or link an item, on the authors that it was chosen by.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from memograd.errors import BadInput
from memograd.memory.manager.thresholds import LINK_ABOVE
from memograd.memory.relations.gate import Gate, digest
from memograd.memory.relations.model import RelationModel
from memograd.memory.relations.weights import CLOSING, RELATIONS, Weights
from memograd.tasks.relations.rows import WrittenTurn

TURNS: Final = 1_500  # that it is fitted to
MISSED: Final = 0.005
RIDGE: Final = 100.0
_LEAST_ODDS: Final = 1e-3
_CLOSING: Final = [RELATIONS.index(name) for name in CLOSING]


@dataclass(frozen=True)
class Seen:
    """Of n turns: what the gate sees `[n, hidden]`, and the highest probability that the model
    closes one of their items `[n]`."""

    vectors: np.ndarray
    closing: np.ndarray


def seen(model: RelationModel, turns: Sequence[WrittenTurn]) -> Seen:
    """Users' turns that have items, read alone and with these. Raises BadInput where none has."""
    turns = [said for said in turns if said.role == "user" and said.items and said.group is None]
    if not turns:
        raise BadInput(
            "No turn of a user has an earlier fact, so no gate can be fitted: name whole dialogues."
        )
    vectors, closing = [], []
    for said in turns:
        before = said.before[-3:]
        vectors.append(model.message_vectors(said.text, before)[0])
        items = [fact.item or fact.statement for fact in said.items]
        closing.append(model.relate(said.text, before, items)[:, _CLOSING].sum(1).max())
    return Seen(np.stack(vectors), np.array(closing))


def fitted(weights: Weights, turns: Sequence[WrittenTurn], others: Sequence[WrittenTurn]) -> Gate:
    """The gate of these weights; turns: to learn from. others: of other authors, for the bound."""
    model = RelationModel(weights)
    drawn = [said for said in turns if said.role == "user" and said.items and said.group is None]
    drawn = random.Random(0).sample(drawn, min(TURNS, len(drawn)))
    learnt, bounding = seen(model, drawn), seen(model, others)
    mean, spread = learnt.vectors.mean(0), learnt.vectors.std(0) + _LEAST_ODDS
    inputs = np.c_[(learnt.vectors - mean) / spread, np.ones(len(learnt.vectors))].astype(float)
    sure = np.clip(learnt.closing, _LEAST_ODDS, 1 - _LEAST_ODDS)
    squares = inputs.T @ inputs + RIDGE * np.eye(inputs.shape[1])
    slopes = np.linalg.solve(squares, inputs.T @ np.log(sure / (1 - sure)))
    weight = slopes[:-1] / spread
    gate = Gate(
        weight.astype(np.float32), float(slopes[-1] - mean @ weight), -np.inf, digest(weights)
    )
    scores = bounding.vectors @ gate.weight + gate.bias
    closes = scores[bounding.closing >= LINK_ABOVE]
    if not len(closes):
        raise BadInput("The model closes nothing in these dialogues, so no bound can be chosen.")
    return Gate(gate.weight, gate.bias, float(np.quantile(closes, MISSED)), gate.of)


@dataclass(frozen=True)
class Missed:
    """turns: with items. closes: in which the manager would close, doubt or link one. missed: of
    these, that the gate leaves out. spared: of the others."""

    turns: int
    closes: int
    missed: int
    spared: int


def judged(gate: Gate, found: Seen) -> Missed:
    """What the gate leaves out."""
    out = np.array([not gate.lets_in(vector[None]) for vector in found.vectors])
    closes = found.closing >= LINK_ABOVE
    return Missed(
        len(out), int(closes.sum()), int((out & closes).sum()), int((out & ~closes).sum())
    )
