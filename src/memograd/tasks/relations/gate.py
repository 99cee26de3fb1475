"""Fits the gate of a relation model: what need not be read, and what short chat is worth.

The model teaches what `memory/relations/gate.py` serves. Of each turn of a user it says how sure it
is at most that an item is closed, and a ridge regression finds the log-odds of that in the vectors
of the message alone. Of each sentence of an assistant it says its worth, and another finds the
log-odds of that in what the first layers make of it. The bounds are chosen on other authors.

What a secret is the model does not know, so dialogues written about secrets teach it: what is no
fact there and looks like a secret is one, and what other dialogues tell is none. That is a logistic
regression, whose bound is chosen by the calibrating authors and by those it learns from, each held
out in turn: the calibrating ones tell few facts that look like secrets.

The weights read dialogues in which most messages tell something, and take "no way" or "wifi
dropped" for facts. Dialogues that they have not read teach another logistic regression what is one,
of the vectors that the head reads and of the log-odds that the head gives. Chat counts as much as
all other dialogues together, a sentence of two words as much as one of twenty, for the sentence is
what the reader keeps or drops.

Invariants: below the bounds lie at most MISSED of the turns in which the manager would close, doubt
or link an item, and at most MISSED_KEPT of the rows of assistants of which something is kept, on
the authors that they were chosen by; on those, at most LOST of the facts are taken for secrets. Of
chat, a sentence is a fact where it overlaps a quotation of the writer's by half; one that the
writer's user asks to forget, or that holds a secret by its form, teaches nothing; what is measured
is no part of what was learnt.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from memograd.data import Conversation
from memograd.errors import BadInput
from memograd.memory.reader.parts import asks, read_of_assistant, read_of_user
from memograd.memory.reader.sentences import has_secret, may_hold_secret
from memograd.memory.relations.gate import WORTH_SEEN, Gate, Linear, digest
from memograd.memory.relations.model import RelationModel
from memograd.memory.relations.rows import Span
from memograd.memory.relations.weights import WORTHS, Weights
from memograd.tasks.relations.rows import CLOSES, FACT, WrittenTurn
from memograd.tasks.relations.wording import holds, spans_of

TURNS: Final = 1_500  # that it is fitted to
MISSED: Final = 0.005
MISSED_KEPT: Final = 0.05  # most of it is a line of a list, and the turn is found as a whole
RIDGE: Final = 100.0
RIDGE_KEPT: Final = 3_000.0
LIKELY: Final = 0.3  # sentences of at least that worth count LIKELY_COUNTS times
LIKELY_COUNTS: Final = 4.0
LOST: Final = 0.001
FOLDS: Final = 4  # of the authors learnt from
SECRET: Final = "secret"  # the kind of these dialogues
RIDGE_SECRET: Final = 300.0
_STEPS: Final = 12
_LEAST_ODDS: Final = 1e-3

# Of short chat.
CHAT: Final = "chat"  # the kind of these dialogues
RIDGE_WORTH: Final = 1_000.0  # of the vectors: less costs other dialogues more than chat gains
FACT_COUNTS: Final = 2.0  # times as much: what is dropped is found by nobody
RIDGE_SEEN: Final = 10.0  # of the log-odds and lengths
_WISH: Final = WORTHS.index("forget")
_LIKELY_WISH: Final = 0.3


@dataclass(frozen=True)
class SeenTurns:
    """Of n turns: what the gate sees `[n, hidden]`, and the highest probability that the model
    closes one of their items `[n]`."""

    vectors: np.ndarray
    closing: np.ndarray


def seen(model: RelationModel, turns: Sequence[WrittenTurn]) -> SeenTurns:
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
        closing.append(model.relate(said.text, before, items)[:, CLOSES].sum(1).max())
    return SeenTurns(np.stack(vectors), np.array(closing))


@dataclass(frozen=True)
class Answers:
    """Of n sentences of assistants: what the gate sees `[n, 2 hidden]`, their worth `[n]`, and the
    message `[n]` that each stands in."""

    vectors: np.ndarray
    worth: np.ndarray
    message: np.ndarray


def answers(model: RelationModel, talks: Sequence[Conversation]) -> Answers:
    """What assistants say in these conversations, read to the end; of long ones the beginning, as
    the reader reads it. model: one without a gate. Raises BadInput where no assistant speaks."""
    vectors, worth, message = [], [], []
    for talk in talks:
        said = [(turn.said_as, turn.text) for turn in talk.turns]
        for number, (role, text) in enumerate(said):
            read, placed = read_of_assistant(text) if role == "assistant" else ("", [])
            if not placed:
                continue
            sentences = [sentence for _, _, sentence in placed]
            before = said[max(0, number - 3) : number]
            order, seen_ = model.early_vectors(read, before, sentences)
            told = model.worth(read, before, sentences, role="assistant")[order, FACT]
            vectors.append(seen_)
            worth.append(told)
            message += [len(worth)] * len(order)
    if not vectors:
        raise BadInput("No assistant speaks in these conversations, so nothing can be fitted.")
    return Answers(np.concatenate(vectors), np.concatenate(worth), np.array(message))


def fitted(
    weights: Weights,
    turns: Sequence[WrittenTurn],
    others: Sequence[WrittenTurn],
    talks: Sequence[Conversation] = (),
    other_talks: Sequence[Conversation] = (),
) -> Gate:
    """The gate of these weights; turns, talks: to learn from. others, other_talks: of other
    authors, for the bounds. Without talks, or where nothing of them is kept, all that an assistant
    says is read."""
    model = RelationModel(weights)
    drawn = [said for said in turns if said.role == "user" and said.items and said.group is None]
    drawn = random.Random(0).sample(drawn, min(TURNS, len(drawn)))
    learnt, bounding = seen(model, drawn), seen(model, others)
    closes = _regressed(learnt.vectors, learnt.closing, RIDGE, np.ones(len(learnt.closing)))
    scores = closes.scores(bounding.vectors)[
        bounding.closing >= weights.about.thresholds.link_above
    ]
    if not len(scores):
        raise BadInput("The model closes nothing in these dialogues, so no bound can be chosen.")
    closes = replace(closes, least=float(np.quantile(scores, MISSED)))
    keeps = _keeps(model, talks, other_talks) if talks else None
    secrets = fitted_secrets(told(model, turns), told(model, others))
    return Gate(closes, digest(weights), keeps, secrets)


def _keeps(
    model: RelationModel, talks: Sequence[Conversation], others: Sequence[Conversation]
) -> Linear | None:
    """None where nothing is kept of what the others' assistants say: no bound can be chosen."""
    learnt, bounding = answers(model, talks), answers(model, others)
    counts = np.where(learnt.worth >= LIKELY, LIKELY_COUNTS, 1.0)
    keeps = _regressed(learnt.vectors, learnt.worth, RIDGE_KEPT, counts)
    kept = bounding.worth >= model.about.thresholds.keep_assistant_above
    scores = keeps.scores(bounding.vectors)
    best = [scores[bounding.message == one].max() for one in np.unique(bounding.message[kept])]
    return replace(keeps, least=float(np.quantile(best, MISSED_KEPT))) if best else None


