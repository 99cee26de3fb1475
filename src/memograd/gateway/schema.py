"""The tables of a trace store, and the version of their shape.

Invariant: a store of an older format is brought up to this one when it is opened; one of a newer or
another format is refused, never half understood.

Token ids are little-endian int32 and log-probabilities float64, in one value an answer, because a
long conversation has thousands of them. A rollout's API key is kept as its SHA-256 only.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

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
