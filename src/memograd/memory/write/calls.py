"""Calls of `add`: checked one by one, then carried out in order, many at once where that is safe.

A call may be made twice because its first answer was lost. The application names it
(`request_id`); the ids of its raw turns are then made from that name, so a journal that has the
turns has the call, and the answer is read from the journal again. The turns keep a hash of all that
the call said, with its labels and instructions, and of the whole batch that was named (`told_by`).

Invariants: under one owner a request id is written once, whichever process was asked and wherever
it was killed; another call is never answered with the answer of the one that had its name; calls
that are written together are all remembered word for word under one owner, so that none of them
rests on another.
"""

from __future__ import annotations

import hashlib
import json
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from memograd.errors import BadInput
from memograd.memory.arguments import checked_labels, kind_of, one_of
from memograd.memory.journal import AlreadyKnown
from memograd.memory.journal.rows import to_json
from memograd.memory.messages import Messages, say_nothing, to_local_moment, to_turns
from memograd.memory.records.events import Event, NewEvent
from memograd.memory.records.operations import OpKind
from memograd.memory.records.scope import Scope, check_id
from memograd.memory.records.turns import RawTurn
from memograd.memory.state.store import MemoryStore
from memograd.memory.write.answers import Answered
from memograd.memory.write.changes import Labels
from memograd.memory.write.remember import learn, learn_verbatim, operations, verbatim_events

if TYPE_CHECKING:
    from memograd.memory.manager import MemoryManager
    from memograd.memory.reader import MemReader

_REQUESTS: Final = uuid.UUID("7f1c2d5e-8a43-4c57-9b1d-6d656d6f7261")
MOST_CHARACTERS: Final = 255
# Whoever sends nothing has lost it on the way, and would take "nothing was worth keeping" for it.
NOTHING_SAID: Final = "What was sent to be remembered is empty: send a text."

TOGETHER: Final = 256  # calls in one transaction, at most

Categorise = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AddCall:
    """turns, scope, labels: what was said, under whose ids, and how its items are labelled.

    reader: None remembers word for word. request_id: the name of the call, if it has one. answered:
    the answer that is written down with it. prompt: what the reader was told to heed. heard_at: the
    moment of the call, where it names none itself. batch: a hash of the named batch it belongs to.
    """

    turns: Sequence[RawTurn]
    scope: Scope
    labels: Labels
    reader: MemReader | None
    request_id: str | None = None
    answered: Answered | None = None
    prompt: str | None = None
    heard_at: datetime | None = None
    batch: str | None = None


class NameTaken(BadInput):
    """A call under a name that another call had before."""


@runtime_checkable
class Instructable(Protocol):
    """A reader that heeds what the application tells it in words."""

    def instructed(self, instructions: str) -> MemReader:
        """A reader of the same kind that heeds these."""
        ...


def reader_for(reader: MemReader, prompt: str | None) -> MemReader:
    """The reader of a call; a prompt that it cannot heed is named in a warning."""
    if prompt is None:
        return reader
    if not isinstance(prompt, str) or not prompt.strip():
        raise BadInput(f"prompt must be a text, not {prompt!r}.")
    if isinstance(reader, Instructable):
        return reader.instructed(prompt)
    warnings.warn(
        "The prompt changes nothing here: it is for a reader that is a chat model"
        f" (reader='chat'), and this memory is read by {type(reader).__name__}.",
        stacklevel=4,
    )
    return reader


def call_parts(
    entry: Messages | Mapping[str, Any], common: Mapping[str, Any], number: int
) -> tuple[Messages, dict[str, Any]]:
    """Messages and keywords of an entry of a batch."""
    if not isinstance(entry, Mapping) or "messages" not in entry:
        if isinstance(entry, Mapping) and "content" not in entry:
            raise BadInput(
                f"Entry {number} of the batch is a dictionary without messages or content: give"
                ' {"messages": ..., "user_id": ...}.'
            )
        return entry, dict(common)
    given = {**common, **entry}
    return given.pop("messages"), given


