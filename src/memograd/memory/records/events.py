"""What the journal is made of: one event for everything that happened to a memory.

Folding the events of an owner in the order of their sequence numbers gives the owner's memory at
any moment; everything else (states, indexes, caches) is computed from them.

Invariant: an event survives its JSON form unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from memograd.memory.records.scope import Scope


class EventKind(StrEnum):
    """TURN: a raw turn was heard. ADD, UPDATE, DELETE, NONE: the four operations. PURGE: erased.

    FORGET: a raw turn is searched no more, since what came from it is to be forgotten. ANSWER: a
    question was answered with the memory. FEEDBACK: how good an answer was.
    """

    TURN = "TURN"
    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"
    PURGE = "PURGE"
    ANSWER = "ANSWER"
    FEEDBACK = "FEEDBACK"
    FORGET = "FORGET"


RECORDS: Final = frozenset({EventKind.NONE, EventKind.ANSWER, EventKind.FEEDBACK})
"""Kinds that are written down and change neither items nor turns."""

CLOSING: Final = frozenset({EventKind.UPDATE, EventKind.DELETE, EventKind.FORGET, EventKind.PURGE})
"""Kinds that may take a record away, or put another in its place."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """Something that is about to be written down.

    subject: id of the item or the raw turn it happened to; a NONE has an id of its own. before,
    after: JSON of the item (or turn) around the event, None where there is none; a NONE keeps the
    fact it declined as `after["text"]`, with `sources` and the `item_id` that made it superfluous;
    what ANSWER and FEEDBACK keep stands in `write/answers.py`.
    actor: who decided, such as `user`, `rules`, `llm:<model>` or `policy:<version>`. reason: one
    sentence, may be empty.
    """

    kind: EventKind
    scope: Scope
    subject: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    actor: str = "user"
    reason: str = ""


def said_again(event: NewEvent | Event) -> tuple[str, tuple[str, ...]] | None:
    """The item that a NONE found to say a fact already, and the turns that told the fact.

    They are behind the item as the turns are that it came from.
    """
    after = event.after or {}
    item_id, sources = after.get("item_id"), after.get("sources")
    if event.kind is not EventKind.NONE or not isinstance(item_id, str):
        return None
    turns = sources if isinstance(sources, list) else []
    return item_id, tuple(one for one in turns if isinstance(one, str))


@dataclass(frozen=True, slots=True)
class Event:
    """An event as the journal holds it.

    seq: its place in the journal, rising, unique. uid: the same in every copy of the journal.
    recorded_at: UTC, never before the event that precedes it, even if the clock went backwards.
    erased: a purge took its contents (`before`, `after`, `reason`) away.
    """

    seq: int
    uid: str
    recorded_at: datetime
    kind: EventKind
    scope: Scope
    subject: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    actor: str
    reason: str
    erased: bool = False

    def to_json(self) -> dict[str, Any]:
        """JSON values only, without the place `seq`, which belongs to one journal."""
        return {
            "uid": self.uid,
            "recorded_at": self.recorded_at.isoformat(),
            "kind": self.kind.value,
            **self.scope.ids(),
            "subject": self.subject,
            "before": self.before,
            "after": self.after,
            "actor": self.actor,
            "reason": self.reason,
            "erased": self.erased,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any], seq: int) -> Event:
        """The event that `to_json` wrote, at its place in this journal."""
        return cls(
            seq=seq,
            uid=values["uid"],
            recorded_at=datetime.fromisoformat(values["recorded_at"]),
            kind=EventKind(values["kind"]),
            scope=Scope(values.get("user_id"), values.get("agent_id"), values.get("run_id")),
            subject=values["subject"],
            before=values["before"],
            after=values["after"],
            actor=values["actor"],
            reason=values["reason"],
            erased=values["erased"],
        )
