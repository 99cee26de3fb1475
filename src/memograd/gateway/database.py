"""The database of a trace store: its tables, which places can hold them, records as their rows.

Token ids are little-endian int32 and log-probabilities float64, in one value an answer, because a
long conversation has thousands of them. A rollout's API key is kept as its SHA-256 only.

Invariants: a store of an older format is brought up to this one when a gateway opens it, in one
transaction; a reader changes nothing; one of a newer or another format is refused, never half
understood. `record_of(row_of(record)) == record`, but for names that no database takes.
`memograd.web.tables` says what is durable.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    Table,
    Text,
    inspect,
    select,
)
from sqlalchemy.engine import Connection

from memograd.errors import BadInput
from memograd.gateway.records import CallRecord, Choice, RolloutRecord
from memograd.memory.journal.engine import checked_url
from memograd.rollout.types import packed, unpacked
from memograd.web.tables import Tables

SCHEMA_VERSION: Final = "3"
MIGRATIONS: Final = {
    "1": ("ALTER TABLE calls ADD COLUMN asked TEXT",),
    "2": ("ALTER TABLE choices ADD COLUMN allowed {bytes}",),
}
"""From an older version to the next: columns are added, and what they mean where they are null is
what was true of every call before."""

METADATA: Final = MetaData()

META: Final = Table(
    "trace_meta",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

ROLLOUTS: Final = Table(
    "rollouts",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("key_sha256", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("policy_version", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("updated_at", Float(53), nullable=False),
    Column("deadline", Float(53)),
    Column("calls", Integer, nullable=False),
    Column("reward", Float(53)),
    Column("error", Text),
    Index("rollouts_by_state", "state", "updated_at"),
    Index("rollouts_by_age", "created_at", "id"),
)

CALLS: Final = Table(
    "calls",
    METADATA,
    Column("rollout_id", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("agent", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("policy_version", Integer, nullable=False),
    Column("messages", Text, nullable=False),
    Column("tools", Text, nullable=False),
    Column("sampling", Text, nullable=False),
    Column("prompt_ids", LargeBinary),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("logprobs_temperature", Float(53)),
    Column("mismatch", Text),
    Column("asked", Text),
    Column("began_at", Float(53), nullable=False),
    Column("latency", Float(53), nullable=False),
    ForeignKeyConstraint(["rollout_id"], ["rollouts.id"]),
)

CHOICES: Final = Table(
    "choices",
    METADATA,
    Column("rollout_id", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("text", Text, nullable=False),
    Column("tool_calls", Text, nullable=False),
    Column("finish_reason", Text, nullable=False),
    Column("token_ids", LargeBinary),
    Column("logprobs", LargeBinary),
    Column("allowed", LargeBinary),
    ForeignKeyConstraint(["rollout_id", "number"], ["calls.rollout_id", "calls.number"]),
)

FORMS: Final = "sqlite:///traces.db or postgresql+psycopg://user@host/database"


class TraceDatabase(Tables):
    """An open database with the trace store's tables, shared by all threads of the process."""

    what = "The trace store"
    creating_lock = int.from_bytes(b"mgtraces", "big")  # any constant will do

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        """Open it, creating the tables; raises BadInput when the place named cannot be used.

        read_only: create and change nothing, in this place or in its traces; BadInput where there
        are no traces, or they are of an older format.
        """
        place = checked_url(url, name="store", contents="Traces", forms=FORMS)
        file = place.database if place.get_backend_name() == "sqlite" else None
        if read_only and file is not None and not Path(file).is_file():
            raise BadInput(f"There are no traces in {file}: name the store of a gateway.")
        super().__init__(place, read_only=read_only)

    def _check(self, connection: Connection) -> None:
        if not inspect(connection).has_table(META.name):
            raise BadInput(f"There are no traces in {self.place}: name the store of a gateway.")
        version = connection.execute(select(META.c.value)).scalar()
        if version != SCHEMA_VERSION:
            raise BadInput(
                f"The traces in {self.place} have the format {version} and this memograd reads"
                f" {SCHEMA_VERSION}: open them once with the gateway of the newer of the two."
            )

    def _create(self, connection: Connection) -> None:
        present = set(inspect(connection).get_table_names())
        ours = set(METADATA.tables)
        # An SQLite file is the store's own; PostgreSQL may hold other tables beside it.
        foreign = present - ours if self.is_sqlite else set[str]()
        if META.name not in present:
            foreign |= present & ours
        if foreign:
            raise BadInput(
                f"The database {self.place} holds tables of something else"
                f" ({', '.join(sorted(foreign)[:3])}): give the traces one of their own."
            )
        if META.name not in present:
            METADATA.create_all(connection)
            connection.execute(META.insert(), {"key": "version", "value": SCHEMA_VERSION})
        version = connection.execute(select(META.c.value)).scalar()
        while version in MIGRATIONS:
            for statement in MIGRATIONS[version]:
                kind = "BLOB" if self.is_sqlite else "BYTEA"
                connection.exec_driver_sql(statement.format(bytes=kind))
            version = str(int(version) + 1)
            connection.execute(META.update().values(value=version))
        if version != SCHEMA_VERSION:
            raise BadInput(
                f"The traces in {self.place} have the format {version} and this memograd reads"
                f" {SCHEMA_VERSION}: use the version of memograd that wrote them."
            )


