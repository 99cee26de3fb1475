"""A call that is made twice, because its first answer was lost: written once, answered twice.

The application names a call (`request_id`); the ids of its raw turns are then made from that name,
so a journal that has the turns has the call. Nothing else is kept: the answer is read from the
journal again. Invariant: under one owner a request id is written once, whichever process was asked
and wherever it was killed.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memograd.errors import BadInput
from memograd.memory.records.events import Event
from memograd.memory.records.operations import OpKind
from memograd.memory.records.scope import check_id
from memograd.memory.records.turns import RawTurn
from memograd.memory.state.store import MemoryStore

_REQUESTS: Final = uuid.UUID("7f1c2d5e-8a43-4c57-9b1d-6d656d6f7261")
MOST_CHARACTERS: Final = 255


def named_turns(turns: Sequence[RawTurn], owner: str, request_id: str) -> list[RawTurn]:
    """The turns with ids that tell the call. Raises BadInput for a request id that cannot be."""
    check_id("request_id", request_id)
    if len(request_id) > MOST_CHARACTERS:
        raise BadInput(f"request_id has more than {MOST_CHARACTERS} characters: shorten it.")
    return [
        replace(turn, id=str(uuid.uuid5(_REQUESTS, f"{owner}\0{request_id}\0{place}")))
        for place, turn in enumerate(turns)
    ]


def written_before(store: MemoryStore, owner: str, turns: Sequence[RawTurn]) -> list[Event] | None:
    """The operations of the call that wrote these turns; None if none did.

    What was purged since is no longer among them. Raises BadInput when the call said something
    else.
    """
    if not turns:
        return None
    heard = store.journal.history(turns[0].id, owner=owner)
    if not heard:
        return None
    first = heard[0]
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
                "This request_id was used for other messages before: name every call differently."
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