def call_keywords(given: Mapping[str, Any]) -> dict[str, Any]:
    """What `add` was given, checked. Raises BadInput as `add` does."""
    kind = kind_of(given.get("kind"), given.get("memory_type"))
    instructions = given.get("custom_instructions")
    scope = Scope(given.get("user_id"), given.get("agent_id"), given.get("run_id"))
    labels = checked_labels(
        given.get("metadata"), kind, given.get("categories", ()), given.get("expiration_date")
    )
    to_json(labels.metadata, "metadata")
    return {
        "scope": scope,
        "labels": labels,
        "infer": given.get("infer", True),
        "timestamp": given.get("timestamp"),
        "prompt": one_of("prompt", given.get("prompt"), "custom_instructions", instructions),
        "request_id": given.get("request_id"),
    }


def check_call(messages: Messages, given: Mapping[str, Any]) -> None:
    """Raise BadInput where `add` would for these messages and keywords, or where they say nothing:
    for who would make a memory for them first."""
    if say_nothing(messages):
        raise BadInput(NOTHING_SAID)
    checked = call_keywords(given)
    when = checked["timestamp"]
    now = datetime.now(UTC)
    to_turns(messages, heard_at=now if when is None else to_local_moment(when, "timestamp"))
    if checked["request_id"] is not None:
        _check_name(checked["request_id"])


def carry_calls(
    store: MemoryStore,
    manager: MemoryManager,
    calls: Sequence[AddCall],
    categorise: Categorise,
    progress: Callable[[int, int], None] | None = None,
) -> list[list[Event]]:
    """The operations of each call, in order. progress: told how many calls are done, of how many.

    Raises as `learn` does; the calls before the one that failed are written then.
    """
    done: list[list[Event]] = []
    for group in _groups(calls):
        if len(group) > 1:
            done += _together(store, group, categorise)
        else:
            done.append(_carry(store, manager, group[0], categorise))
        if progress is not None:
            progress(len(done), len(calls))
    return done


def _groups(calls: Sequence[AddCall]) -> Iterator[list[AddCall]]:
    """Runs of calls that may be written together, each of at most `TOGETHER`."""
    group: list[AddCall] = []
    for call in calls:
        fits = _is_plain(call) and len(group) < TOGETHER
        if group and not (
            fits and _is_plain(group[0]) and call.scope.owner == group[0].scope.owner
        ):
            yield group
            group = []
        group.append(call)
    if group:
        yield group


def _is_plain(call: AddCall) -> bool:
    return call.reader is None and call.request_id is None and call.answered is None


def _together(
    store: MemoryStore, calls: Sequence[AddCall], categorise: Categorise
) -> list[list[Event]]:
    now = store.now()
    events: list[NewEvent] = []
    for call in calls:
        # Later than all before, so that a list of them keeps their order.
        begin = now + timedelta(microseconds=len(events))
        events += verbatim_events(call.turns, call.scope, call.labels, begin, categorise)
    written = operations(store.write(calls[0].scope.owner, events))
    place = {turn.id: number for number, call in enumerate(calls) for turn in call.turns}
    found: list[list[Event]] = [[] for _ in calls]
    for event in written:
        found[place[(event.after or {})["sources"][0]]].append(event)
    return found


def _carry(
    store: MemoryStore,
    manager: MemoryManager,
    call: AddCall,
    categorise: Categorise,
) -> list[Event]:
    if call.request_id is None:
        return _write(store, manager, call, categorise)
    call = replace(call, turns=named_turns(call))
    done = written_before(store, call.scope, call.turns)
    if done is not None:
        return done
    try:
        return _write(store, manager, call, categorise)
    except AlreadyKnown:  # the same call, made elsewhere at the same time, was faster
        return written_before(store, call.scope, call.turns) or []


def _write(
    store: MemoryStore,
    manager: MemoryManager,
    call: AddCall,
    categorise: Categorise,
) -> list[Event]:
    beside: list[NewEvent] = []
    if call.answered is not None:
        beside = [call.answered.heard_in([turn.id for turn in call.turns]).event(call.scope)]
    told = (call.turns, call.scope, call.labels)
    if call.reader is None:
        return learn_verbatim(store, *told, categorise=categorise, beside=beside)
    return learn(store, call.reader, manager, *told, categorise=categorise, beside=beside)