def _regressed(
    vectors: np.ndarray, probabilities: np.ndarray, ridge: float, counts: np.ndarray
) -> Linear:
    """The log-odds as a linear function of `[n, width]`; counts: how often each is counted."""
    mean, spread = vectors.mean(0), vectors.std(0) + _LEAST_ODDS
    inputs = np.c_[(vectors - mean) / spread, np.ones(len(vectors))].astype(float)
    sure = np.clip(probabilities, _LEAST_ODDS, 1 - _LEAST_ODDS)
    squares = (inputs * counts[:, None]).T @ inputs + ridge * np.eye(inputs.shape[1])
    slopes = np.linalg.solve(squares, (inputs * counts[:, None]).T @ np.log(sure / (1 - sure)))
    weight = slopes[:-1] / spread
    return Linear(weight.astype(np.float32), float(slopes[-1] - mean @ weight), -np.inf)


@dataclass(frozen=True)
class Told:
    """Of n sentences and clauses of users that may hold a secret: what the gate sees
    `[n, 2 hidden]`, whether each does `[n]`, or has a fact `[n]`, and whether rules find a secret
    in it `[n]`. author: of each `[n]`. facts: by author, of all sentences and clauses, those that
    have one and no secret."""

    vectors: np.ndarray
    secret: np.ndarray
    fact: np.ndarray
    found: np.ndarray
    author: np.ndarray
    facts: Counter[str]

    def of(self, authors: Sequence[str], *, others: bool = False) -> Told:
        """What these authors say, or all others."""
        inside = np.isin(self.author, authors) != others
        return Told(
            self.vectors[inside],
            self.secret[inside],
            self.fact[inside],
            self.found[inside],
            self.author[inside],
            Counter({who: n for who, n in self.facts.items() if (who in authors) != others}),
        )


