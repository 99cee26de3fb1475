"""What short chat is worth: the linear function that corrects the worth of a user's sentences.

The weights read dialogues in which most messages tell something, and take "no way" or "wifi
dropped" for facts. Dialogues that they have not read teach a logistic regression what is one, of
the vectors that the head reads and of the log-odds that the head gives (`memory/relations/gate.py`
serves it). Chat counts as much as all other dialogues together, a sentence of two words as much as
one of twenty, for the sentence is what the reader keeps or drops.

Invariant: a sentence is a fact where it overlaps a quotation of the writer's by half; one that
the writer's user asks to forget, or that holds a secret by its form, teaches nothing. What is
measured is no part of what was learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from memograd.errors import BadInput
from memograd.memory.reader.parts import read_of_user
from memograd.memory.reader.sentences import has_secret
from memograd.memory.relations.gate import WORTH_SEEN, Linear
from memograd.memory.relations.model import RelationModel
from memograd.memory.relations.rows import Span
from memograd.memory.relations.weights import WORTHS
from memograd.tasks.relations.gate import SECRET, separating
from memograd.tasks.relations.rows import WrittenTurn
from memograd.tasks.relations.wording import holds, spans_of

CHAT: Final = "chat"  # the kind of these dialogues
RIDGE: Final = 1_000.0  # of the vectors: less of it costs other dialogues more than chat gains
FACT_COUNTS: Final = 2.0  # times as much: what is dropped is found by nobody
RIDGE_SEEN: Final = 10.0  # of the log-odds and lengths
_WISH: Final = WORTHS.index("forget")
_LIKELY_WISH: Final = 0.3


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
    ridge = np.full(learnt.seen.shape[1], RIDGE)
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
