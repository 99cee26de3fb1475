"""Erasing what must be forgotten from the rows of a journal.

Invariants: no column of an erased event, nor any derived text that only it needed, still holds what
it said (`tests/memory/test_journal.py`), and once `Database.scrub` has run, no file does either
(`tests/memory/test_journal_purge_files.py`). May import sqlalchemy, the room's `scope`, `items`,
`events` and `turns`, errors, and the files of this folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.engine import Connection

from memograd.errors import BadInput
from memograd.memory.events import Event, EventKind, NewEvent
from memograd.memory.items import content_hash
from memograd.memory.journal.rows import EVENT_COLUMNS, to_events
from memograd.memory.journal.schema import DERIVED, EVENTS
from memograd.memory.scope import SCOPE_FIELDS, Scope
from memograd.memory.turns import RawTurn

# A PURGE event has no content, and its reason is why there is none.
_ERASE = (
    update(EVENTS)
    .where(EVENTS.c.kind != EventKind.PURGE.value)
    .values(before=None, after=None, reason="", erased=True)
)
_ERASE_ONE = _ERASE.where(EVENTS.c.seq == bindparam("place"))
_ERASE_OWNER = _ERASE.where(EVENTS.c.owner == bindparam("whose"))
_OF_OWNER = (
    select(*EVENT_COLUMNS).where(EVENTS.c.owner == bindparam("owner")).order_by(EVENTS.c.seq)
)
_FORGET_DERIVED = delete(DERIVED).where(
    DERIVED.c.owner == bindparam("whose"), DERIVED.c.content_hash == bindparam("hash")
)


def erase(
    connection: Connection,
    subjects: Sequence[str],
    owners: Sequence[str],
    *,
    actor: str,
    reason: str,
) -> list[NewEvent]:
    """Erase within the caller's write transaction; returns the PURGE events to append.

    Raises BadInput for a subject without events.
    """
    wanted = dict.fromkeys(subjects)
    scopes: dict[str, Scope] = {}
    for owner in _owners_of(connection, list(wanted)):
        events = to_events(connection.execute(_OF_OWNER, {"owner": owner}).all())
        scopes |= {event.subject: event.scope for event in events if event.subject in wanted}
        _erase_events(connection, owner, events, frozenset(wanted))
    for subject in wanted:
        if subject not in scopes:
            raise BadInput(f"There is no memory {subject!r} to purge: look up its id.")
    for owner in dict.fromkeys(owners):
        if connection.execute(_OF_OWNER.limit(1), {"owner": owner}).first() is not None:
            scopes[owner] = _scope_of(owner)
            connection.execute(_ERASE_OWNER, {"whose": owner})
            connection.execute(delete(DERIVED).where(DERIVED.c.owner == owner))
    purged = [*wanted, *(owner for owner in dict.fromkeys(owners) if owner in scopes)]
    return [
        NewEvent(EventKind.PURGE, scopes[subject], subject, actor=actor, reason=reason)
        for subject in purged
    ]


def texts_of(event: Event) -> Iterator[str]:
    """The texts of an event for which something may have been derived."""
    for contents in (event.before, event.after):
        if contents is None:
            continue
        if isinstance(contents.get("text"), str):
            yield contents["text"]
        if isinstance(contents.get("turn"), dict):
            yield RawTurn.from_json(contents["turn"]).index_text()


def _erase_events(
    connection: Connection, owner: str, events: Sequence[Event], subjects: frozenset[str]
) -> None:
    """Erase those of one owner's events that speak of the subjects, and what was derived."""
    erased = [event for event in events if _speaks_of(event, subjects)]
    if erased:
        connection.execute(_ERASE_ONE, [{"place": event.seq} for event in erased])
    gone = {text for event in erased for text in texts_of(event)}
    places = {event.seq for event in erased}
    for event in events:
        if event.seq not in places and gone:
            gone.difference_update(texts_of(event))
    if gone:
        hashes = [{"whose": owner, "hash": content_hash(text)} for text in sorted(gone)]
        connection.execute(_FORGET_DERIVED, hashes)


def _speaks_of(event: Event, subjects: frozenset[str]) -> bool:
    if event.subject in subjects:
        return True
    if event.kind is not EventKind.NONE or event.after is None:
        return False
    sources = event.after.get("sources") or ()
    return event.after.get("item_id") in subjects or not subjects.isdisjoint(sources)


def _owners_of(connection: Connection, subjects: Sequence[str]) -> list[str]:
    query = select(EVENTS.c.owner).where(EVENTS.c.subject == bindparam("subject")).limit(1)
    found = (connection.execute(query, {"subject": subject}).scalar() for subject in subjects)
    return sorted({owner for owner in found if owner is not None})


def _scope_of(owner: str) -> Scope:
    """The scope that an owner such as `user:alice` names."""
    kind, _, name = owner.partition(":")
    if f"{kind}_id" not in SCOPE_FIELDS:
        raise BadInput(f"{owner!r} is no owner: write user:NAME, agent:NAME or run:NAME.")
    return Scope(**{f"{kind}_id": name})