def told_by(call: AddCall) -> str:
    """A hash of what a call says, the same for the same call made again later.

    Raises BadInput for metadata that is not made of JSON values.
    """
    said = [
        [
            turn.speaker,
            turn.role,
            turn.text,
            turn.images,
            None if turn.time in (None, call.heard_at) else turn.time.astimezone(UTC).isoformat(),
        ]
        for turn in call.turns
    ]
    labels = call.labels
    ends = None if labels.expires_at is None else labels.expires_at.isoformat()
    _, metadata = to_json(labels.metadata, "metadata")
    filed = [metadata, labels.kind, labels.categories, ends]
    whole = [said, filed, call.reader is not None, call.prompt, call.batch]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def named_batch(calls: Sequence[AddCall], request_id: str) -> list[AddCall]:
    """The calls of a batch that has one name, each with its own, and with what all of them tell.

    Raises BadInput where a call has a name already.
    """
    _check_name(request_id)
    if any(call.request_id is not None for call in calls):
        raise BadInput("Name the batch by request_id or its entries, not both.")
    whole = hashlib.sha256(request_id.encode()).hexdigest()  # of one length, however long
    told = hashlib.sha256("".join(map(told_by, calls)).encode()).hexdigest()
    return [
        replace(call, request_id=f"batch:{whole}:{number}", batch=told)
        for number, call in enumerate(calls)
    ]


def named_turns(call: AddCall) -> list[RawTurn]:
    """The turns of a named call, with ids that tell it. Raises BadInput for a bad name."""
    name, owner = call.request_id or "", call.scope.owner
    _check_name(name)
    told = told_by(call)
    return [
        replace(turn, id=str(uuid.uuid5(_REQUESTS, f"{owner}\0{name}\0{place}")), call=told)
        for place, turn in enumerate(call.turns)
    ]


def _check_name(request_id: str) -> None:
    check_id("request_id", request_id)
    if len(request_id) > MOST_CHARACTERS:
        raise BadInput(f"request_id has more than {MOST_CHARACTERS} characters: shorten it.")


def written_before(
    store: MemoryStore, scope: Scope, turns: Sequence[RawTurn]
) -> list[Event] | None:
    """The operations of the call that wrote these turns; None if none did.

    What was purged since is no longer among them. Raises `NameTaken` when the call said something
    else, or said it under other ids: it would seem to be written there, and is not.
    """
    if not turns:
        return None
    owner = scope.owner
    heard = store.journal.history(turns[0].id, owner=owner)
    if not heard:
        return None
    first = heard[0]
    if first.scope != scope:
        raise NameTaken(
            "This request_id (over HTTP: Idempotency-Key) was used before under other ids of the"
            " user, agent or run: name every call differently."
        )
    ids = {turn.id for turn in turns}
    together = [
        event
        for event in store.journal.tail(owner, after=first.seq - 1, until=first.recorded_at)
        if event.recorded_at == first.recorded_at and not event.erased
    ]
    for turn in turns:
        told = [event for event in together if event.subject == turn.id and event.after]
        if not first.erased and (not told or not _same(turn, told[0])):
            raise NameTaken(
                "This request_id (over HTTP: Idempotency-Key) was used for other messages before:"
                " name every call differently."
            )
        if told and not _told_as(turn, told[0]):
            raise NameTaken(
                "This request_id (over HTTP: Idempotency-Key) was used before for a call with other"
                " parts beside its messages, such as metadata: name every call differently."
            )
    return [
        event
        for event in together
        if event.kind.value in OpKind.__members__
        and ids & set((event.after or event.before or {}).get("sources", ()))
    ]


def _same(turn: RawTurn, event: Event) -> bool:
    kept = RawTurn.from_json((event.after or {})["turn"])
    return (kept.speaker, kept.text, kept.role) == (turn.speaker, turn.text, turn.role)


def _told_as(turn: RawTurn, event: Event) -> bool:
    """Whether the call said all else as now; of calls in older journals that is not known."""
    kept = RawTurn.from_json((event.after or {})["turn"])
    return kept.call in (None, turn.call)
