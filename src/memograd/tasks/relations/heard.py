"""What a relation model makes of dialogues that it hears from beginning to end, and what can be
answered then.

The model decides as a memory does (`decisions`, without noise), each message beside the items that
its own earlier decisions left. At the end the written questions are asked (`questions`).

Invariant: a model that decides every turn as the dialogues say answers every question, and is
misled by none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from memograd.evaluation.tables import markdown_table
from memograd.memory.embedders.e5_weights import read_e5
from memograd.memory.relations.model import RelationModel
from memograd.memory.relations.rows import RowBuilder
from memograd.memory.relations.weights import CLOSING, RELATIONS, WORTHS
from memograd.tasks.relations.decisions import (
    CLOSE,
    LEAVE,
    Posed,
    State,
    by_rule,
    carried,
    greedy,
    posed_as_served,
)
from memograd.tasks.relations.questions import AskedDialogue, Held
from memograd.tasks.relations.settings import LaterConfig

_CLOSING = [RELATIONS.index(name) for name in CLOSING]
_FACT = WORTHS.index("fact")


@dataclass(frozen=True)
class HeardShares:
    """Shares, of written questions unless it says otherwise. NaN: there is none.

    worth: mean answerability. found: of questions that something answers, how far it is held.
    misled: of questions that something could mislead. closed: of turns that should close an item
    that is held, those that close exactly the right ones. left: of the other turns with items,
    those that close none; sure: that do not doubt any either. kept: of facts, those that are
    written down. noise: of sentences without a fact, those that are.
    """

    worth: float
    found: float
    misled: float
    closed: float
    left: float
    sure: float
    kept: float
    noise: float


def answered(
    model: RelationModel, dialogues: Sequence[AskedDialogue], later: LaterConfig
) -> dict[str, HeardShares]:
    """What the model leaves answerable, by language."""
    builder = RowBuilder(read_e5())
    seen: dict[str, dict[str, list[float]]] = {}
    for dialogue in dialogues:
        tally = seen.setdefault(
            dialogue.turns[0].language, {one.name: [] for one in fields(HeardShares)}
        )
        _hear(model, dialogue, later, builder, tally)
    return {
        language: HeardShares(
            **{name: float(np.mean(of)) if of else float("nan") for name, of in tally.items()}
        )
        for language, tally in sorted(seen.items())
    }


def answers_table(found: Mapping[str, Mapping[str, HeardShares]]) -> str:
    """A row a model and language, per cent."""
    names = [one.name for one in fields(HeardShares)]
    rows = [
        [label, language, *(f"{100 * getattr(one, name):.1f}" for name in names)]
        for label, by_language in found.items()
        for language, one in by_language.items()
    ]
    return markdown_table(["model", "language", *names], rows)


def _hear(
    model: RelationModel,
    dialogue: AskedDialogue,
    later: LaterConfig,
    builder: RowBuilder,
    tally: dict[str, list[float]],
) -> None:
    held: dict[str, Held] = {}
    noise = False
    for turn in range(len(dialogue.turns)):
        state = State(dialogue, turn, held)
        ruled = by_rule(state)
        if ruled is not None:
            held = ruled
            continue
        posed = posed_as_served(state, builder, later, model.about.thresholds)
        items, segments = decided(model, posed)
        noise |= any(n and kept for n, kept in zip(posed.noise, segments, strict=True))
        _judge(posed, items, segments, tally)
        held = carried(posed, items, segments)
    for one in dialogue.questions(len(dialogue.turns) - 1, later):
        if not one.written:
            continue
        tally["worth"].append(one.answerability(held, later, noise=noise))
        if one.needed:
            tally["found"].append(one.answered(held, later))
        if one.misleading or not one.needed:
            tally["misled"].append(one.misled(held, later, noise=noise))


def decided(model: RelationModel, posed: Posed) -> tuple[list[int], list[int]]:
    """The decision of the model as it serves."""
    said = posed.state.dialogue.turns[posed.state.turn]
    closing = model.relate(said.text, posed.before, posed.texts, said.role)[:, _CLOSING].sum(1)
    parts = [said.text[start:end] for start, end in posed.spans]
    fact = model.worth(said.text, posed.before, parts, said.role)[:, _FACT]
    return greedy(_odds(closing), _odds(fact), posed.least, model.about.thresholds)


def _odds(probabilities: np.ndarray) -> list[float]:
    p = np.clip(probabilities.astype(np.float64), 1e-7, 1 - 1e-7)
    return list(np.log(p / (1 - p)))


def _judge(
    posed: Posed, items: Sequence[int], segments: Sequence[int], tally: dict[str, list[float]]
) -> None:
    gone = posed.state.dialogue.gone(posed.state.turn)
    if items:
        wanted = [bool(gone.intersection(names)) for names in posed.items]
        closed = [chosen == CLOSE for chosen in items]
        if any(wanted):
            tally["closed"].append(wanted == closed)
        else:
            tally["left"].append(not any(closed))
            tally["sure"].append(all(chosen == LEAVE for chosen in items))
    after = posed.after(items, segments)
    told = posed.state.dialogue.told[posed.state.turn]
    tally["kept"] += [after[name].share if name in after else 0.0 for name in told]
    tally["noise"] += [float(kept) for n, kept in zip(posed.noise, segments, strict=True) if n]
