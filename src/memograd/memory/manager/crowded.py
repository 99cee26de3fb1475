"""What is known of an item that a message may close, and how surely it closes one of many.

Among the memories of months some item always looks closed. In a row of twelve the model gives the
right one 0.6 and, when nothing is closed, a bystander as much. So the few that stand out are read
again alone, with what came before the message and without it, and sentence by sentence; and all
that is known of them (by how much they stand out, whether the model points at another value, which
words both share) is weighed by one linear function. It is fitted to written lives that the model
has not read (`tasks/relations/lives.py`). Beside few items the same is weighed, and what the second
reading says (`memory/relations/second.py`), by a function of its own (`tasks/relations/few.py`).

Most of those that stand out are bystanders, and after two or three readings no other one could
make more of them: where the function stays below what anything is done from, whatever is still to
be read, nothing more is read.

Invariants: an item below `LEAST` in its row keeps what the row says, so what is weighed is at most
`MOST` items a message; an item that reaches the bound has the number that all readings give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from memograd.memory.language import is_chinese
from memograd.memory.manager.counted import of_one_unit
from memograd.memory.manager.cues import ADDS, ADDS_SURELY, CORRECTS
from memograd.memory.manager.other_value import pointed_at
from memograd.memory.manager.past import parts_of, present, shared_content
from memograd.memory.manager.rewriting import closing_of_parts
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.sentences import split_sentences
from memograd.memory.records.items import MemoryItem

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel
    from memograd.memory.relations.gate import Linear

LEAST: Final = 0.1  # of closing, in the row
MOST: Final = 5  # items of a message that are read again
SENTENCES: Final = 6  # of a message that are read alone: half of a day's talk hides what ends
EVIDENCE: Final = (
    "row", "alone", "bare", "part", "row_margin", "alone_margin", "points", "shared", "shares",
    "place", "recent", "assistant", "row_unrelated", "row_comment", "row_beside",
    "alone_unrelated", "alone_same", "alone_detail", "alone_comment", "alone_beside",
    "row_correct", "alone_correct", "row_end", "alone_end", "corrects", "corrects_recent", "adds",
    "adds_surely", "other_unit", "item_length", "message_length", "items", "chinese", "questions",
    "sentence",
)  # fmt: skip
"""What is known of an item, in the order of the function's weights."""
SECOND: Final = ("second", "second_alone")
"""What the second reading says: among the other items, and of the item alone."""
_IN_ROW: Final = ("unrelated", "comment", "beside", "correct", "end")
_ALONE: Final = ("unrelated", "same", "detail", "comment", "beside", "correct", "end")


def few_evidence(model: RelationModel) -> tuple[str, ...]:
    """The names of what this model knows of one of a few items."""
    return (*EVIDENCE, *SECOND) if model.reads_twice else EVIDENCE


def stand_out(closing: np.ndarray) -> list[int]:
    """The places of the items `[n]` that are weighed, the surest first."""
    order = np.argsort(-closing, kind="stable")[:MOST]
    return [int(n) for n in order if closing[n] >= LEAST]


def evidence(
    model: RelationModel,
    heard: Heard,
    items: Sequence[MemoryItem],
    recent: frozenset[str],
    found: np.ndarray,
    places: Sequence[int],
    names: Sequence[str] = EVIDENCE,
) -> np.ndarray:
    """float32 `[places, names]`: what is known of each of these items.

    found: `[items, RELATIONS]`, the probabilities of the row.
    """
    readings = _Readings(model, heard, items, recent, found, places, names)
    for read in readings.further:
        for n in places:
            read(n)
    return readings.rows()


def weighed(
    model: RelationModel,
    weighs: Linear,
    heard: Heard,
    items: Sequence[MemoryItem],
    recent: frozenset[str],
    found: np.ndarray,
    least: Mapping[int, float],
) -> np.ndarray:
    """`[places]`: the log-odds that the message closes each item; of one that cannot reach its
    bound, a number below it.

    least: the bound of each place, in the order of the answer.
    """
    places = list(least)
    readings = _Readings(model, heard, items, recent, found, places)
    most = np.where(weighs.weight > 0, log_odds(1.0), log_odds(0.0)).astype(np.float32)

    def at_most() -> np.ndarray:
        rows = readings.rows()
        return weighs.scores(np.where(np.isnan(rows), most, rows))

    left = places
    for read in readings.further:
        hopes = dict(zip(places, at_most().tolist(), strict=True))
        left = [n for n in left if hopes[n] >= least[n] - _ROUNDING]
        for n in left:
            read(n)
    return at_most()


_ROUNDING: Final = 1e-3  # far more than float32 loses in a sum of 35 numbers


