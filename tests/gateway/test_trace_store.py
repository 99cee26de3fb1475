"""The trace store: what goes in comes out, and a rollout moves only as its table says.

On SQLite and on PostgreSQL.
"""

from __future__ import annotations

import dataclasses
import math
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.gateway.records import STATES, VALID_TRANSITIONS, CallRecord, Choice
from memograd.gateway.store import NoSuchRollout, TraceStore, WrongState


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(trace_url: str, clock: Clock) -> Iterator[TraceStore]:
    store = TraceStore(trace_url, idle_seconds=100, clock=clock)
    yield store
    store.close()


def call(rollout_id: str, number: int = 0, **given) -> CallRecord:
    fields = {
        "agent": "写手",
        "model": "tiny",
        "policy_version": 3,
        "messages": ({"role": "user", "content": "苹果 \ud83d"},),
        "tools": ({"type": "function", "function": {"name": "f"}},),
        "sampling": {"temperature": 0.7, "seed": 2**60},
        "prompt_ids": (5, 6, 2**31 - 1),
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "logprobs_temperature": 0.7,
        "began_at": 1.5,
        "latency": 0.1,
        "choices": (
            Choice("好", "stop", token_ids=(1, 2), logprobs=(-0.1, -math.pi)),
            Choice("", "tool_calls", ({"id": "a", "function": {"name": "f"}},)),
        ),
    }
    return CallRecord(rollout_id=rollout_id, number=number, **{**fields, **given})


def move(store: TraceStore, clock: Clock, rollout_id: str, target: str) -> None:
    if target == "running":
        store.begin_call(rollout_id)
    elif target == "rewarded":
        store.reward(rollout_id, 0.5)
    elif target == "finished":
        store.finish(rollout_id, "too many turns\0")
    elif target == "failed":
        store.fail(rollout_id, "it crashed")
    elif target == "timed_out":
        clock.now += 100
        if not store.expire():
            raise WrongState("none was due")


def in_state(store: TraceStore, clock: Clock, state: str) -> str:
    rollout_id = store.create().record.id
    if state == "finished":
        move(store, clock, rollout_id, "running")
    if state != "open":
        move(store, clock, rollout_id, state)
    assert store.rollout(rollout_id).state == state
    return rollout_id


@pytest.mark.parametrize("target", [state for state in STATES if state != "open"])
@pytest.mark.parametrize("source", STATES)
def test_a_rollout_moves_only_as_the_table_says(store, clock, source: str, target: str) -> None:
    rollout_id = in_state(store, clock, source)
    before = store.rollout(rollout_id)
    # A running rollout may make another call without moving.
    if target in VALID_TRANSITIONS[source] or source == target == "running":
        move(store, clock, rollout_id, target)
        assert store.rollout(rollout_id).state == target
    else:
        with pytest.raises(WrongState):
            move(store, clock, rollout_id, target)
        assert store.rollout(rollout_id) == before


def test_a_call_comes_back_equal_after_reopening(trace_url, store, clock) -> None:
    made = store.create(metadata={"任务": [1, None]}, policy_version=3, seconds=50, seed=9)
    rollout_id = made.record.id
    _, number = store.begin_call(rollout_id)
    store.record(call(rollout_id, number))
    store.reward(rollout_id, 0.1 + 0.2)
    store.close()
    again = TraceStore(trace_url, clock=clock)
    assert again.calls(rollout_id) == [call(rollout_id, 0)]
    found = again.rollout(rollout_id)
    assert (found.reward, found.metadata, found.seed) == (0.1 + 0.2, {"任务": [1, None]}, 9)
    assert again.authenticate(rollout_id, made.api_key) == found
    assert list(again.traces()) == [(found, [call(rollout_id, 0)])]
    again.close()


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # a store of many rollouts
)
@given(
    logprobs=st.lists(st.floats(allow_nan=False, max_value=0), max_size=5), text=st.text(max_size=9)
)
def test_records_survive_whatever_is_in_them(store, logprobs, text) -> None:
    rollout_id = store.create().record.id
    choice = Choice(text, "stop", (), tuple(range(len(logprobs))), tuple(logprobs))
    written = call(rollout_id, choices=(choice,), messages=({"role": text, "content": text},))
    store.record(written)
    assert store.calls(rollout_id) == [written]


