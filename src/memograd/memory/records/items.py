"""One remembered statement, the two clocks that it lives by, and the moment it ends by itself.

`valid_from` and `valid_to` say when the statement was true in the world; `created_at` and
`updated_at` say when the memory learnt it. Updating and deleting never destroy an item: they close
the validity of its present version, and the journal keeps every version. What the application gives
as `expiration_date` becomes the moment from which on the item is hidden, until it is swept: a date
counts to its end, in UTC, as in mem0; a time of day is that very moment.

Invariants: an item survives its JSON form unchanged; a date survives the way to the moment and
back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any, Final

from memograd.errors import BadInput
from memograd.memory.records.scope import Scope

_DAY: Final = timedelta(days=1)


class Kind(StrEnum):
    """What sort of memory an item is.

    core: who the user is and how to treat them, always in the prompt and bounded. episodic: what
    happened. semantic: what is so. procedural: how something is done.
    """

    CORE = "core"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One version of one remembered statement.

    metadata: JSON values of the application's own. categories: names that the application defines.
    sources: ids of the raw turns it came from, within the same owner. valid_from, valid_to: when it
    was true, None where unknown or still so. created_at: when the item's first version was learnt,
    updated_at: when this one was; both in UTC. expires_at: from when on it is hidden, in UTC; None:
    never. role, actor_id: as whom it was first said, and by what name, if one was given.
    """

    id: str
    text: str
    scope: Scope
    created_at: datetime
    updated_at: datetime
    kind: Kind = Kind.SEMANTIC
    categories: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    role: str | None = None
    actor_id: str | None = None

    @property
    def content_hash(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return content_hash(self.text)

    def to_json(self) -> dict[str, Any]:
        """JSON values only; empty fields are left out."""
        values: dict[str, Any] = {
            "id": self.id,
            "text": self.text,
            **self.scope.ids(),
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
            "kind": self.kind.value,
        }
        optional = {
            "categories": list(self.categories),
            "metadata": dict(self.metadata),
            "sources": list(self.sources),
            "valid_from": self.valid_from.isoformat() if self.valid_from else None,
            "valid_to": self.valid_to.isoformat() if self.valid_to else None,
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
            "role": self.role,
            "actor_id": self.actor_id,
        }
        return values | {key: value for key, value in optional.items() if value}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> MemoryItem:
        """The item that `to_json` wrote."""
        return cls(
            id=values["id"],
            text=values["text"],
            scope=Scope(values.get("user_id"), values.get("agent_id"), values.get("run_id")),
            created_at=datetime.fromisoformat(values["created_at"]),
            updated_at=datetime.fromisoformat(values["updated_at"]),
            kind=Kind(values["kind"]),
            categories=tuple(values.get("categories", ())),
            metadata=values.get("metadata", {}),
            sources=tuple(values.get("sources", ())),
            valid_from=_moment(values.get("valid_from")),
            valid_to=_moment(values.get("valid_to")),
            expires_at=_moment(values.get("expires_at")),
            role=values.get("role"),
            actor_id=values.get("actor_id"),
        )


def content_hash(text: str) -> str:
    """SHA-256 of a text, in hexadecimal: the key of everything that is computed from it alone."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def to_expiry(value: object) -> datetime | None:
    """The moment, in UTC, from which on it is hidden; None for None, which is never.

    value: a date, a datetime (UTC where it names no zone), or either as an ISO 8601 text. Raises
    BadInput for anything else.
    """
    if value is None:
        return None
    try:
        day = _day(value)
        if day is not None:
            return datetime.combine(day, time(), UTC) + _DAY
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime):
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise BadInput(
        f"expiration_date is {value!r}: give a date such as 2030-12-31, the last day on which it is"
        " shown, or a time such as 2030-12-31T18:30:00."
    )


def expiry_result(moment: datetime | None) -> str | None:
    """As the application gave it: the last day for midnight, else the time."""
    if moment is None:
        return None
    whole = moment.time() == time()
    return (moment - _DAY).date().isoformat() if whole else moment.isoformat()


def _day(value: object) -> date | None:
    """The date, None where a time of day is given, or none at all."""
    if isinstance(value, datetime) or not isinstance(value, date | str):
        return None
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None
