"""Erasing what must be forgotten from the rows of a journal.

Invariants: no column of an erased event, nor any derived text that no other event needs, still
holds what it said, and once `Database.scrub` has run, no file does either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.engine import Connection

from memograd.errors import BadInput
from memograd.memory.journal.rows import EVENT_COLUMNS, batches, to_events
from memograd.memory.journal.schema import DERIVED, EVENTS
from memograd.memory.records.events import RECORDS, Event, EventKind, NewEvent
from memograd.memory.records.items import content_hash
from memograd.memory.records.scope import SCOPE_FIELDS, Scope
from memograd.memory.records.turns import RawTurn

# A PURGE event has no content, and its reason is why there is none.
_ERASE = (
    update(EVENTS)
    .where(EVENTS.c.kind != EventKind.PURGE.value, EVENTS.c.erased.is_(False))
    .values(before=None, after=None, reason="", erased=True)
)
_ERASE_ONE = _ERASE.where(EVENTS.c.seq == bindparam("place"))
_ERASE_OWNER = _ERASE.where(EVENTS.c.owner == bindparam("whose"))
_OF_OWNER = (
    select(*EVENT_COLUMNS).where(EVENTS.c.owner == bindparam("owner")).order_by(EVENTS.c.seq)
)
_DERIVED_OF_OWNER = select(DERIVED.c.content_hash).where(DERIVED.c.owner == bindparam("owner"))
_FORGET_OWNER = delete(DERIVED).where(DERIVED.c.owner == bindparam("whose"))
_FORGET_ONE = _FORGET_OWNER.where(DERIVED.c.content_hash == bindparam("hash"))
_OWNERS_OF = select(EVENTS.c.owner).where(EVENTS.c.subject == bindparam("subject")).distinct()

REASON_THERE = "purged where the export was made"

Behind = Callable[[Sequence[Event], set[str]], set[str]]
"""What goes with subjects that are purged, by the events of their owner: the turns behind them."""


@dataclass(slots=True)
class Erased:
    """What a purge did to the rows.

    tombstones: the PURGE events to append. touched: something of what was named is, or once was, in
    the journal, so that old bytes of it may be in the files.
    """

    tombstones: list[NewEvent] = field(default_factory=list)
    touched: bool = False


def owners_of(connection: Connection, subjects: Sequence[str]) -> dict[str, list[str]]:
    """The subjects by their owner; raises BadInput for one without events or with two owners."""
    found: dict[str, list[str]] = {}
    for subject in subjects:
        owners = connection.execute(_OWNERS_OF.limit(2), {"subject": subject}).scalars().all()
        if len(owners) > 1:
            raise BadInput(f"Several owners have a memory {subject!r}: say whose is to be purged.")
        found.setdefault(owners[0] if owners else "", []).append(subject)
    for subject in found.get("", ()):
        raise BadInput(f"There is no memory {subject!r} to purge: look up its id.")
    return found


def erase_subjects(
    connection: Connection,
    subjects: Mapping[str, Sequence[str]],
    erased: Erased,
    *,
    actor: str,
    reason: str,
) -> None:
    """Erase subjects, given by their owner, within the caller's write transaction.

    Raises BadInput for a subject without events.
    """
    for owner, wanted in subjects.items():
        if not wanted:
            continue
        events = to_events(connection.execute(_OF_OWNER, {"owner": owner}).all())
        scopes = {event.subject: event.scope for event in events}
        for subject in wanted:
            if subject not in scopes:
                raise BadInput(
                    f"There is no memory {subject!r} of {owner} to purge: look up its id."
                )
        erased.touched = True
        gone = _erase_events(connection, owner, events, frozenset(wanted))
        erased.tombstones += [
            NewEvent(EventKind.PURGE, scopes[subject], subject, actor=actor, reason=reason)
            for subject in dict.fromkeys(wanted)
            if subject in gone
        ]


def erase_owners(
    connection: Connection, owners: Sequence[str], erased: Erased, *, actor: str, reason: str
) -> None:
    """Erase whole owners within the caller's write transaction; unknown ones cost next to nothing.

    Raises BadInput for a text that cannot be an owner.
    """
    for owner in dict.fromkeys(owners):
        scope = _scope_of(owner)
        changed = connection.execute(_ERASE_OWNER, {"whose": owner}).rowcount
        changed += connection.execute(_FORGET_OWNER, {"whose": owner}).rowcount
        if changed:
            erased.tombstones.append(
                NewEvent(EventKind.PURGE, scope, owner, actor=actor, reason=reason)
            )
        if changed or connection.execute(_OF_OWNER.limit(1), {"owner": owner}).first() is not None:
            erased.touched = True


def erase_as_there(
    connection: Connection,
    known: Mapping[str, Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
    behind: Behind,
) -> Erased:
    """Erase here what another journal erased, within the caller's write transaction.

    known, new: its rows whose uid is here, by uid, and those that are not. Erased are the events
    that are erased there, all that is here of a subject that one of the new PURGEs names, with what
    stands `behind` it, and whole owners. Raises BadInput, naming the owner, where all of an owner
    was erased there and something of it was told here alone.
    """
    erased = Erased()
    gone = {uid: row for uid, row in known.items() if row["erased"]}
    purged = [row for row in new if row["kind"] == EventKind.PURGE.value]
    for owner in dict.fromkeys(row["owner"] for row in (*gone.values(), *purged)):
        events = to_events(connection.execute(_OF_OWNER, {"owner": owner}).all())
        standing = [one for one in events if not one.erased and one.kind is not EventKind.PURGE]
        named = {row["subject"] for row in purged if row["owner"] == owner}
        if owner in named:
            alone = sum(one.uid not in known for one in standing)
            if alone:
                raise BadInput(
                    f"The export holds that all of {owner} was purged, and {alone} of its events"
                    f" here are not in it: purge {owner} here first, or import it into a journal of"
                    " its own."
                )
            connection.execute(_ERASE_OWNER, {"whose": owner})
            connection.execute(_FORGET_OWNER, {"whose": owner})
            erased.touched = erased.touched or bool(standing)
            continue
        uids = {
            one.uid
            for one in standing
            if one.uid in gone and gone[one.uid]["subject"] == one.subject
        }
        subjects = named & {one.subject for one in standing}
        subjects |= behind(events, subjects)
        if not uids and not subjects:
            continue
        erased.touched = True
        _erase_events(connection, owner, events, frozenset(subjects), uids)
        # Whoever has these events in a state learns it by a PURGE behind them, as ever.
        places = {one.subject: one.seq for one in events if one.kind is EventKind.PURGE}
        unnamed = {
            one.subject: one.scope
            for one in standing
            if (one.uid in uids or one.subject in subjects)
            and one.kind not in RECORDS
            and one.subject not in named
            and max(places.get(one.subject, 0), places.get(owner, 0)) < one.seq
        }
        erased.tombstones += [
            NewEvent(EventKind.PURGE, scope, subject, actor="user", reason=REASON_THERE)
            for subject, scope in unnamed.items()
        ]
    return erased


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
    connection: Connection,
    owner: str,
    events: Sequence[Event],
    subjects: frozenset[str],
    uids: Collection[str] = (),
) -> set[str]:
    """Erase those of one owner's events that speak of the subjects or bear one of the uids, and
    what was derived.

    Derived texts that no event says may come from a fact that a manager put into other words, so
    they go too. Returns the subjects that there was something to erase for.
    """
    subjects |= _answers_from(events, subjects)
    spoken = {event.seq: _spoken_of(event, subjects) for event in events if not event.erased}
    gone = {event.seq for event in events if event.uid in uids}
    places = [place for place, about in spoken.items() if about or place in gone]
    if places:
        connection.execute(_ERASE_ONE, [{"place": place} for place in places])
    kept = {
        content_hash(text)
        for event in events
        if not spoken.get(event.seq) and event.seq not in gone
        for text in texts_of(event)
    }
    hashes = set(connection.execute(_DERIVED_OF_OWNER, {"owner": owner}).scalars()) - kept
    for batch in batches(sorted(hashes), 500):
        connection.execute(_FORGET_ONE, [{"whose": owner, "hash": hash} for hash in batch])
    return {subject for about in spoken.values() for subject in about}


def _spoken_of(event: Event, subjects: frozenset[str]) -> frozenset[str]:
    """Those of the subjects that an event speaks of: its own, why a fact was declined, what an
    answer was given from, the answer that feedback is about.
    """
    if event.kind is EventKind.PURGE:
        return frozenset()
    about: set[Any] = {event.subject}
    if event.kind is EventKind.NONE and event.after is not None:
        about |= {event.after.get("item_id"), *(event.after.get("sources") or ())}
    if event.kind is EventKind.ANSWER and event.after is not None:
        about |= {*event.after["shown"], *event.after["behind"]}
    if event.kind is EventKind.FEEDBACK and event.after is not None:
        about.add(event.after["answer_id"])
    return subjects & about


def _answers_from(events: Sequence[Event], subjects: frozenset[str]) -> frozenset[str]:
    """The answers that may repeat what the subjects say, or what such an answer says.

    Feedback on them goes with them. events: in the journal's order; an answer names earlier ones.
    """
    found: set[str] = set()
    for event in events:
        if (
            event.kind is EventKind.ANSWER
            and not event.erased
            and _spoken_of(event, subjects | found)
        ):
            found.add(event.subject)
    return frozenset(found)


def _scope_of(owner: str) -> Scope:
    """The scope that an owner such as `user:alice` names."""
    kind, _, name = owner.partition(":")
    if f"{kind}_id" not in SCOPE_FIELDS:
        raise BadInput(f"{owner!r} is no owner: write user:NAME, agent:NAME or run:NAME.")
    return Scope(**{f"{kind}_id": name})
