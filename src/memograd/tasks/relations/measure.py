"""What a relation model decides on authors that it was not trained on, as it matters to a memory.

A turn *closes* when it should end the validity of one item or more (replace, correct, end,
retract); it is right when exactly those items are closed. Every other turn *leaves*; it is right
when no item is closed. An item counts as closed from a probability on.

Authors differ in what they call unrelated, beside or a comment, and a memory does the same for all
three; so the temperature of the relations is that of whether an item is closed.

Dialogues are also heard from beginning to end: the model decides as a memory does (`decisions`,
without noise), each message beside the items that its own earlier decisions left. At the end the
written questions are asked (`questions`).

Invariants: temperatures and the threshold are chosen on the dialogues of even number, and
everything that is reported is measured on the others; a model that decides every turn as the
dialogues say answers every question, and is misled by none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Final

import numpy as np

from memograd.evaluation.report import markdown_table
from memograd.memory.embedders.e5_weights import read_e5
from memograd.memory.relations.model import RelationModel
from memograd.memory.relations.rows import RowBuilder
from memograd.memory.relations.weights import CLOSING, RELATIONS, WORTHS, Weights
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
from memograd.tasks.relations.rows import CLOSES, FACT, LEAVES, WrittenTurn, segments_of, worths_of
from memograd.tasks.relations.settings import LaterConfig

THRESHOLDS: Final = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
HARMLESS: Final = 0.97
"""Share of leaving turns that the chosen threshold must leave untouched."""

_TEMPERATURES: Final = np.geomspace(0.5, 4.0, 61)
_SHIFTS: Final = [0.25 * n for n in range(-16, 9)]
_LAST_BIAS: Final = "relations.outer.bias"

Probabilities = list[np.ndarray]


@dataclass(frozen=True)
class Decided:
    """How many turns there are of a kind, and the share that is decided rightly. None: no turn."""

    language: str
    kind: str
    closing: int
    closed: float | None
    leaving: int
    left: float | None


@dataclass(frozen=True)
class RelationMeasures:
    """relations, worths: share of items and of segments with the right label. by_threshold: for
    each, (threshold, all kinds together by language). decided: by kind at the chosen threshold."""

    threshold: float
    relations: dict[str, float]
    worths: dict[str, float]
    by_threshold: list[tuple[float, list[Decided]]]
    decided: list[Decided]


def related(
    model: RelationModel, turns: Sequence[WrittenTurn], *, as_read: bool = True, before: bool = True
) -> Probabilities:
    """The relations of every turn's items `[items, 9]`.

    as_read: items as the memory's reader words them, not as statements. before: with what came
    before.
    """
    return [
        model.relate(
            said.text,
            said.before[-3:] if before else [],
            _items(said, as_read),
            said.role,
        )
        for said in turns
    ]


def _items(said: WrittenTurn, as_read: bool) -> list[str]:
    """Two facts that the reader leaves in one sentence are told apart by their statements."""
    read = [fact.item for fact in said.items]
    return [
        fact.item if as_read and fact.item and read.count(fact.item) == 1 else fact.statement
        for fact in said.items
    ]


def valued(model: RelationModel, turns: Sequence[WrittenTurn]) -> Probabilities:
    """The worth of every turn's clauses `[clauses, 3]`."""
    found = []
    for said in turns:
        clauses = [said.text[a:b] for a, b in segments_of(said.text, clauses=True)]
        found.append(model.worth(said.text, said.before[-2:], clauses, said.role))
    return found


def calibrated(weights: Weights, turns: Sequence[WrittenTurn]) -> Weights:
    """The model with temperatures, a shift and the threshold that suit the even dialogues.

    The shift is what all closing relations gain on the others; it becomes part of the last bias.
    """
    even = [said for said in turns if _number(said) % 2 == 0]
    raw = RelationModel(
        replace(weights, about=replace(weights.about, relation_temperature=1, worth_temperature=1))
    )
    relations = related(raw, even) + related(raw, even, before=False)
    temperature, shift = _best(relations, _gold(even) * 2, [LEAVES, CLOSES], _SHIFTS)
    worth_temperature, _ = _best(
        valued(raw, even), _gold_worths(even), [[n] for n in range(len(WORTHS))], [0.0]
    )
    about = replace(
        weights.about, relation_temperature=temperature, worth_temperature=worth_temperature
    )
    weights = raised(weights, shift)
    model = RelationModel(replace(weights, about=about))
    judged = [
        *zip(even, related(model, even), strict=True),
        *zip(even, related(model, even, before=False), strict=True),
    ]
    harmless = [
        threshold
        for threshold in np.arange(0.3, 0.96, 0.05).round(2)
        if _left_share(judged, threshold) >= HARMLESS
    ]
    chosen = float(harmless[0]) if harmless else 0.95
    return replace(weights, about=replace(about, close_above=chosen))


def raised(weights: Weights, by: float) -> Weights:
    """The same weights that close more; by: what the logits of all closing relations gain, before
    they are divided by the temperature."""
    bias = weights.vectors[_LAST_BIAS].copy()
    bias[CLOSES] += np.float32(by)
    return replace(weights, vectors={**weights.vectors, _LAST_BIAS: bias})


