"""The trace store: rollouts, their calls, their rewards, in SQL.

Invariants: a rollout moves only as `VALID_TRANSITIONS` says, whoever pushes; a call is written
whole or not at all, only to a rollout that lives, and under its own number; a reward is finite and
given once. What was written is there after `kill -9`. `TraceStore` is the gateway's own and ends
rollouts whose time is over when it is asked; a `TraceReader` says what was last written, and writes
nothing, neither tables nor states.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sqlalchemy import Connection, and_, bindparam, or_, select, update

from memograd.errors import BadInput, MemogradError
from memograd.gateway.database import (
    CALLS,
    CHOICES,
    ROLLOUTS,
    TraceDatabase,
    call_of,
    call_row,
    choice_rows,
    dump,
    rollout_of,
    sayable,
)
from memograd.gateway.records import LIVE, VALID_TRANSITIONS, CallRecord, RolloutRecord

# What every call runs is put together once: that costs as much as running it.
_BY_ID: Final = select(ROLLOUTS).where(ROLLOUTS.c.id == bindparam("wanted"))
_HEARD: Final = (
    update(ROLLOUTS)
    .where(ROLLOUTS.c.id == bindparam("wanted"), ROLLOUTS.c.state.in_(LIVE))
    .values(updated_at=bindparam("now"))
)
_BEGIN_CALL: Final = (
    update(ROLLOUTS)
    .where(ROLLOUTS.c.id == bindparam("wanted"), ROLLOUTS.c.state.in_(LIVE))
    .where(or_(ROLLOUTS.c.deadline.is_(None), ROLLOUTS.c.deadline > bindparam("now")))
    .where(ROLLOUTS.c.updated_at > bindparam("heard"))
    .values(state="running", calls=ROLLOUTS.c.calls + 1, updated_at=bindparam("now"))
    .returning(ROLLOUTS)
)
_ADD_CALL: Final = CALLS.insert()
_ADD_CHOICES: Final = CHOICES.insert()


class NoSuchRollout(BadInput):
    """There is no rollout of that id, or the key is not its own: which of them is not said."""


class WrongState(MemogradError):
    """The rollout's life cycle does not allow that."""


class TraceWatcher(Protocol):
    """Told of what was written, after it was; in the thread that wrote it, so it must not wait."""

    def called(self, call: CallRecord) -> None:
        """A call was answered."""
        ...

    def ended(self, record: RolloutRecord) -> None:
        """A rollout is over."""
        ...


@dataclass(frozen=True)
class NewRollout:
    """A rollout just made, and the key that opens it, which is kept nowhere."""

    record: RolloutRecord
    api_key: str


