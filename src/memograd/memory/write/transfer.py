"""A journal as a file: JSON Lines, one event a line, behind a first line that says what it is.

Invariants: importing into an empty memory what was exported gives the same answers, past ones too;
importing twice changes nothing; a file with a bad line imports nothing.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from memograd.errors import BadInput, MemogradError
from memograd.memory.journal.transfer import Imported
from memograd.memory.records.events import Event, EventKind
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn
from memograd.memory.state.memory_state import NOT_READABLE
from memograd.memory.state.store import MemoryStore
from memograd.memory.text_caches import drop_texts
from memograd.memory.write.answers import VERDICTS
from memograd.memory.write.erase import goes_with
from memograd.web.json_text import json_line

logger = logging.getLogger(__name__)
FORMAT: Final = "memograd-journal"
VERSION: Final = 1
MOST_SESSIONS: Final = 2**31


def export_journal(store: MemoryStore, path: Path, owners: Sequence[str] | None) -> int:
    """Write all events, or those of `owners`; returns how many. The file appears when complete."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    count = 0
    try:
        try:
            with unfinished.open("w", encoding="utf-8") as file:
                for count, line in enumerate(export_lines(store, owners)):  # noqa: B007
                    file.write(line)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise MemogradError(f"The export {path} cannot be written: {error.strerror}.") from error
    return count


def export_lines(store: MemoryStore, owners: Sequence[str] | None) -> Iterator[str]:
    """The lines of an export: the first says what it is, each other one is an event.

    An event whose contents are damaged is left out with a warning, and so is what happened later to
    an item that it would have brought: nobody could import the rest.
    """
    yield json.dumps({"format": FORMAT, "version": VERSION}) + "\n"
    missing: set[str] = set()  # items without their ADD
    for event in store.journal.export_events(owners):
        damaged = not event.erased and any(
            getattr(event, name) is None for name in HOLDS.get(event.kind, ())
        )
        if event.kind is EventKind.ADD:
            (missing.add if damaged else missing.discard)(event.subject)
        elif event.kind in (EventKind.UPDATE, EventKind.DELETE):
            damaged = damaged or event.subject in missing
        if damaged:
            told = (event.seq, event.kind, event.subject, event.scope.owner)
            logger.warning("Event %d (%s of %r of %s) is damaged and not exported.", *told)
            continue
        yield json_line(event.to_json()) + "\n"


def import_journal(store: MemoryStore, path: Path) -> Imported:
    """Append the events of the file that the journal does not have yet, and erase what was erased
    there."""
    for _ in read_events(path):
        pass  # every line is checked before the first is taken over
    try:
        return store.journal.import_events(read_events(path), goes_with)
    finally:
        store.states.forget()
        store.texts.forget()  # something of it may have been erased
        drop_texts()


def read_events(path: Path) -> Iterator[Event]:
    """The events in an exported file; raises BadInput naming the line that is not one."""
    try:
        file = path.open("rb")  # decoded line by line, so that a bad byte has a line number
    except OSError as error:
        raise BadInput(f"The file {path} cannot be read: {error.strerror}.") from error
    with file:
        try:
            head = json.loads(file.readline() or b"null")
        except (ValueError, RecursionError):
            head = None
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise BadInput(f"The file {path} was not made by memograd's export: give one that was.")
        if head.get("version") != VERSION:
            raise BadInput(
                f"The file {path} has version {head.get('version')!r}, but version {VERSION} is"
                " understood here: import it with the memograd that exported it, or a newer one."
            )
        for number, line in enumerate(file, start=2):
            try:
                event = Event.from_json(json.loads(line), seq=0)
                check_contents(event)
            except (*NOT_READABLE, OverflowError, RecursionError) as error:
                raise BadInput(
                    f"Line {number} of {path} is not an event ({str(error)[:300]}): the file was"
                    " changed or cut; export it again."
                ) from error
            yield event


def check_contents(event: Event) -> None:
    """Raise unless the event holds what an event of its kind holds, about its own subject.

    What is raised says what is wrong: ValueError, or what reading a broken item or turn raises.
    """
    _require_clock(event.recorded_at, "recorded_at")
    _require(event.uid != "", "uid is empty")
    for name in ("uid", "subject", "actor", "reason"):
        _require(isinstance(getattr(event, name), str), f"{name} is not a text")
    _require(isinstance(event.erased, bool), "erased is neither true nor false")
    if event.erased or event.kind is EventKind.PURGE:
        _require(event.before is None and event.after is None, "erased, and yet it says something")
        return
    for name in HOLDS[event.kind]:
        _require(getattr(event, name) is not None, f"{name} is missing")
    for name in ("before", "after"):
        contents = getattr(event, name)
        if contents is not None:
            _require(name in HOLDS[event.kind], f"{name} has no place in {event.kind}")
            _require(isinstance(contents, dict), f"{name} is not an object")
            CHECKS.get(event.kind, _check_item)(event, contents)


