"""How a message, what came before it, and items become one row of tokens.

    <s> user: I live in Ottawa </s> user: guess who's a Montrealer now! </s> User lives in Ottawa.
    </s> User has a cat. </s>

All items stand in one row with the message, so that the model can tell *which* of them is meant,
and the message is computed once. Training and inference both build their rows here.

Invariant: a row has at most `MAX_TOKENS` tokens, whatever it is made of; every item and every
segment has at least one token in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from memograd.memory.embedders.e5_weights import E5Weights
from memograd.memory.text_caches import hold

if TYPE_CHECKING:
    import numpy as np

BEFORE_TOKENS: Final = 48  # of what came before, the last ones
MESSAGE_TOKENS: Final = 112
ITEM_TOKENS: Final = 36
ITEMS_A_ROW: Final = 8
MAX_TOKENS: Final = 512
LAST_CHARACTERS: Final = 400  # BEFORE_TOKENS are hardly ever more
MAX_CHARACTERS: Final = 2_000  # of a text that is cut to some tokens anyway

BEFORE, MESSAGE, ITEM = 0, 1, 2  # the parts of a row, each with an embedding of its own


class Span(NamedTuple):
    """Half-open range."""

    start: int
    end: int


@dataclass(frozen=True)
class RelationRow:
    """tokens: ids `[T]`. parts: `[T]`, BEFORE, MESSAGE or ITEM. items, segments: the tokens of each
    item and of each segment of the message."""

    tokens: list[int]
    parts: list[int]
    items: list[Span]
    segments: list[Span]


class Window(NamedTuple):
    """A part of a message that fits a row: its characters, and the segments that begin in it."""

    text: str
    start: int
    segments: list[int]


class RowBuilder:
    """Builds rows with one tokenizer; keeps the tokens of the texts it saw last."""

    def __init__(self, weights: E5Weights) -> None:
        self._weights = weights
        self._tokenizer = weights.tokenizer()
        # Where each token stands takes longer than the tokens, and only messages are asked for it.
        self._ids = lru_cache(maxsize=4_096)(self._ids_anew)
        self._encode = lru_cache(maxsize=256)(self._encode_anew)
        hold(self)

    def drop_texts(self) -> None:
        """See `TextHolder`."""
        self._weights.forget_words()
        self._ids.cache_clear()
        self._encode.cache_clear()

    def row(
        self,
        message: str,
        *,
        role: str,
        before: Sequence[tuple[str, str]] = (),
        items: Sequence[str] = (),
        segments: Sequence[Span] = (),
    ) -> RelationRow:
        """One row; `segments` are ranges of characters of `message`.

        before: (role, text), oldest first. What does not fit is cut: the beginning of what came
        before, the end of the message and of every item. A segment beyond the cut is the last
        token that is left.
        """
        bos, eos = self._weights.bos, self._weights.eos
        context: list[int] = []
        for who, text in reversed(before):
            if len(context) >= BEFORE_TOKENS:
                break
            context = [*self._last_ids(f"{who}: {text[-MAX_CHARACTERS:]}"), eos, *context]
        tokens = [bos, *context[-BEFORE_TOKENS:]]
        parts = [BEFORE] * len(tokens)

        said, places = self._encode(message)
        said, places = said[:MESSAGE_TOKENS], places[:MESSAGE_TOKENS]
        tokens += self._ids(f"{role}:")
        first = len(tokens)
        tokens += [*said, eos]
        parts += [MESSAGE] * (len(tokens) - len(parts))
        segment_spans = [_tokens_of(segment, places, first) for segment in segments]

        item_spans = []
        for item in items:
            begin = len(tokens)
            tokens += [*self._ids(item[:MAX_CHARACTERS])[:ITEM_TOKENS], eos]
            item_spans.append(Span(begin, len(tokens)))
        parts += [ITEM] * (len(tokens) - len(parts))
        return RelationRow(tokens, parts, item_spans, segment_spans)

    def windows(self, message: str, segments: Sequence[Span] = ()) -> list[Window]:
        """The message in parts of at most MESSAGE_TOKENS tokens, cut between segments if it can."""
        places = self._encode(message)[1]
        if len(places) <= MESSAGE_TOKENS:
            return [Window(message, 0, list(range(len(segments))))]
        starts, opened = [0], 0  # the first token that ends behind the last start
        for number, (begin, _end) in enumerate(places):
            while places[opened][1] <= starts[-1]:
                opened += 1
            if number - opened >= MESSAGE_TOKENS:
                inside = [s.start for s in segments if starts[-1] < s.start <= begin]
                starts.append(inside[-1] if inside else begin)
        ends = [*starts[1:], len(message)]
        return [
            Window(
                message[start:end],
                start,
                [n for n, segment in enumerate(segments) if start <= segment.start < end],
            )
            for start, end in zip(starts, ends, strict=True)
        ]

    def words(self, tokens: Sequence[int]) -> np.ndarray:
        """float32 `[T, hidden]`: the word embeddings."""
        import numpy as np

        return self._weights.word_embeddings.rows(np.asarray(tokens))

    def tokens(self, text: str) -> list[int]:
        """The ids of a text's tokens."""
        return self._ids(text)

    def places(self, text: str) -> list[tuple[int, int]]:
        """The characters of each of its tokens."""
        return self._encode(text)[1]

    def _last_ids(self, text: str) -> list[int]:
        """The ids of all of it, or the last ones of a long text, more of them than are used.

        Words are told apart by spaces, so what begins with one is cut as within the whole.
        """
        _, space, end = text[-LAST_CHARACTERS:].partition(" ")
        if space and len(text) > LAST_CHARACTERS:
            ids = self._ids(end)
            if len(ids) >= BEFORE_TOKENS:
                return ids
        return self._ids(text)

    def _ids_anew(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def _encode_anew(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets


def _tokens_of(segment: Span, places: Sequence[tuple[int, int]], first: int) -> Span:
    inside = [n for n, (a, b) in enumerate(places) if a < segment.end and b > segment.start]
    if not inside:
        last = first + max(len(places) - 1, 0)
        return Span(last, last + 1)
    return Span(first + inside[0], first + inside[-1] + 1)
