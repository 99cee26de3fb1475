"""Which events fit: nothing begins twice, and only what lives is changed.

A subject (an item or a turn) belongs to one owner: `D1:1` of one conversation has nothing to do
with `D1:1` of another. Within its owner a subject begins once, with an ADD or a TURN; UPDATE and
DELETE need an item that was begun and not deleted. An item that was deleted may be added again,
under its old id: so a compaction is taken back. A purge, of the subject or of the whole owner,
frees the subject. The state that is folded from events (`state/memory_state.py`) goes by the same
rules, so whatever is let in here can be folded.

Invariant: what is let in is folded without a word of warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import bindparam, func, select
from sqlalchemy.engine import Connection

from memograd.errors import BadInput, MemogradError
from memograd.memory.journal.rows import LAST_PURGE_OF_OWNER, batches
from memograd.memory.journal.schema import EVENTS, META
from memograd.memory.records.events import EventKind

BATCH: Final = 500  # values in one IN (...), well below every database's limit
BEGINS: Final = frozenset({EventKind.ADD.value, EventKind.TURN.value})
CHANGES: Final = frozenset({EventKind.UPDATE.value, EventKind.DELETE.value})
LIVING: Final = frozenset({EventKind.ADD.value, EventKind.UPDATE.value})

# All columns are in the index `events_by_subject`: no row is read.
_EARLIER = (
    select(EVENTS.c.subject, EVENTS.c.kind)
    .where(
        EVENTS.c.owner == bindparam("owner"),
        EVENTS.c.subject.in_(bindparam("subjects", expanding=True)),
        EVENTS.c.seq > bindparam("after"),
        EVENTS.c.kind != EventKind.NONE.value,
        EVENTS.c.erased.is_(False),
    )
    .order_by(EVENTS.c.subject, EVENTS.c.seq)
)
_NEWEST = (
    select(EVENTS.c.subject, func.max(EVENTS.c.seq))
    .where(EVENTS.c.subject.in_(bindparam("subjects", expanding=True)))
    .group_by(EVENTS.c.subject)
)
_EMBEDDER = select(META.c.value).where(META.c.key == "embedder")
_NEWEST_OF_OWNERS = _NEWEST.where(EVENTS.c.owner.in_(bindparam("owners", expanding=True)))


class Conflict(MemogradError):
    """Another writer was faster: read the memory again and decide anew."""


class AlreadyKnown(Conflict):
    """What was to begin has begun already: deciding anew does not help."""


class Misfit(NamedTuple):
    """Why an event does not fit; begun: because its subject has begun already."""

    why: str
    begun: bool


def misfit(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> Misfit | None:
    """Why the first of the rows that does not fit what is here, and the rows before it, does not.

    None when all of them fit.
    """
    stands = {owner: _stands(connection, owner, rows) for owner in {row["owner"] for row in rows}}
    for row in rows:
        owner, kind, subject = row["owner"], row["kind"], row["subject"]
        if kind == EventKind.PURGE.value and subject == owner:
            stands[owner].clear()
        elif row["erased"] or _step(stands[owner], kind, subject):
            continue
        elif kind in BEGINS:
            return Misfit(f"{subject!r} of {owner} is known already, so {kind} does not fit", True)
        else:
            why = f"{subject!r} of {owner} is not a living memory, so {kind} does not fit"
            return Misfit(why, False)
    return None


def _step(stands: dict[str, str], kind: str, subject: str) -> bool:
    """Let one event of an owner change how its subjects stand; False when it does not fit."""
    if kind == EventKind.PURGE.value:
        stands.pop(subject, None)
    elif kind in BEGINS | CHANGES:
        stood = stands.get(subject)
        again = kind == EventKind.ADD.value and stood == EventKind.DELETE.value
        if (stood is not None and not again) if kind in BEGINS else (stood not in LIVING):
            return False
        stands[subject] = kind
    return True


def check_fit(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise Conflict unless all rows fit what is here and those before them."""
    if (found := misfit(connection, rows)) is not None:
        kind = AlreadyKnown if found.begun else Conflict
        raise kind(f"The memory {found.why}: somebody else changed it meanwhile, try again.")


def check_expected(
    connection: Connection, expect: Mapping[str, int], owners: Iterable[str]
) -> None:
    """Raise Conflict unless each subject's newest event is at the place expected.

    owners: whose subjects they are; none: anybody's.
    """
    query, names = (_NEWEST_OF_OWNERS, {"owners": sorted(owners)}) if owners else (_NEWEST, {})
    found: dict[str, int] = {}
    for batch in batches(list(expect), BATCH):
        newest = connection.execute(query, {"subjects": batch} | names)
        found |= {subject: seq for subject, seq in newest}
    for subject, seq in expect.items():
        if found.get(subject, 0) != seq:
            raise Conflict(
                f"The memory {subject!r} has been changed by somebody else meanwhile: try again."
            )


def check_embedder(connection: Connection, embedder: str | None) -> None:
    """Raise BadInput if the journal's vectors are by another embedder now."""
    if embedder is None:
        return
    current = connection.execute(_EMBEDDER).scalar()
    if current not in (None, embedder):
        raise BadInput(
            f"The memory was changed over to the embedder {current} meanwhile: open it again."
        )


def _stands(
    connection: Connection, owner: str, rows: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """The kind of the last event that counts of each of the rows' subjects of this owner."""
    subjects = list(dict.fromkeys(_in_question(rows, owner)))
    if not subjects:
        return {}
    purged = connection.execute(LAST_PURGE_OF_OWNER, {"owner": owner, "subject": owner}).scalar()
    stands: dict[str, str] = {}
    for batch in batches(subjects, BATCH):
        values = {"owner": owner, "subjects": batch, "after": purged or 0}
        for subject, kind in connection.execute(_EARLIER, values):
            _step(stands, kind, subject)  # what does not fit is passed over, as in folding
    return stands


def _in_question(rows: Sequence[Mapping[str, Any]], owner: str) -> Iterator[str]:
    for row in rows:
        if row["owner"] == owner and row["kind"] in BEGINS | CHANGES and not row["erased"]:
            yield row["subject"]
