"""The facts of written dialogues as the memory's own reader words them.

A running memory does not hold the statements that a writer wrote down beside a dialogue, but what
its reader made of the message: "User said: dentist is on thurs." A model that never saw such items
is worse at them, so training shows them. The reader is the one that a memory uses, with the
writer's quotations in place of a trained model's judgement of what is worth keeping.

Invariant: what is returned is a function of the dialogue and of the reader's rules alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from memograd.memory.reader.trained import TrainedReader
from memograd.memory.records.turns import RawTurn
from memograd.memory.relations.rows import Span
from memograd.memory.relations.thresholds import Thresholds
from memograd.memory.relations.weights import RELATIONS, WORTHS

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel

DAY: Final = "2024-05-07T18:30:00+00:00"  # of a turn without a time
_SURE: Final = 0.98


class DialogueReader:
    """Reads a dialogue turn by turn, as a memory hears it."""

    def __init__(self) -> None:
        self._reader = reader_keeping(self._quoted, _SURE)
        self._quotes: list[Span] = []
        self._text = ""
        self._before: list[RawTurn] = []

    def worded(self, role: str, text: str, at: str | None, quotes: Sequence[str]) -> list[str]:
        """The item that each quotation of this turn becomes; "" where the reader keeps none."""
        time = datetime.fromisoformat(at or DAY)
        turn = RawTurn(f"D1:{len(self._before) + 1}", role, text, time, 1, role=role)
        self._quotes, self._text = spans_of(quotes, text), text
        heard = self._reader.hear([turn], self._before)[0]
        self._before.append(replace(turn))
        found = []
        for quote in self._quotes:
            common = [in_both(quote, span) for span in spans_of(heard.quotes, text)]
            best = int(np.argmax(common)) if common else -1
            found.append(heard.facts[best].text if best >= 0 and common[best] else "")
        return found

    def _quoted(self, message: str, segments: Sequence[str], role: str) -> list[bool]:
        """Which segments a quotation says are worth keeping; a part may be read alone."""
        at = max(0, self._text.find(message))
        placed = [Span(one.start + at, one.end + at) for one in spans_of(segments, message)]
        return [any(holds(segment, quote) for quote in self._quotes) for segment in placed]


Keeping = Callable[[str, Sequence[str], str], Sequence[bool]]
"""Of a message, its segments and the role of who says it: which segments are worth keeping."""


def reader_keeping(keeping: Keeping, sure: float = 1.0) -> TrainedReader:
    """The memory's own reader, with `keeping` in place of a trained model's judgement."""
    return TrainedReader(cast("RelationModel", _StandIn(keeping, sure)), thresholds=Thresholds())


@dataclass(frozen=True)
class _StandIn:
    """What a reader asks of a relation model."""

    keeping: Keeping
    sure: float

    def worth(
        self,
        message: str,
        before: Sequence[tuple[str, str]],
        segments: Sequence[str],
        role: str = "user",
    ) -> np.ndarray:
        found = np.full((len(segments), len(WORTHS)), 1 - self.sure, dtype=np.float32)
        for number, kept in enumerate(self.keeping(message, segments, role)):
            found[number, WORTHS.index("fact" if kept else "nothing")] = self.sure
        return found

    def may_close(
        self, message: str, before: Sequence[tuple[str, str]], segments: Sequence[str]
    ) -> bool:
        return True

    def relate(
        self, message: str, before: Sequence[tuple[str, str]], texts: Sequence[str]
    ) -> np.ndarray:
        found = np.full((len(texts), len(RELATIONS)), 1 - self.sure, dtype=np.float32)
        found[:, RELATIONS.index("unrelated")] = self.sure
        return found

    def other_value(self, message: str, before: Sequence[tuple[str, str]], item: str) -> None:
        """Points at nothing: rules alone see where a message corrects itself."""

    def holds_secret(
        self, message: str, before: Sequence[tuple[str, str]], segments: Sequence[str]
    ) -> np.ndarray:
        return np.zeros(len(segments), bool)


def spans_of(parts: Sequence[str], text: str) -> list[Span]:
    """Where each part stands, looked for after the one before it, then anywhere; else nowhere."""
    spans, after = [], 0
    for part in parts:
        start = text.find(part, after)
        start = text.find(part) if start < 0 else start
        spans.append(Span(start, start + len(part)) if start >= 0 else Span(0, 0))
        after = spans[-1].end or after
    return spans


def holds(segment: Span, quote: Span) -> bool:
    """Whether the segment and the quotation overlap by half of it, or most of the quotation."""
    both = in_both(segment, quote)
    return both > 0 and (
        both >= 0.5 * (segment.end - segment.start) or both >= 0.6 * (quote.end - quote.start)
    )


def in_both(one: Span, other: Span) -> int:
    """How many places both have."""
    return max(0, min(one.end, other.end) - max(one.start, other.start))
