"""Messages beside one to three memories: which of these they close.

Somebody who has told a memory two things and then says "done", "strewth" or "wrong chat" closes
neither, but beside so few one of them always looks closed: the model has learnt from messages of
which most speak of an item near them. Dialogues are told to a memory whose reader is the trained
one, and of each message is noted what is known of the items that it may close
(`memory/manager/crowded.py`): of its own, with one or two beside it, and of two strangers, things
that were told in other dialogues, as if they had just been said. Of twins (kind `life`: facts, and
a message that closes one or only sounds so) only the last message is noted, and their facts, which
stand in the speaker's words, are nobody's strangers. A logistic regression finds the weights. How
many items there are it is not told: twins always have two or three, so the number would tell where
a message comes from.

Invariant: a stranger is never closed; an item of the dialogue is closed where the writer says so;
what the manager would have decided plays no part.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from memograd.data.record_files import json_lines
from memograd.errors import BadInput
from memograd.memory.language import is_chinese
from memograd.memory.manager.crowded import EVIDENCE, LEAST, evidence, few_evidence
from memograd.memory.manager.past import present
from memograd.memory.manager.relations import FEW
from memograd.memory.reader.fact import Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.relations import RelationModel
from memograd.memory.relations.gate import Linear
from memograd.tasks.relations.gate import separating
from memograd.tasks.relations.lives import Closing, tell_all
from memograd.tasks.relations.rows import CLOSES, part_of

RIDGE: Final = 30.0  # of slopes of standardised evidence
PARTS: Final = 5  # in which the dialogues are held out
LET_PASS: Final = 0.92  # what is let pass less surely is told by the way
STRANGERS: Final = 2  # items of other dialogues beside a message
OF_LIVES: Final = 4  # every so many-th message beside many items meets strangers
_LONG_AGO: Final = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Looked:
    """A message beside a few items.

    evidence: `[n, few_evidence(model)]` of the items that may look closed; closed: `[n]`. stranger:
    whether they were told in another dialogue.
    """

    dialogue: str
    text: str
    evidence: np.ndarray
    closed: np.ndarray
    stranger: bool


def told_few(model: RelationModel, path: Path) -> list[Looked]:
    """What the messages of an author batch meet, of their own and of strangers.

    Raises BadInput where the file is missing, or a line is not a dialogue.
    """
    told = [
        (number, quote, statement)
        for number, case in json_lines(path, "dialogues")
        if case["k"] != "life"
        for turn in case["t"]
        for _, quote, statement in part_of(turn, 2)
    ]
    looking = _Few(model, told)
    tell_all(path, looking, told=lambda case: True)
    return looking.found


def fitted_few(found: Sequence[Looked]) -> Linear:
    """The function that tells whether a message closes one of a few items; its bound lets pass
    LET_PASS of those that are closed, of dialogues that it has not learnt from.

    Raises BadInput where no message closes an item.
    """
    known = [one for one in found if len(one.closed)]
    if not any(one.closed.any() for one in known):
        raise BadInput("No message of these dialogues closes an item, so nothing can be learnt.")
    parts = {name: n % PARTS for n, name in enumerate(sorted({one.dialogue for one in known}))}
    odds: list[float] = []
    for part in range(PARTS):
        learnt = _separating([one for one in known if parts[one.dialogue] != part])
        for one in known:
            if parts[one.dialogue] == part:
                odds += learnt.scores(one.evidence)[one.closed].tolist()
    return replace(_separating(known), least=float(np.quantile(odds, 1 - LET_PASS)))


def _separating(known: Sequence[Looked]) -> Linear:
    vectors = np.concatenate([one.evidence for one in known])
    vectors[:, EVIDENCE.index("items")] = 0.0
    return separating(
        vectors,
        np.concatenate([one.closed for one in known]),
        RIDGE,
    )


class _Few(Closing):
    """Notes what is known of a few items beside each message, of a life beside its last."""

    def __init__(self, model: RelationModel, told: Sequence[tuple[int, str, str]]) -> None:
        super().__init__(model)
        self.found: list[Looked] = []
        self._told, self._draw = told, random.Random(0)
        self._met = 0

    def hears(self, dialogue: str, case: dict[str, Any]) -> None:
        """See `_Knowing.hears`."""
        super().hears(dialogue, case)
        self._only = case["t"][-1][1] if case["k"] == "life" else None

    def _note(
        self,
        heard: Heard,
        turn: Sequence[Any],
        items: Sequence[MemoryItem],
        recent: frozenset[str],
    ) -> None:
        if heard.turn.said_as != "user" or heard.forget or self._touched(turn, forget=True):
            return
        if self._only not in (None, heard.turn.text):
            return
        touched = self._touched(turn, forget=False)
        closed = [item for item in items if self._behind(item) & touched]
        others = [item for item in items if item not in closed]
        if 0 < len(items) <= FEW:
            self._look(heard, items, recent, closed)
        elif closed:
            self._look(heard, [*closed[:1], *others[: FEW - 1]], recent, closed)
        self._met += 1
        if len(items) <= FEW or self._met % OF_LIVES == 0:
            self._meet(heard)

    def _meet(self, heard: Heard) -> None:
        number = int(self._dialogue.rpartition(":")[2])
        chinese = is_chinese(heard.turn.text)
        foreign = [one for one in self._told if one[0] != number and is_chinese(one[2]) == chinese]
        drawn = self._draw.sample(foreign, min(STRANGERS, len(foreign)))
        scope = Scope(user_id="stranger")
        items = [
            MemoryItem(f"stranger-{n}", statement, scope, _LONG_AGO, _LONG_AGO)
            for n, (_, _, statement) in enumerate(drawn)
        ]
        if not items:
            return
        before = tuple(("user", quote) for _, quote, _ in drawn)
        beside = replace(heard, before=before if self._draw.random() < 0.5 else heard.before)
        self._look(beside, items, frozenset(item.id for item in items[-1:]), (), stranger=True)

    def _look(
        self,
        heard: Heard,
        items: Sequence[MemoryItem],
        recent: frozenset[str],
        closed: Sequence[MemoryItem],
        *,
        stranger: bool = False,
    ) -> None:
        texts = [present(item.text) for item in items]
        read = self._model.relate(heard.turn.text, heard.before, texts)
        places = [n for n, one in enumerate(read[:, CLOSES].sum(1)) if one >= LEAST]
        names = few_evidence(self._model)
        known = evidence(self._model, heard, items, recent, read, places, names)
        is_closed = np.array([items[n] in closed for n in places], bool)
        text = heard.turn.text
        self.found.append(Looked(self._dialogue, text, known, is_closed, stranger))