def test_names_that_no_database_takes_are_written_without_what_is_wrong(store) -> None:
    made = store.create()
    rollout_id = made.record.id
    store.record(call(rollout_id, agent="写\0手\ud83d", model="m\0"))
    [found] = store.calls(rollout_id)
    assert (found.agent, found.model) == ("写手?", "m")
    for wrong in ("\0", "\ud83d"):
        with pytest.raises(NoSuchRollout):
            store.authenticate(f"{wrong}no", made.api_key)


def test_calls_are_numbered_as_they_begin(store) -> None:
    rollout_id = store.create().record.id
    assert [store.begin_call(rollout_id)[1] for _ in range(3)] == [0, 1, 2]
    store.record(call(rollout_id, 2))
    store.record(call(rollout_id, 0))
    assert [found.number for found in store.calls(rollout_id)] == [0, 2]


def test_calls_that_begin_at_once_have_different_numbers(trace_url: str) -> None:
    """From two stores, as from two processes: their locks are the database's."""
    stores = [TraceStore(trace_url) for _ in range(2)]
    rollout_id = stores[0].create().record.id
    together = threading.Barrier(8)

    def ask(place: int) -> int:
        together.wait()
        _, number = stores[place % 2].begin_call(rollout_id)
        stores[place % 2].record(call(rollout_id, number))
        return number

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(ask, range(8))) == list(range(8))
    assert [found.number for found in stores[1].calls(rollout_id)] == list(range(8))
    for store in stores:
        store.close()


def test_stores_that_open_at_once_share_their_tables(trace_url: str) -> None:
    together = threading.Barrier(6)

    def open_store(_: int) -> str:
        together.wait()
        store = TraceStore(trace_url)
        try:
            return store.create().record.id
        finally:
            store.close()

    with ThreadPoolExecutor(6) as threads:
        made = set(threads.map(open_store, range(6)))
    store = TraceStore(trace_url)
    assert {found.id for found in store.rollouts()} == made
    store.close()