class _Readings:
    """What is known of the items at some places of a message: first what the row says and each item
    alone, and then what `further` adds, the cheapest first."""

    def __init__(
        self,
        model: RelationModel,
        heard: Heard,
        items: Sequence[MemoryItem],
        recent: frozenset[str],
        found: np.ndarray,
        places: Sequence[int],
        names: Sequence[str] = EVIDENCE,
    ) -> None:
        from memograd.memory.relations import CLOSING, RELATIONS

        self._model, self._heard, self._items, self._recent = model, heard, items, recent
        self._found, self._places = found, places
        self._closes = [RELATIONS.index(name) for name in CLOSING]
        self._of = {name: n for n, name in enumerate(RELATIONS)}
        self._closing = found[:, self._closes].sum(1)
        self._texts = {n: present(items[n].text) for n in places}
        self._surest: dict[int, float] | None = None
        self._again: np.ndarray | None = None
        self._names = names
        alone = {n: self._relate(heard.before, n) for n in places}
        self._known = {n: self._begun(n, alone) for n in places}
        self.further: tuple[Callable[[int], None], ...] = (
            *((self._read_again,) if SECOND[0] in names else ()),
            self._read_points,
            self._read_sentences,
            self._read_parts,
            self._read_bare,
        )

    def rows(self) -> np.ndarray:
        """float32 `[places, names]`; NaN where nothing was read."""
        rows = [[self._known[n].get(name, np.nan) for name in self._names] for n in self._places]
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(self._names))

    def _begun(self, n: int, alone: Mapping[int, np.ndarray]) -> dict[str, float]:
        item, text, heard = self._items[n], self._texts[n], self._heard
        row, own = self._found[n], alone[n]
        closing_alone = {m: self._sum(one) for m, one in alone.items()}
        others = np.delete(self._closing, n)
        others_alone = [one for m, one in closing_alone.items() if m != n]
        shared = shared_content(text, heard.own)
        corrects, recent = CORRECTS.search(heard.own) is not None, item.id in self._recent
        known: dict[str, float] = {
            "row": log_odds(self._closing[n]),
            "alone": log_odds(closing_alone[n]),
            "row_margin": self._closing[n] - others.max(initial=0.0),
            "alone_margin": closing_alone[n] - max(others_alone, default=0.0),
            "shared": min(shared, 4),
            "shares": shared > 0,
            "place": n,
            "recent": recent,
            "assistant": item.role == "assistant",
            **{f"row_{name}": log_odds(row[self._of[name]]) for name in _IN_ROW},
            **{f"alone_{name}": log_odds(own[self._of[name]]) for name in _ALONE},
            "corrects": corrects,
            "corrects_recent": corrects and recent,
            "adds": ADDS.search(heard.own) is not None,
            "adds_surely": ADDS_SURELY.search(heard.own) is not None,
            "other_unit": not of_one_unit(text, heard.own),
            "item_length": len(text) / 100,
            "message_length": min(len(heard.own), 400) / 100,
            "items": len(self._items) / 10,
            "chinese": is_chinese(text),
            "questions": heard.own.rstrip().endswith(("?", "？")),
        }
        if len(parts_of(text)) < 2:
            known["part"] = known["alone"]
        return known

    def _read_again(self, n: int) -> None:
        said, before = self._heard.turn.text, self._heard.before
        if self._again is None:  # in the rows of the first reading
            every = [present(item.text) for item in self._items]
            self._again = self._model.closes(said, before, every)
        [alone] = self._model.closes(said, before, [self._texts[n]])
        self._known[n] |= {"second": float(self._again[n]), "second_alone": float(alone)}

    def _read_points(self, n: int) -> None:
        value = pointed_at(self._model, self._heard, self._texts[n])
        self._known[n]["points"] = log_odds(value.sure if value else 0.0)

    def _read_sentences(self, n: int) -> None:
        if self._surest is None:  # all items stand in one row, beside each sentence
            sentences = split_sentences(self._heard.own or self._heard.turn.text)[:SENTENCES]
            read = [self._model.relate(one, (), list(self._texts.values())) for one in sentences]
            surest = np.max([one[:, self._closes].sum(1) for one in read], axis=0) if read else ()
            self._surest = dict(zip(self._texts, surest, strict=False))
        self._known[n]["sentence"] = log_odds(self._surest.get(n, 0.0))

    def _read_parts(self, n: int) -> None:
        if "part" not in self._known[n]:
            parts = closing_of_parts(self._model, self._heard, self._items[n].text)
            self._known[n]["part"] = log_odds(max(parts))

    def _read_bare(self, n: int) -> None:
        self._known[n]["bare"] = log_odds(self._sum(self._relate((), n)))

    def _relate(self, before: Sequence[tuple[str, str]], n: int) -> np.ndarray:
        read: np.ndarray
        [read] = self._model.relate(self._heard.turn.text, before, [self._texts[n]])
        return read

    def _sum(self, relations: np.ndarray) -> float:
        return float(relations[self._closes].sum())


def bound(least: float) -> float:
    """From which log-odds on something is done from this probability on: 0 is however low."""
    return log_odds(least) if least > 0 else -np.inf


def log_odds(probability: float) -> float:
    """Natural, of a probability that is neither 0 nor 1: bounded at a thousandth."""
    sure = min(max(float(probability), 1e-3), 1 - 1e-3)
    return float(np.log(sure / (1 - sure)))
