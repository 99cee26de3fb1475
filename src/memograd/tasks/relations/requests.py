"""Requests to forget in written dialogues: what a memory knows of the parts that each may mean.

Dialogues are told to a memory whose reader is the trained one. Where it hears a request, or what
may be one, what `memory/manager/requests.py` weighs is noted for each part of the items near it,
with whether the writer says that it is meant; then all goes that the writer takes back. Each
request is noted again in other memories: beside all items but those meant (people ask to forget
what was never kept), beside these and little else, and where a meant one and another were told in
one breath. A logistic regression finds the weights.

Invariant: a part is meant where the writer takes back all facts of its item, or the fact whose
quotation shares most words with it; what the manager would have decided plays no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from memograd.errors import BadInput
from memograd.memory.language import is_chinese
from memograd.memory.manager.past import present, words_of
from memograd.memory.manager.requests import (
    Part,
    parts_of_items,
    request_evidence,
)
from memograd.memory.reader.fact import Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.relations import RelationModel
from memograd.memory.relations.gate import Linear
from memograd.tasks.relations.gate import separating
from memograd.tasks.relations.lives import Closing, tell_all
from memograd.tasks.relations.rows import part_of

RIDGE: Final = 30.0  # of slopes of standardised evidence


@dataclass(frozen=True)
class Request:
    """evidence: `[n, REQUEST_EVIDENCE]` of the parts near it; meant: `[n]`."""

    dialogue: str
    text: str
    parts: Sequence[Part]
    evidence: np.ndarray
    meant: np.ndarray


def told_requests(model: RelationModel, path: Path) -> list[Request]:
    """The requests to forget that a memory hears in the dialogues of an author batch.

    Raises BadInput where the file is missing, or a line is not a dialogue.
    """
    asked = _Asked(model)
    tell_all(path, asked, told=lambda case: True)
    return asked.found


def fitted_requests(found: Sequence[Request]) -> Linear:
    """The function that weighs what is known of a part. A request with many parts counts as their
    root, for they are much alike.

    Raises BadInput where no part is meant.
    """
    if not any(one.meant.any() for one in found):
        raise BadInput("No request in these dialogues means anything, so nothing can be learnt.")
    weighed = separating(
        np.concatenate([one.evidence for one in found]),
        np.concatenate([one.meant for one in found]),
        RIDGE,
        np.concatenate([np.full(len(one.meant), len(one.meant) ** -0.5) for one in found]),
    )
    return replace(weighed, least=0.0)  # a threshold of the manager bounds it


class _Asked(Closing):
    """Notes what is known of each part that a request may mean."""

    def __init__(self, model: RelationModel) -> None:
        super().__init__(model)
        self.found: list[Request] = []
        self._quotes: dict[str, str] = {}

    def _note(
        self,
        heard: Heard,
        turn: Sequence[Any],
        items: Sequence[MemoryItem],
        recent: frozenset[str],
    ) -> None:
        asks = heard.forget or heard.perhaps
        if not items or heard.turn.said_as != "user" or not asks:
            return
        touched = self._touched(turn, forget=True)
        self._look(heard, items, recent, touched)
        meant = [item for item in items if self._behind(item) & touched]
        others = [item for item in items if item not in meant]
        if meant:
            self._look(heard, others, recent, touched)  # as if it had never been kept
            self._look(heard, [*meant, *others[:1]], recent, touched)  # beside little else
        if meant and others:
            self._look(heard, [self._joined(meant[0], others[0]), *meant[1:]], recent, touched)
            self._look(heard, [self._joined(others[0], meant[0])], recent, touched)

    def _look(
        self,
        heard: Heard,
        items: Sequence[MemoryItem],
        recent: frozenset[str],
        touched: set[str],
    ) -> None:
        if not items:
            return
        parts = parts_of_items(items)
        known = request_evidence(self._model, heard, items, parts, recent)
        meant = [self._is_meant(items[one.item], one, touched) for one in parts]
        self.found.append(
            Request(self._dialogue, heard.turn.text, parts, known, np.array(meant, bool))
        )

    def _joined(self, one: MemoryItem, other: MemoryItem) -> MemoryItem:
        """Both as if they had been told in one breath."""
        first, second = one.text.rstrip(" .。"), present(other.text)
        joint, second = (
            ("，", second.removeprefix("用户")) if is_chinese(first) else (", and ", second)
        )
        joined = replace(one, text=f"{first}{joint}{second}")
        self._facts.setdefault(joined.text, self._behind(one) | self._behind(other))
        return joined

    def _is_meant(self, item: MemoryItem, part: Part, touched: set[str]) -> bool:
        behind = self._behind(item)
        if not behind & touched:
            return False
        if behind <= touched:
            return True
        words = words_of(part.text)
        shared = {name: _share(words, words_of(self._quotes[name])) for name in behind}
        most = max(shared.values())
        return most > 0 and any(shared[name] == most for name in behind & touched)

    def _learn(self, heard: Heard, turn: Sequence[Any]) -> None:
        super()._learn(heard, turn)
        self._quotes |= {name: quote for name, quote, _ in part_of(list(turn), 2)}

    def hears(self, dialogue: str, case: dict[str, Any]) -> None:
        """See `Closing`."""
        super().hears(dialogue, case)
        self._quotes = {}


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, min(len(one), len(other)))
