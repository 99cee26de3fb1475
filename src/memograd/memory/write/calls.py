"""Calls of `add`: checked one by one, then carried out in order, many at once where that is safe.

A call may be made twice because its first answer was lost. The application names it
(`request_id`); the ids of its raw turns are then made from that name, so a journal that has the
turns has the call, and the answer is read from the journal again.

Invariants: under one owner a request id is written once, whichever process was asked and wherever
it was killed; calls that are written together are all remembered word for word under one owner, so
that none of them rests on another.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from memograd.errors import BadInput
from memograd.memory.arguments import checked_labels, kind_of, one_of
from memograd.memory.journal import AlreadyKnown
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
    from memograd.memory.messages import Messages
    from memograd.memory.reader import MemReader

_REQUESTS: Final = uuid.UUID("7f1c2d5e-8a43-4c57-9b1d-6d656d6f7261")
MOST_CHARACTERS: Final = 255


TOGETHER: Final = 256  # calls in one transaction, at most

Categorise = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AddCall:
    """turns, scope, labels: what was said, under whose ids, and how its items are labelled.

    reader: None remembers word for word. request_id: the name of the call, if it has one. answered:
    the answer that is written down with it.
    """

    turns: Sequence[RawTurn]
    scope: Scope
    labels: Labels
    reader: MemReader | None
    request_id: str | None = None
    answered: Answered | None = None


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
    return {
        "scope": Scope(given.get("user_id"), given.get("agent_id"), given.get("run_id")),
        "labels": checked_labels(
            given.get("metadata"), kind, given.get("categories", ()), given.get("expiration_date")
        ),
        "infer": given.get("infer", True),
        "timestamp": given.get("timestamp"),
        "prompt": one_of("prompt", given.get("prompt"), "custom_instructions", instructions),
        "request_id": given.get("request_id"),
    }


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
    call = replace(call, turns=named_turns(call.turns, call.scope.owner, call.request_id))
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


def named_turns(turns: Sequence[RawTurn], owner: str, request_id: str) -> list[RawTurn]:
    """The turns with ids that tell the call. Raises BadInput for a request id that cannot be."""
    check_id("request_id", request_id)
    if len(request_id) > MOST_CHARACTERS:
        raise BadInput(f"request_id has more than {MOST_CHARACTERS} characters: shorten it.")
    return [
        replace(turn, id=str(uuid.uuid5(_REQUESTS, f"{owner}\0{request_id}\0{place}")))
        for place, turn in enumerate(turns)
    ]


def written_before(
    store: MemoryStore, scope: Scope, turns: Sequence[RawTurn]
) -> list[Event] | None:
    """The operations of the call that wrote these turns; None if none did.

    What was purged since is no longer among them. Raises BadInput when the call said something
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
        raise BadInput(
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
            raise BadInput(
                "This request_id (over HTTP: Idempotency-Key) was used for other messages before:"
                " name every call differently."
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