class TraceStore:
    """Rollouts and calls in a database named by `url`; safe to share by threads.

    `idle_seconds`: after so long without a call a rollout is `timed_out`; None leaves that to
    whoever serves these rollouts, as reading them must not end them. `clock` gives seconds since
    1970.
    """

    def __init__(
        self,
        url: str = "sqlite:///traces.db",
        *,
        idle_seconds: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = TraceDatabase(url)
        self.idle_seconds = math.inf if idle_seconds is None else idle_seconds
        self._clock = clock
        self.watcher: TraceWatcher | None = None
        self.place = self._database.place

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    # The life of a rollout

    def create(
        self,
        *,
        metadata: Mapping[str, Any] | None = None,
        policy_version: int = 0,
        seconds: float | None = None,
        seed: int | None = None,
    ) -> NewRollout:
        """A new rollout with its API key; `seconds` until its deadline.

        `seed`: what the calls that name no seed of their own are drawn from, each by its number.
        """
        now = self._clock()
        key = f"mg-{secrets.token_urlsafe(24)}"
        record = RolloutRecord(
            id=secrets.token_hex(12),
            state="open",
            metadata=dict(metadata or {}),
            policy_version=policy_version,
            seed=secrets.randbits(48) if seed is None else seed,
            created_at=now,
            updated_at=now,
            deadline=None if seconds is None else now + seconds,
        )
        row = {**vars(record), "metadata": dump(record.metadata), "key_sha256": _sha256(key)}
        with self._database.writing() as connection:
            connection.execute(ROLLOUTS.insert(), row)
        return NewRollout(record, key)

    def authenticate(self, rollout_id: str, api_key: str) -> RolloutRecord:
        """The rollout, if `api_key` is its own; raises NoSuchRollout if not, or if there is none.

        Both take the same time, so nobody learns which ids exist.
        """
        with self._database.reading() as connection:
            row = connection.execute(_BY_ID, {"wanted": sayable(rollout_id)}).first()
        expected = row.key_sha256 if row is not None else _sha256("")
        matches = secrets.compare_digest(_sha256(api_key), expected)
        if row is None or not matches:
            raise NoSuchRollout("There is no such rollout, or this API key is not its own.")
        return rollout_of(row)

    def begin_call(self, rollout_id: str) -> tuple[RolloutRecord, int]:
        """Let a rollout make a call: it is running and not idle from now; returns it as it is then,
        and the call's number.

        Raises WrongState for a rollout that is over, and one whose deadline has passed.
        """
        now = self._clock()
        asked = {"wanted": sayable(rollout_id), "now": now, "heard": now - self.idle_seconds}
        with self._database.writing() as connection:
            row = connection.execute(_BEGIN_CALL, asked).first()
        if row is not None:
            return rollout_of(row), row.calls - 1
        state = self.rollout(rollout_id).state
        raise WrongState(f"The rollout {rollout_id} is {state}: it takes no calls.")

    def heard(self, rollout_ids: Collection[str]) -> None:
        """These rollouts wait for answers: they are not idle."""
        now = self._clock()
        with self._database.writing() as connection:
            for rollout_id in rollout_ids:
                connection.execute(_HEARD, {"wanted": rollout_id, "now": now})

    def record(self, call: CallRecord) -> None:
        """Write a call down; raises WrongState if its rollout is over meanwhile."""
        with self._database.writing() as connection:
            heard = {"wanted": call.rollout_id, "now": self._clock()}
            if not connection.execute(_HEARD, heard).rowcount:
                state = self._get(connection, call.rollout_id).state
                raise WrongState(f"The rollout {call.rollout_id} is {state}: it takes no calls.")
            connection.execute(_ADD_CALL, call_row(call))
            connection.execute(_ADD_CHOICES, choice_rows(call))
        if self.watcher is not None:
            self.watcher.called(call)

    def amend(self, rollout_id: str, number: int, asked: Mapping[str, Any]) -> None:
        """Let a call's record say this of its request; what was said and drawn stays as it is."""
        of_call = and_(CALLS.c.rollout_id == rollout_id, CALLS.c.number == number)
        with self._database.writing() as connection:
            connection.execute(update(CALLS).where(of_call).values(asked=dump(asked)))

    def reward(self, rollout_id: str, reward: float) -> RolloutRecord:
        """End a rollout with its reward; raises BadInput for one that is not finite, WrongState for
        a rollout that is over."""
        if not math.isfinite(reward):
            raise BadInput(
                f"The reward of rollout {rollout_id} is {reward}, not a finite number; what cannot "
                "be rewarded has failed."
            )
        return self._move(rollout_id, "rewarded", reward=float(reward))

    def finish(self, rollout_id: str, error: str | None = None) -> RolloutRecord:
        """End a rollout whose trace says what it was worth; `error` is what cut it short, if
        anything did. Raises WrongState if it is over, or has made no call."""
        return self._move(rollout_id, "finished", error=None if error is None else sayable(error))

    def fail(self, rollout_id: str, error: str) -> RolloutRecord:
        """End a rollout with the reason why it has no reward; raises WrongState if it is over."""
        return self._move(rollout_id, "failed", error=sayable(error))

    def expire(self) -> int:
        """End every rollout whose deadline has passed or that is idle too long; how many."""
        now = self._clock()
        ends = {"late": "its deadline passed", "idle": "nothing was heard of it for too long"}
        late = and_(ROLLOUTS.c.deadline.is_not(None), ROLLOUTS.c.deadline <= now)
        idle = ROLLOUTS.c.updated_at <= now - self.idle_seconds
        live = ROLLOUTS.c.state.in_(_sources("timed_out"))
        with self._database.reading() as connection:
            due = connection.execute(select(ROLLOUTS.c.id).where(live, or_(late, idle))).first()
        if due is None:
            return 0
        with self._database.writing() as connection:
            ended = [
                rollout_of(row)
                for when, why in ((late, ends["late"]), (idle, ends["idle"]))
                for row in connection.execute(
                    update(ROLLOUTS)
                    .where(live, when)
                    .values(state="timed_out", error=why, updated_at=now)
                    .returning(ROLLOUTS)
                ).all()
            ]
        for record in ended:
            self._tell_end(record)
        return len(ended)

    def _tell_end(self, record: RolloutRecord) -> None:
        if self.watcher is not None:
            self.watcher.ended(record)

    # Reading

    def rollout(self, rollout_id: str) -> RolloutRecord:
        """One rollout; raises NoSuchRollout."""
        self.expire()
        with self._database.reading() as connection:
            return self._get(connection, rollout_id)

    def rollouts(
        self, *, state: str | None = None, limit: int | None = None
    ) -> list[RolloutRecord]:
        """Rollouts, the newest first; those in `state` only if it is given."""
        self.expire()
        wanted = select(ROLLOUTS).order_by(ROLLOUTS.c.created_at.desc(), ROLLOUTS.c.id)
        if state is not None:
            wanted = wanted.where(ROLLOUTS.c.state == state)
        with self._database.reading() as connection:
            return [rollout_of(row) for row in connection.execute(wanted.limit(limit))]

    def calls(self, rollout_id: str) -> list[CallRecord]:
        """The calls of a rollout that were answered, in the order in which they began."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(CALLS).where(CALLS.c.rollout_id == rollout_id).order_by(CALLS.c.number)
            ).all()
            of_call: dict[int, list[Any]] = {row.number: [] for row in rows}
            for choice in connection.execute(
                select(CHOICES)
                .where(CHOICES.c.rollout_id == rollout_id)
                .order_by(CHOICES.c.number, CHOICES.c.place)
            ):
                of_call[choice.number].append(choice)
        return [call_of(row, of_call[row.number]) for row in rows]

    def call(self, rollout_id: str, number: int) -> CallRecord | None:
        """One of them; None if there is none of that number, or it was not answered."""
        of_call = and_(CALLS.c.rollout_id == rollout_id, CALLS.c.number == number)
        chosen = and_(CHOICES.c.rollout_id == rollout_id, CHOICES.c.number == number)
        with self._database.reading() as connection:
            row = connection.execute(select(CALLS).where(of_call)).first()
            found = select(CHOICES).where(chosen).order_by(CHOICES.c.place)
            return None if row is None else call_of(row, connection.execute(found).all())

    def traces(
        self, ids: Sequence[str] | None = None
    ) -> Iterator[tuple[RolloutRecord, list[CallRecord]]]:
        """Rollouts with their calls: those named, or all, the oldest first."""
        wanted = ids if ids is not None else [found.id for found in reversed(self.rollouts())]
        for rollout_id in wanted:
            yield self.rollout(rollout_id), self.calls(rollout_id)

    def _move(self, rollout_id: str, state: str, **values: Any) -> RolloutRecord:
        self.expire()
        with self._database.writing() as connection:
            moved = connection.execute(
                update(ROLLOUTS)
                .where(ROLLOUTS.c.id == rollout_id, ROLLOUTS.c.state.in_(_sources(state)))
                .values(state=state, updated_at=self._clock(), **values)
            ).rowcount
            found = self._get(connection, rollout_id)
            if not moved:
                why = "has made no call" if found.state in LIVE else f"is over: it is {found.state}"
                raise WrongState(f"The rollout {rollout_id} {why}, so it cannot become {state}.")
        self._tell_end(found)
        return found

    def _get(self, connection: Connection, rollout_id: str) -> RolloutRecord:
        row = connection.execute(_BY_ID, {"wanted": sayable(rollout_id)}).first()
        if row is None:
            raise NoSuchRollout(f"There is no rollout {rollout_id!r} in {self.place}.")
        return rollout_of(row)


def _sources(target: str) -> list[str]:
    """The states that may become `target`."""
    return [state for state, following in VALID_TRANSITIONS.items() if target in following]


def _sha256(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class TracePage:
    """Rollouts, the newest first. older: the rollout after which the next page begins, None at the
    end."""

    rollouts: list[RolloutRecord]
    older: str | None


class TraceReader:
    """An open store; safe to share by threads."""

    def __init__(self, url: str) -> None:
        """Open it; raises BadInput where there are no traces of this format."""
        self._database = TraceDatabase(url, read_only=True)
        self.place = self._database.place

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def rollout(self, rollout_id: str) -> RolloutRecord | None:
        """One rollout, None where there is none of that id."""
        wanted = select(ROLLOUTS).where(ROLLOUTS.c.id == sayable(rollout_id))
        with self._database.reading() as connection:
            row = connection.execute(wanted).first()
        return None if row is None else rollout_of(row)

    def page(self, *, state: str | None, after: str | None, limit: int) -> TracePage:
        """Up to `limit` rollouts that are older than the rollout `after`; from the newest on where
        that is None or unknown."""
        table = ROLLOUTS.c
        wanted = select(ROLLOUTS).order_by(table.created_at.desc(), table.id.desc())
        if state is not None:
            wanted = wanted.where(table.state == state)
        last = None if after is None else self.rollout(after)
        if last is not None:
            same = and_(table.created_at == last.created_at, table.id < last.id)
            wanted = wanted.where(or_(table.created_at < last.created_at, same))
        with self._database.reading() as connection:
            rows = connection.execute(wanted.limit(limit + 1)).all()
        found = [rollout_of(row) for row in rows[:limit]]
        return TracePage(found, found[-1].id if len(rows) > limit else None)

    def calls(self, rollout_id: str, *, first: int, limit: int) -> list[CallRecord]:
        """Up to `limit` calls of a rollout from the number `first` on, in their order."""
        of_calls = select(CALLS).where(
            CALLS.c.rollout_id == sayable(rollout_id), CALLS.c.number >= first
        )
        with self._database.reading() as connection:
            rows = connection.execute(of_calls.order_by(CALLS.c.number).limit(limit)).all()
            numbers = [row.number for row in rows]
            of_choices = select(CHOICES).where(
                CHOICES.c.rollout_id == sayable(rollout_id), CHOICES.c.number.in_(numbers)
            )
            choices = connection.execute(of_choices.order_by(CHOICES.c.place)).all()
        return [call_of(row, [one for one in choices if one.number == row.number]) for row in rows]