def measured(
    model: RelationModel,
    turns: Sequence[WrittenTurn],
    look: Callable[[RelationModel, Sequence[WrittenTurn]], Probabilities] = related,
) -> RelationMeasures:
    """Of the odd dialogues."""
    odd = [said for said in turns if _number(said) % 2 == 1]
    probabilities, worths = look(model, odd), valued(model, odd)
    by_language = {
        language: [n for n, said in enumerate(odd) if said.language == language]
        for language in sorted({said.language for said in odd})
    }
    gold, gold_worths = _gold(odd), _gold_worths(odd)

    def right(found: Probabilities, wanted: list[list[int]], numbers: list[int]) -> float:
        hits = [
            int(row.argmax()) == label
            for n in numbers
            for row, label in zip(found[n], wanted[n], strict=True)
        ]
        return float(np.mean(hits)) if hits else float("nan")

    return RelationMeasures(
        model.about.close_above,
        {name: right(probabilities, gold, ns) for name, ns in by_language.items()},
        {name: right(worths, gold_worths, ns) for name, ns in by_language.items()},
        [
            (threshold, _decided(odd, probabilities, threshold, by_kind=False))
            for threshold in THRESHOLDS
        ],
        _decided(odd, probabilities, model.about.close_above, by_kind=True),
    )


def write_report(found: dict[str, RelationMeasures], folder: Path) -> str:
    """Writes `decisions.json` and `decisions.md`; returns the text of the latter."""
    text = "\n\n".join(f"## {title}\n\n{_markdown(one)}" for title, one in found.items())
    plain = {title: asdict(one) for title, one in found.items()}
    (folder / "decisions.json").write_text(json.dumps(plain, indent=2), encoding="utf-8")
    (folder / "decisions.md").write_text(text + "\n", encoding="utf-8")
    return text


def _markdown(found: RelationMeasures) -> str:
    def percent(share: float | None) -> str:
        return "" if share is None else f"{100 * share:.1f}"

    def cells(one: Decided) -> list[str]:
        return [str(one.closing), percent(one.closed), str(one.leaving), percent(one.left)]

    head = ["closing turns", "exactly closed", "leaving turns", "left"]
    labels = [
        [language, percent(share), percent(found.worths[language])]
        for language, share in found.relations.items()
    ]
    curve = [
        [f"{threshold:g}", one.language, *cells(one)]
        for threshold, decided in found.by_threshold
        for one in decided
    ]
    kinds = [[one.language, one.kind, *cells(one)] for one in found.decided]
    return "\n\n".join(
        [
            markdown_table(["language", "relations right", "worths right"], labels),
            markdown_table(["threshold", "language", *head], curve),
            f"By kind, closed from {found.threshold:g}:",
            markdown_table(["language", "kind", *head], kinds),
        ]
    )


def _decided(
    turns: Sequence[WrittenTurn], probabilities: Probabilities, threshold: float, *, by_kind: bool
) -> list[Decided]:
    groups: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for said, found in zip(turns, probabilities, strict=True):
        if said.role == "user" and len(said.items):
            key = said.language, said.kind if by_kind else "all"
            groups.setdefault(key, []).append(_outcome(said, found, threshold))
    rows = []
    for (language, kind), outcomes in sorted(groups.items()):
        closing = [right for closes, right in outcomes if closes]
        leaving = [right for closes, right in outcomes if not closes]
        rows.append(
            Decided(
                language,
                kind,
                len(closing),
                float(np.mean(closing)) if closing else None,
                len(leaving),
                float(np.mean(leaving)) if leaving else None,
            )
        )
    return rows


def _outcome(said: WrittenTurn, found: np.ndarray, threshold: float) -> tuple[bool, bool]:
    """Whether the turn closes something, and whether exactly the right items are closed."""
    wanted = np.array([name in CLOSING for name in said.relations])
    closed = found[:, CLOSES].sum(axis=1) > threshold
    return bool(wanted.any()), bool((wanted == closed).all())


def _left_share(judged: Sequence[tuple[WrittenTurn, np.ndarray]], threshold: float) -> float:
    outcomes = [_outcome(said, found, threshold) for said, found in judged if len(said.items)]
    left = [right for closes, right in outcomes if not closes]
    return float(np.mean(left)) if left else 1.0


def _best(
    found: Probabilities,
    wanted: list[list[int]],
    groups: Sequence[Sequence[int]],
    shifts: Sequence[float],
) -> tuple[float, float]:
    """The temperature and the shift of the last group with the least cross entropy of the group
    that the label is in (Platt 1999; Guo et al. 2017, arXiv:1706.04599)."""
    logs = np.log(np.concatenate(found).astype(np.float64) + 1e-12)
    group_of = {label: number for number, group in enumerate(groups) for label in group}
    labels = np.array([group_of[label] for row in wanted for label in row])
    last = np.isin(np.arange(logs.shape[1]), groups[-1])

    def loss(temperature: float, shift: float) -> float:
        scaled = (logs + shift * last) / temperature
        scaled -= np.logaddexp.reduce(scaled, axis=1, keepdims=True)
        grouped = np.stack(
            [np.logaddexp.reduce(scaled[:, list(group)], axis=1) for group in groups], axis=1
        )
        return float(-grouped[np.arange(len(labels)), labels].mean())

    if not len(labels):
        return 1.0, 0.0
    tried = [(loss(float(t), s), float(t), s) for t in _TEMPERATURES for s in shifts]
    return min(tried)[1:]


def _gold(turns: Sequence[WrittenTurn]) -> list[list[int]]:
    return [[RELATIONS.index(name) for name in said.relations] for said in turns]


def _gold_worths(turns: Sequence[WrittenTurn]) -> list[list[int]]:
    return [worths_of(said, segments_of(said.text, clauses=True)) for said in turns]


def _number(said: WrittenTurn) -> int:
    return int(said.dialogue.rpartition(":")[2])


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
    closing = model.relate(said.text, posed.before, posed.texts, said.role)[:, CLOSES].sum(1)
    parts = [said.text[start:end] for start, end in posed.spans]
    fact = model.worth(said.text, posed.before, parts, said.role)[:, FACT]
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