def told(model: RelationModel, turns: Sequence[WrittenTurn]) -> Told:
    """What users say in these dialogues.

    In a dialogue of the kind SECRET what is no fact holds one. A question there says little, and so
    does what rules take for a secret elsewhere: both are left out.
    """
    vectors = [np.zeros((0, 2 * model.about.hidden), np.float32)]
    rows: list[tuple[bool, bool, bool]] = []
    authors: list[str] = []
    facts: Counter[str] = Counter()
    for said in turns:
        if said.role != "user" or said.group is not None:
            continue
        quotes = spans_of([one.quote for one in said.facts], said.text)
        author = said.dialogue.partition(":")[0].partition("-")[2]
        parts: dict[str, tuple[bool, bool, bool]] = {}
        for start, end, text in read_of_user(said.text):
            fact = any(holds(Span(start, end), quote) for quote in quotes)
            rest = _without(said.text, Span(start, end), quotes)
            secret = said.kind == SECRET and may_hold_secret(rest)
            facts[author] += fact and not secret
            doubtful = asks(text) if said.kind == SECRET else has_secret(text)
            if may_hold_secret(text) and (fact or not doubtful):
                parts[text] = (secret, fact and not secret, has_secret(text))
        if parts:
            order, seen_ = model.late_vectors(said.text, said.before[-3:], list(parts))
            every = list(parts.values())
            vectors.append(seen_)
            rows += [every[number] for number in order]
            authors += [author] * len(order)
    secret_, fact_, found = np.array(rows, bool).reshape(-1, 3).T
    return Told(np.concatenate(vectors), secret_, fact_, found, np.array(authors, str), facts)


def _without(text: str, segment: Span, quotes: Sequence[Span]) -> str:
    """The segment without what is quoted."""
    inside = [
        letter
        for place, letter in enumerate(text[slice(*segment)], segment.start)
        if not any(quote.start <= place < quote.end for quote in quotes)
    ]
    return "".join(inside)


def fitted_secrets(learnt: Told, bounding: Told) -> Linear | None:
    """None where no secret is told, or no fact that may be taken for one: nothing can be learnt."""
    authors, judged_ = sorted(set(learnt.facts)), []
    for number in range(FOLDS):
        held_out = authors[number::FOLDS]
        rest, others = learnt.of(held_out, others=True), learnt.of(held_out)
        if rest.secret.any() and others.fact.any():
            judged_.append((separating(rest.vectors, rest.secret, RIDGE_SECRET), others))
    if not learnt.secret.any() or not bounding.fact.any():
        return None
    secrets = separating(learnt.vectors, learnt.secret, RIDGE_SECRET)
    judged_.append((secrets, bounding))
    scores = [linear.scores(one.vectors)[one.fact] for linear, one in judged_]
    highest = np.sort(np.concatenate(scores))[::-1]
    facts = sum(one.facts.total() for _, one in judged_)
    bound = np.float32(highest[min(int(LOST * facts), len(highest) - 1)])
    return replace(secrets, least=float(np.nextafter(bound, np.float32(np.inf))))


def separating(
    vectors: np.ndarray,
    right: np.ndarray,
    ridge_of: float | np.ndarray,
    counts: np.ndarray | None = None,
) -> Linear:
    """The log-odds that each of `[n, width]` is right, as a logistic regression finds them.

    ridge_of: of each slope of a standardised number, one for all or `[width]`. counts: `[n]`, how
    often each is counted; None: once.
    """
    mean, spread = vectors.mean(0), vectors.std(0) + _LEAST_ODDS
    inputs = np.c_[(vectors - mean) / spread, np.ones(len(vectors))].astype(float)
    right = right.astype(float)
    counts = np.ones(len(right)) if counts is None else counts
    ridge = np.diag(np.append(np.broadcast_to(ridge_of, vectors.shape[1]), 0.0))
    slopes = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):  # of Newton's method
        sure = 1 / (1 + np.exp(-inputs @ slopes))
        down = inputs.T @ (counts * (sure - right)) + ridge @ slopes
        bend = (inputs * (counts * sure * (1 - sure))[:, None]).T @ inputs + ridge
        slopes -= np.linalg.solve(bend, down)
    weight = slopes[:-1] / spread
    return Linear(weight.astype(np.float32), float(slopes[-1] - mean @ weight), -np.inf)


@dataclass(frozen=True)
class Missed:
    """turns: with items. closes: in which the manager would close, doubt or link one. missed: of
    these, that the gate leaves out. spared: of the others."""

    turns: int
    closes: int
    missed: int
    spared: int


def judged(gate: Gate, found: SeenTurns, link_above: float) -> Missed:
    """What the gate leaves out; link_above: from where on the memory notes that an item may have
    changed."""
    out = np.array([not gate.closes.lets_in(vector[None]) for vector in found.vectors])
    closes = found.closing >= link_above
    return Missed(
        len(out), int(closes.sum()), int((out & closes).sum()), int((out & ~closes).sum())
    )


