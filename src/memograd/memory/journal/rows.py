"""Events and derived texts as rows of the journal's tables, and back.

Invariants: what is read equals what was written, and a value that JSON would change or cannot hold
(NaN, sets, numbers as keys, half a surrogate pair) is refused before anything is written.

Ten thousand rows are decoded at every opening, so the JSON of all rows is parsed as one array and
the vectors of all rows become one matrix.

How many items owners were ever given, counted on rather than counted again.

Events are never taken away, so a count that was right at some place of the journal only has to be
raised by what came behind it. Invariant: the counts are those of counting anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import uuid4

import numpy as np
from sqlalchemy import bindparam, func, insert, select
from sqlalchemy.engine import Connection

from memograd.errors import BadInput
from memograd.memory.journal.schema import DERIVED, EVENTS
from memograd.memory.records.events import Event, EventKind, NewEvent
from memograd.memory.records.scope import Scope, check_unicode
from memograd.web.json_text import DEEPEST, too_deep

BATCH: Final = 500  # owners in one IN (...)
HELD_OWNERS: Final = 10_000

# How many, and the last place that was looked at. Answered from the index `events_by_kind`.
_COUNT = select(func.count(), func.max(EVENTS.c.seq)).where(EVENTS.c.kind == EventKind.ADD.value)
_COUNT_BEHIND = _COUNT.where(EVENTS.c.seq > bindparam("after"))
_COUNT_OF_ONE = _COUNT_BEHIND.where(EVENTS.c.owner == bindparam("owner"))
_COUNT_OF_SOME = _COUNT.where(EVENTS.c.owner.in_(bindparam("owners", expanding=True)))


class AddedCounts:
    """The counts that this process knows, each with the place up to which it holds."""

    def __init__(self) -> None:
        self._all = (0, 0)  # threads may overwrite each other's: each pair is right by itself
        self._of_owner: dict[str, tuple[int, int]] = {}

    def of_all(self, connection: Connection) -> int:
        """Of all owners together."""
        known, place = self._all
        more: int
        query = _COUNT_BEHIND if place else _COUNT  # the first time, an index is read to the end
        more, last = connection.execute(query, {"after": place} if place else {}).one()
        self._all = (known + more, last or place)
        return known + more

    def of(self, connection: Connection, owners: Sequence[str]) -> int:
        """Of these owners."""
        if len(owners) == 1:
            return self._of_one(connection, owners[0])
        return sum(
            connection.execute(_COUNT_OF_SOME, {"owners": batch}).one()[0]
            for batch in batches(list(owners), BATCH)
        )

    def _of_one(self, connection: Connection, owner: str) -> int:
        known, place = self._of_owner.get(owner, (0, 0))
        more: int
        more, last = connection.execute(_COUNT_OF_ONE, {"owner": owner, "after": place}).one()
        if len(self._of_owner) >= HELD_OWNERS:
            self._of_owner.clear()
        self._of_owner[owner] = (known + more, last or place)
        return known + more


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
REPLACEMENT: Final = "\ufffd"  # what Unicode puts in the place of a character that cannot be
KINDS: Final = {kind.value: kind for kind in EventKind}

EVENT_COLUMNS: Final = (
    EVENTS.c.seq,
    EVENTS.c.uid,
    EVENTS.c.recorded_at,
    EVENTS.c.kind,
    EVENTS.c.user_id,
    EVENTS.c.agent_id,
    EVENTS.c.run_id,
    EVENTS.c.subject,
    EVENTS.c.before,
    EVENTS.c.after,
    EVENTS.c.actor,
    EVENTS.c.reason,
    EVENTS.c.erased,
)
DERIVED_COLUMNS: Final = (
    DERIVED.c.owner,
    DERIVED.c.content_hash,
    DERIVED.c.vector,
    DERIVED.c.terms,
)

# The place of the newest PURGE of an owner, and of the newest that erased all of it.
LAST_PURGE: Final = select(func.max(EVENTS.c.seq)).where(
    EVENTS.c.owner == bindparam("owner"), EVENTS.c.kind == EventKind.PURGE.value
)
LAST_PURGE_OF_OWNER: Final = LAST_PURGE.where(EVENTS.c.subject == bindparam("subject"))

_NEWEST = select(EVENTS.c.seq, EVENTS.c.recorded_at).order_by(EVENTS.c.seq.desc()).limit(1)
_NEWEST_OF_OWNER = (
    select(EVENTS.c.recorded_at)
    .where(EVENTS.c.owner == bindparam("owner"))
    .order_by(EVENTS.c.seq.desc())
    .limit(1)
)
_INSERT = insert(EVENTS)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DerivedText:
    """What was computed from one text of one owner: its vector and its search terms.

    content_hash: `items.content_hash` of the text. vector: float32 `[d]`, finite.
    """

    owner: str
    content_hash: str
    vector: np.ndarray
    terms: tuple[str, ...]


def to_micros(moment: datetime) -> int:
    """Whole microseconds since 1970 in UTC; raises BadInput for a time without a zone."""
    if moment.tzinfo is None:
        raise BadInput(f"The time {moment.isoformat()} has no time zone: give one, such as UTC.")
    return (moment - EPOCH) // MICROSECOND


def to_moment(micros: int) -> datetime:
    """The time in UTC that `to_micros` counted."""
    return EPOCH + timedelta(microseconds=micros)


def to_json(value: Any, where: str) -> tuple[str, Any]:
    """The JSON text of a value, and the value that will be read back from it.

    Raises BadInput, naming `where`, unless both are the same but for tuples, which become lists.
    """
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"{where} cannot be written as JSON: {error}. Use JSON values.") from None
    check_unicode(text, where)
    back = json.loads(text)
    if text.count("[") + text.count("{") > DEEPEST and too_deep(back):
        raise BadInput(f"{where} is nested more than {DEEPEST} levels deep: flatten it.")
    if back != value:
        _check_keys(value, where)
    return text, back


def to_row(event: NewEvent) -> dict[str, Any]:
    """The row of a new event without `seq` and `recorded_at`; raises BadInput when it has no place.

    `before` and `after` are in it as JSON text; the values are put back by `to_events`.
    """
    # Reasons quote what others said, and nobody looks for a memory by its reason.
    reason = event.reason.replace("\0", REPLACEMENT)
    for name, value in (("subject", event.subject), ("actor", event.actor), ("reason", reason)):
        _check_text(value, name)
    row: dict[str, Any] = dict.fromkeys(("user_id", "agent_id", "run_id"))
    for name, value in event.scope.ids().items():
        _check_text(value, name)
        row[name] = value
    row |= {
        "uid": uuid4().hex,
        "kind": event.kind.value,
        "owner": event.scope.owner,
        "subject": event.subject,
        "actor": event.actor,
        "reason": reason,
        "erased": False,
    }
    for name, contents in (("before", event.before), ("after", event.after)):
        row[name] = None if contents is None else _contents_json(contents, name)
    return row


def insert_rows(
    connection: Connection, rows: Sequence[dict[str, Any]], now: datetime
) -> list[Event]:
    """Put rows of `to_row` at the end of the journal, within the caller's write transaction.

    They are recorded now, or when the newest event was, should the clock have gone backwards.
    """
    if not rows:
        return []
    newest = connection.execute(_NEWEST).one_or_none()
    seq, recorded_at = newest if newest else (0, 0)
    recorded_at = max(recorded_at, to_micros(now))
    # After an import the newest event need not be the latest; its owner's own must still be kept.
    for owner in {row["owner"] for row in rows}:
        last = connection.execute(_NEWEST_OF_OWNER, {"owner": owner}).scalar()
        recorded_at = max(recorded_at, last or 0)
    placed = [
        row | {"seq": place, "recorded_at": recorded_at} for place, row in enumerate(rows, seq + 1)
    ]
    connection.execute(_INSERT, placed)
    return to_events([tuple(row[column.name] for column in EVENT_COLUMNS) for row in placed])


def to_events(rows: Sequence[Sequence[Any]]) -> list[Event]:
    """Rows with `EVENT_COLUMNS` as events; contents that cannot be read are none."""
    contents = _parse_all([text for row in rows for text in (row[8], row[9])])
    scopes: dict[tuple[Any, ...], Scope] = {}
    events = []
    for place, row in enumerate(rows):
        ids = tuple(row[4:7])
        scope = scopes.get(ids)
        if scope is None:
            scope = scopes[ids] = Scope(*ids)
        events.append(
            Event(
                row[0],
                row[1],
                EPOCH + timedelta(microseconds=row[2]),
                KINDS[row[3]],
                scope,
                row[7],
                contents[2 * place],
                contents[2 * place + 1],
                row[10],
                row[11],
                bool(row[12]),
            )
        )
    return events


def batches(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Consecutive parts of at most `size` values."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def derived_row(text: DerivedText) -> dict[str, Any]:
    """The row of a derived text; raises BadInput unless its vector is float32 `[d]` and finite."""
    vector = text.vector
    if not (isinstance(vector, np.ndarray) and vector.dtype == np.float32 and vector.ndim == 1):
        raise BadInput("A derived vector must be a float32 array with one axis.")
    if not np.isfinite(vector).all():
        raise BadInput("A derived vector holds NaN or infinity: embed its text again.")
    _check_text(text.owner, "owner of a derived text")
    terms = to_json(list(text.terms), "terms of a derived text")[0]
    return {
        "owner": text.owner,
        "content_hash": text.content_hash,
        "vector": vector.astype("<f4", copy=False).tobytes(),
        "terms": terms,
    }


def to_derived(rows: Sequence[Sequence[Any]]) -> dict[str, DerivedText]:
    """Rows with `DERIVED_COLUMNS` by content hash.

    The vectors are read-only; where all have one length they are the rows of one matrix.
    """
    if not rows:
        return {}
    blobs = [row[2] for row in rows]
    size = len(blobs[0])
    vectors: Iterable[np.ndarray]
    if all(len(blob) == size for blob in blobs):
        vectors = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(rows), size // 4)
    else:
        vectors = [np.frombuffer(blob, dtype="<f4") for blob in blobs]
    terms = _parse_all([row[3] for row in rows])
    return {
        row[1]: DerivedText(row[0], row[1], vector, tuple(words))
        for row, vector, words in zip(rows, vectors, terms, strict=True)
    }


def _contents_json(contents: Mapping[str, Any], name: str) -> str:
    """The JSON text of `before` or `after`; an error names the field that the caller gave."""
    try:
        return to_json(dict(contents), name)[0]
    except BadInput:
        for field, value in contents.items():
            if isinstance(field, str):
                check_unicode(field, "the name of a field")
                to_json(value, field)
        raise


def _parse_all(texts: Sequence[str | None]) -> list[Any]:
    """What each text says; None for one that is no JSON, so that a damaged row costs no other."""
    try:
        parsed: list[Any] = json.loads(f"[{','.join(text or 'null' for text in texts)}]")
    except ValueError:
        parsed = []
    return parsed if len(parsed) == len(texts) else [_parse(text) for text in texts]


def _parse(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def _check_keys(value: Any, where: str) -> None:
    """Raise BadInput if a key is not a text: JSON would make it one without a word."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise BadInput(f"{where} has the key {key!r}: keys must be texts.")
            _check_keys(inner, where)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_keys(inner, where)


def _check_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise BadInput(f"The {what} must be a text, not {value!r}.")
    check_unicode(value, what)
    if "\0" in value:  # PostgreSQL cannot hold it, and both databases shall hold the same
        raise BadInput(f"The {what} holds a NUL character: remove it.")