def _check_item(event: Event, contents: Mapping[str, Any]) -> None:
    item = MemoryItem.from_json(contents)
    _require_texts(contents, "categories", "sources")
    _require(isinstance(item.text, str), "the item's text is not a text")
    _require(bool(item.text.strip()), "the item says nothing")
    for name in ("role", "actor_id"):
        _require(isinstance(getattr(item, name), str | None), f"the item's {name} is not a text")
    _require(isinstance(item.metadata, dict), "the item's metadata is not an object")
    _require(item.id == event.subject, f"the item has the id {item.id!r}, not {event.subject!r}")
    # As a part of a path it would be another path: it could be neither read nor erased by its id,
    # and a link to it would lead to another item.
    nameable = item.id not in ("", ".", "..") and not {"/", "\0"} & set(item.id)
    _require(nameable, f"the item has the id {item.id[:80]!r}, which no address can name")
    _require(item.scope == event.scope, "the item is of another scope than the event")
    for name in ("created_at", "updated_at", "expires_at"):
        if (clock := getattr(item, name)) is not None:
            _require_clock(clock, f"the item's {name}")
    for moment in (item.valid_from, item.valid_to):
        _require_moment(moment)


def _check_turn(event: Event, contents: Mapping[str, Any]) -> None:
    turn = RawTurn.from_json(contents["turn"])
    _require_texts(contents["turn"], "images")
    texts = (turn.speaker, turn.text, turn.caption or "", turn.role or "", turn.call or "")
    _require(all(isinstance(text, str) for text in texts), "the turn's texts are not all texts")
    _require(isinstance(turn.session, int), "the turn's session is not a number")
    _require(abs(turn.session) < MOST_SESSIONS, "the turn's session is no number of a sitting")
    _require(isinstance(turn.metadata, dict), "the turn's metadata is not an object")
    _require(turn.id == event.subject, f"the turn has the id {turn.id!r}, not {event.subject!r}")
    _require(isinstance(contents["verbatim"], bool), "verbatim is neither true nor false")
    _require_moment(turn.time)
    if turn.expires_at is not None:
        _require_clock(turn.expires_at, "the turn's expires_at")


def _check_declined(event: Event, contents: Mapping[str, Any]) -> None:
    _require(isinstance(contents["text"], str), "the declined fact is not a text")
    sources = contents.get("sources", [])
    _require(isinstance(sources, list), "the declined fact's sources are not a list")


def _check_answer(event: Event, contents: Mapping[str, Any]) -> None:
    for name in ("question", "answer"):
        _require(isinstance(contents[name], str), f"the {name} is not a text")
    for name in ("shown", "behind"):
        ids = contents[name]
        texts = isinstance(ids, list) and all(isinstance(one, str) for one in ids)
        _require(texts, f"{name} is not a list of ids")


def _check_feedback(event: Event, contents: Mapping[str, Any]) -> None:
    _require(isinstance(contents["answer_id"], str), "the answer's id is not a text")
    _require(contents["verdict"] in VERDICTS, f"the verdict is none of {', '.join(VERDICTS)}")
    _require(isinstance(contents["correction"], str | None), "the correction is not a text")


def _require_texts(contents: Mapping[str, Any], *names: str) -> None:
    for name in names:
        found = contents.get(name, [])
        texts = isinstance(found, list) and all(isinstance(one, str) for one in found)
        _require(texts, f"{name} is not a list of texts")


def _require_clock(moment: datetime, name: str) -> None:
    _require(moment.tzinfo is not None, f"{name} has no time zone")
    _require_moment(moment)


def _require_moment(moment: datetime | None) -> None:
    """Raise OverflowError for a moment that is before the first year or after the last in UTC."""
    if moment is not None and moment.tzinfo is not None:
        moment.astimezone(UTC)


def _require(fits: bool, otherwise: str) -> None:
    if not fits:
        raise ValueError(otherwise)


HOLDS: Final[Mapping[EventKind, tuple[str, ...]]] = {
    EventKind.TURN: ("after",),
    EventKind.ADD: ("after",),
    EventKind.UPDATE: ("before", "after"),
    EventKind.DELETE: ("before",),
    EventKind.NONE: ("after",),
    EventKind.ANSWER: ("after",),
    EventKind.FEEDBACK: ("after",),
    EventKind.FORGET: (),
}
CHECKS: Final = {
    EventKind.TURN: _check_turn,
    EventKind.NONE: _check_declined,
    EventKind.ANSWER: _check_answer,
    EventKind.FEEDBACK: _check_feedback,
}