@dataclass(frozen=True)
class FoundSecrets:
    """secrets: sentences and clauses that hold one. by_rules, by_both: of these, that rules find,
    and that rules or the gate find. facts: sentences and clauses with one. lost: of these, that the
    gate takes for a secret and rules do not."""

    secrets: int
    by_rules: int
    by_both: int
    facts: int
    lost: int


def judged_secrets(secrets: Linear, found: Told) -> FoundSecrets:
    """What the gate finds beside the rules."""
    inside = secrets.scores(found.vectors) >= secrets.least
    return FoundSecrets(
        int(found.secret.sum()),
        int((found.secret & found.found).sum()),
        int((found.secret & (found.found | inside)).sum()),
        found.facts.total(),
        int((found.fact & inside & ~found.found).sum()),
    )


@dataclass(frozen=True)
class MissedAnswers:
    """messages: of assistants. keeps: of which something is kept. missed: of these, those of which
    the gate sees nothing. let_in: messages of which it sees something."""

    messages: int
    keeps: int
    missed: int
    let_in: int


def judged_answers(keeps: Linear, found: Answers, keep_above: float) -> MissedAnswers:
    """What the gate leaves out of what assistants say; keep_above: the worth that is kept."""
    inside = keeps.scores(found.vectors) >= keeps.least
    let_in = set(found.message[inside].tolist())
    kept = set(found.message[found.worth >= keep_above].tolist())
    return MissedAnswers(
        len(set(found.message.tolist())), len(kept), len(kept - let_in), len(let_in)
    )


@dataclass(frozen=True)
class Worths:
    """Of n sentences and clauses of users: what the function sees `[n, 2 hidden + WORTH_SEEN]`,
    whether each is a fact `[n]`, and whether it stands in a chat `[n]`."""

    seen: np.ndarray
    fact: np.ndarray
    chat: np.ndarray


def told_worths(model: RelationModel, turns: Sequence[WrittenTurn]) -> Worths:
    """What users say in these dialogues; model: one without the function."""
    width = 2 * model.about.hidden + WORTH_SEEN
    seen, fact, chat = [np.zeros((0, width), np.float32)], [np.zeros(0, bool)], []
    for said in turns:
        if said.role != "user" or said.group is not None or said.met or said.kind == SECRET:
            continue
        quotes = spans_of([one.quote for one in said.facts], said.text)
        parts = {
            text: any(holds(Span(start, end), quote) for quote in quotes)
            for start, end, text in read_of_user(said.text)
            if not has_secret(text)
        }
        if not parts:
            continue
        before = said.before[-3:]
        order, vectors = model.worth_seen(said.text, before, list(parts))
        wish = model.worth(said.text, before, list(parts))[order, _WISH]
        right = np.array(list(parts.values()), bool)[order]
        told = right | (wish < _LIKELY_WISH)
        seen.append(vectors[told])
        fact.append(right[told])
        chat += [said.kind == CHAT] * int(told.sum())
    return Worths(np.concatenate(seen), np.concatenate(fact), np.array(chat, bool))


def fitted_worth(learnt: Worths) -> Linear:
    """Raises BadInput where nothing, or everything, is a fact."""
    if learnt.fact.all() or not learnt.fact.any():
        raise BadInput("These dialogues tell facts only, or none, so no worth can be learnt.")
    chats, others = int(learnt.chat.sum()), int((~learnt.chat).sum())
    counts = np.where(learnt.chat, max(1.0, others / max(chats, 1)), 1.0)
    counts = np.where(learnt.fact, FACT_COUNTS, 1.0) * counts
    ridge = np.full(learnt.seen.shape[1], RIDGE_WORTH)
    ridge[-WORTH_SEEN:] = RIDGE_SEEN
    corrected = separating(learnt.seen, learnt.fact, ridge, counts)
    return replace(corrected, least=0.0)  # thresholds of the reader bound it


@dataclass(frozen=True)
class KeptOfChat:
    """sentences: and clauses of users. facts: of these. kept_facts, kept_others: shares of the
    facts, and of the others, that reach the bound; before: the same by the head alone."""

    sentences: int
    facts: int
    kept_facts: float
    kept_others: float
    kept_facts_before: float
    kept_others_before: float


def judged_worth(worth: Linear, found: Worths, keep_above: float) -> KeptOfChat:
    """What reaches the bound with the function and without it."""
    least = np.log(keep_above / (1 - keep_above))
    now, before = worth.scores(found.seen) >= least, found.seen[:, -WORTH_SEEN] >= least

    def share(kept: np.ndarray, of: np.ndarray) -> float:
        return round(float(kept[of].mean()), 3) if of.any() else 0.0

    return KeptOfChat(
        len(found.fact),
        int(found.fact.sum()),
        share(now, found.fact),
        share(now, ~found.fact),
        share(before, found.fact),
        share(before, ~found.fact),
    )