def rollout_of(row: Row[Any]) -> RolloutRecord:
    """A row of `rollouts`."""
    values = {**row._mapping, "metadata": json.loads(row._mapping["metadata"])}
    values.pop("key_sha256")
    return RolloutRecord(**values)


def call_row(call: CallRecord) -> dict[str, Any]:
    """A row of `calls`."""
    return {
        **{name: value for name, value in vars(call).items() if name != "choices"},
        "agent": sayable(call.agent),
        "model": sayable(call.model),
        "messages": dump(call.messages),
        "tools": dump(call.tools),
        "sampling": dump(call.sampling),
        "asked": dump(call.asked),
        "prompt_ids": _packed(call.prompt_ids, "<i4"),
    }


def choice_rows(call: CallRecord) -> list[dict[str, Any]]:
    """Rows of `choices`."""
    return [
        {
            "rollout_id": call.rollout_id,
            "number": call.number,
            "place": place,
            "text": dump(choice.text),
            "tool_calls": dump(choice.tool_calls),
            "finish_reason": sayable(choice.finish_reason),
            "token_ids": _packed(choice.token_ids, "<i4"),
            "logprobs": _packed(choice.logprobs, "<f8"),
            "allowed": None if choice.allowed is None else packed(choice.allowed),
        }
        for place, choice in enumerate(call.choices)
    ]


def call_of(row: Row[Any], choices: Sequence[Row[Any]]) -> CallRecord:
    """A row of `calls` with its rows of `choices`, in order."""
    values = dict(row._mapping)
    return CallRecord(
        **{
            **values,
            "messages": tuple(json.loads(values["messages"])),
            "tools": tuple(json.loads(values["tools"])),
            "sampling": json.loads(values["sampling"]),
            "asked": json.loads(values["asked"] or "{}"),
            "prompt_ids": _unpacked(values["prompt_ids"], "<i4"),
            "choices": tuple(_choice_of(choice) for choice in choices),
        }
    )


def dump(value: Any) -> str:
    """JSON in which every text is itself; NUL and half a surrogate pair, which databases refuse,
    become escapes."""
    text = json.dumps(value, ensure_ascii=False, default=dict)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, default=dict)
    return text


def sayable(text: str) -> str:
    """A text that every database takes: without NUL, and a question mark for half a pair."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def _choice_of(row: Row[Any]) -> Choice:
    return Choice(
        text=json.loads(row.text),
        finish_reason=row.finish_reason,
        tool_calls=tuple(json.loads(row.tool_calls)),
        token_ids=_unpacked(row.token_ids, "<i4"),
        logprobs=_unpacked(row.logprobs, "<f8"),
        allowed=None if row.allowed is None else unpacked(row.allowed),
    )


def _packed(values: Sequence[float] | None, kind: str) -> bytes | None:
    return None if values is None else np.asarray(values, dtype=kind).tobytes()


def _unpacked(data: bytes | None, kind: str) -> Any:
    return None if data is None else tuple(np.frombuffer(data, dtype=kind).tolist())