def test_a_file_that_another_store_is_making_is_waited_for(tmp_path: Path, monkeypatch) -> None:
    """SQLite itself refuses at once, now and then, when two switch one new file to its log."""
    refused: list[str] = []

    class BusyCursor(sqlite3.Cursor):
        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            if "journal_mode" in sql and len(refused) < 2:
                refused.append(sql)
                raise sqlite3.OperationalError("database is locked")
            return super().execute(sql, *given)

    class Busy(sqlite3.Connection):
        def cursor(self, factory: Any = BusyCursor) -> sqlite3.Cursor:
            return super().cursor(factory)

    connect = sqlite3.connect
    monkeypatch.setattr(
        "sqlite3.dbapi2.connect", lambda *args, **given: connect(*args, factory=Busy, **given)
    )
    with closing(TraceStore(f"sqlite:///{tmp_path / 'traces.db'}")) as store:
        assert store.rollouts() == []
    assert len(refused) == 2
    with closing(connect(tmp_path / "traces.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_rollout_that_is_over_takes_no_late_call(store) -> None:
    rollout_id = store.create().record.id
    _, number = store.begin_call(rollout_id)
    store.fail(rollout_id, "killed")
    with pytest.raises(WrongState, match=f"{rollout_id} is failed"):
        store.record(call(rollout_id, number))
    assert store.calls(rollout_id) == []


def test_deadlines_and_idleness_end_rollouts(store, clock) -> None:
    late = store.create(seconds=10).record.id
    idle, busy = store.create().record.id, store.create().record.id
    clock.now += 60
    store.begin_call(busy)
    assert store.rollout(late).state == "timed_out"
    assert "deadline" in str(store.rollout(late).error)
    clock.now += 60
    assert store.rollout(idle).state == "timed_out"
    assert store.rollout(busy).state == "running"
    assert [found.id for found in store.rollouts(state="running")] == [busy]


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_a_reward_is_a_finite_number(store, reward: float) -> None:
    rollout_id = store.create().record.id
    with pytest.raises(BadInput, match=rollout_id):
        store.reward(rollout_id, reward)
    assert store.rollout(rollout_id).reward is None


def test_only_its_own_key_opens_a_rollout(store) -> None:
    one, other = store.create(), store.create()
    assert store.authenticate(one.record.id, one.api_key).id == one.record.id
    said = set()
    for rollout_id, key in [(one.record.id, other.api_key), (one.record.id, ""), ("no", "")]:
        with pytest.raises(NoSuchRollout) as error:
            store.authenticate(rollout_id, key)
        said.add(str(error.value))
    assert len(said) == 1  # whether the rollout exists is not told


def test_keys_are_not_in_the_files(tmp_path) -> None:
    store = TraceStore(f"sqlite:///{tmp_path}/traces.db")
    made = store.create()
    store.close()
    for file in tmp_path.iterdir():
        assert made.api_key.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "not understood"),
        ("sqlite://", "must have a file"),
        ("sqlite:///{tmp}", "is a folder"),
        ("sqlite:///{tmp}/no/traces.db", "does not exist"),
        ("sqlite:///{tmp}/other.db", "tables of something else"),
        ("sqlite:///{tmp}/text.db", "could not be"),
        ("sqlite:///{tmp}/byte.db", "a file with one byte stands there"),
        ("sqlite:///{tmp}/new.db", "have the format 99"),
    ],
)
def test_what_cannot_be_opened_is_refused_in_a_sentence(tmp_path, url: str, said: str) -> None:
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE things (a)")
    other.close()
    (tmp_path / "byte.db").write_bytes(b"x")
    (tmp_path / "text.db").write_text("no database " * 100)
    TraceStore(f"sqlite:///{tmp_path}/new.db").close()
    newer = sqlite3.connect(tmp_path / "new.db")
    newer.execute("UPDATE trace_meta SET value = '99'")
    newer.commit()
    newer.close()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(BadInput, match=said):
        TraceStore(url.format(tmp=tmp_path))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_store_of_the_first_format_is_brought_up(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    store = TraceStore(url)
    rollout = store.create().record.id
    store.begin_call(rollout)
    store.record(call(rollout))
    store.close()
    old = sqlite3.connect(tmp_path / "old.db")
    old.execute("ALTER TABLE calls DROP COLUMN asked")
    old.execute("ALTER TABLE choices DROP COLUMN allowed")
    old.execute("UPDATE trace_meta SET value = '1'")
    old.commit()
    old.close()
    store = TraceStore(url)
    assert store.calls(rollout) == [store.call(rollout, 0)] == [call(rollout)]
    store.begin_call(rollout)
    again = dataclasses.replace(call(rollout), number=1, asked={"api": "responses"})
    store.record(again)
    assert store.call(rollout, 1) == again
    assert store.call(rollout, 2) is None
    store.close()


def test_who_only_reads_ends_nothing(trace_url: str, clock: Clock) -> None:
    """Whoever serves a rollout says how long it may be silent; `memograd traces list` does not."""
    serving = TraceStore(trace_url, idle_seconds=7200, clock=clock)
    reading = TraceStore(trace_url, clock=clock)
    rollout = serving.create().record.id
    clock.now += 7000
    assert [record.state for record in reading.rollouts()] == ["open"]
    assert reading.expire() == 0
    serving.begin_call(rollout)
    clock.now += 7000
    serving.heard([rollout])  # it waits for an answer
    clock.now += 7000
    assert reading.rollout(rollout).state == serving.rollout(rollout).state == "running"
    clock.now += 300
    assert serving.rollout(rollout).state == "timed_out"
    serving.heard([rollout])
    assert serving.rollout(rollout).state == "timed_out"
    for store in (serving, reading):
        store.close()


def test_a_call_may_say_something_else_of_its_request_and_nothing_else(trace_url: str) -> None:
    store = TraceStore(trace_url)
    rollout = store.create().record.id
    for number in (0, 1):
        store.begin_call(rollout)
        store.record(dataclasses.replace(call(rollout), number=number, asked={"api": "responses"}))
    before = store.calls(rollout)
    asked = {"api": "responses", "deleted": True, "备注": "\ud83d"}
    store.amend(rollout, 1, asked)
    assert store.calls(rollout) == [before[0], dataclasses.replace(before[1], asked=asked)]
    store.close()
