"""What a journal promises, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput, MemogradError
from memograd.memory.journal import Conflict, DerivedText, Journal
from memograd.memory.records.events import Event, EventKind, NewEvent
from memograd.memory.records.items import content_hash
from memograd.memory.records.scope import Scope

ALICE, BOB = Scope(user_id="alice"), Scope(user_id="bob")


def add(subject: str, text: str = "", scope: Scope = ALICE, **extra: Any) -> NewEvent:
    return NewEvent(EventKind.ADD, scope, subject, after={"text": text or subject, **extra})


def derive(text: str, owner: str = "user:alice", dimension: int = 4) -> DerivedText:
    vector = np.arange(dimension, dtype=np.float32) + len(text)
    return DerivedText(owner, content_hash(text), vector, tuple(text.split()))


def texts_of(events: list[Event]) -> list[str | None]:
    return [event.after["text"] if event.after else None for event in events]


def test_what_was_appended_is_what_is_read_also_by_another_who_opens_it(
    journal: Journal, url: str
) -> None:
    scope = Scope("alice", "planner", "42")
    change = NewEvent(
        EventKind.UPDATE,
        scope,
        "i1",
        before={"text": "小明住在北京", "n": [1, None, True, 0.5, {"深": "度"}]},
        after={"text": "小明搬到了上海 \u0000 \U0001f642"},
        actor="policy:3",
        reason="搬家",
    )
    written = journal.append([add("i1", "小明住在北京", scope), change])
    assert [event.seq for event in written] == [1, 2]
    assert (written[1].before, written[1].after) == (change.before, change.after)
    assert (written[1].actor, written[1].reason, written[1].scope) == ("policy:3", "搬家", scope)
    assert written[1].recorded_at.utcoffset() == timedelta(0)
    with Journal.open(url) as other:
        assert other.tail("user:alice") == written
        assert other.tail_all(after=0, limit=1) == written[:1]
        assert other.history("i1") == written
        assert other.latest("i1") == written[1]
        assert other.latest("i2") is None


def test_tail_gives_one_owners_events_behind_a_place(journal: Journal) -> None:
    first = journal.append([add("a1"), add("b1", scope=BOB), add("a2")])
    assert journal.tail("user:alice") == [first[0], first[2]]
    assert journal.tail("user:alice", after=first[0].seq) == [first[2]]
    assert journal.tail("user:alice", after=first[2].seq) == []
    assert journal.tail("user:nobody") == []
    assert (journal.last_seq(), journal.last_seq("user:bob"), journal.last_seq("user:x")) == (
        3,
        2,
        0,
    )


def test_tail_until_answers_from_the_past_and_wants_a_time_zone(url: str) -> None:
    moments = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    clock = iter(moments)
    with Journal.open(url, clock=lambda: next(clock)) as journal:
        for place in range(3):
            journal.append([add(f"a{place}")])
        assert [e.recorded_at for e in journal.tail("user:alice", until=moments[1])] == moments[:2]
        assert journal.tail("user:alice", until=moments[0] - timedelta(microseconds=1)) == []
        with pytest.raises(BadInput, match="time zone"):
            journal.tail("user:alice", until=datetime(2024, 1, 1))


def test_time_never_goes_backwards_even_if_the_clock_does(url: str) -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    clock = iter([noon, noon - timedelta(days=400), noon + timedelta(seconds=1)])
    with Journal.open(url, clock=lambda: next(clock)) as journal:
        for scope in (ALICE, BOB, ALICE):
            journal.append([add(uuid4().hex, scope=scope)])
        times = [event.recorded_at for event in journal.tail_all(after=0, limit=9)]
    assert times == [noon, noon, noon + timedelta(seconds=1)]


def test_an_expectation_that_was_overtaken_writes_nothing(journal: Journal) -> None:
    [first] = journal.append([add("i1")], expect={"i1": 0})
    update = NewEvent(EventKind.UPDATE, ALICE, "i1", after={"text": "new"})
    [second] = journal.append([update], expect={"i1": first.seq, "i2": 0})
    with pytest.raises(Conflict, match="try again"):
        journal.append([update, add("i3")], expect={"i1": first.seq}, derived=[derive("new")])
    with pytest.raises(Conflict):
        journal.append([add("i1")], expect={"i1": 0})
    assert issubclass(Conflict, MemogradError)
    assert not issubclass(Conflict, BadInput)
    assert journal.latest("i1") == second
    assert journal.last_seq() == 2
    assert journal.derived("user:alice") == {}


@pytest.mark.parametrize(
    "contents",
    [
        {"fine": 1, "x": float("nan")},
        {"x": float("inf")},
        {"x": {1, 2}},
        {"x": b"bytes"},
        {"x": "half \ud800"},
        {"\udfff": 1},
        {1: "a number as key"},
        {"x": [{2: "deep"}]},
        {"x": datetime(2024, 1, 1)},
    ],
)
def test_what_json_cannot_hold_is_refused_before_anything_is_written(
    journal: Journal, contents: dict[Any, Any]
) -> None:
    bad = NewEvent(EventKind.ADD, ALICE, "i2", after=contents)
    with pytest.raises(BadInput, match=r"\bx\b|the name of a field|^after has the key 1"):
        journal.append([add("i1"), bad])
    assert journal.last_seq() == 0


def test_what_is_refused_is_named_as_the_caller_named_it(journal: Journal) -> None:
    bad = NewEvent(EventKind.ADD, ALICE, "i1", after={"text": "x", "metadata": {"x": {1}}})
    with pytest.raises(BadInput, match=r"^metadata cannot be written as JSON: .*set"):
        journal.append([bad])
    bad = NewEvent(EventKind.ADD, ALICE, "i1", after={"text": "x", "metadata": {"x": {1: 2}}})
    with pytest.raises(BadInput, match=r"^metadata has the key 1: keys must be texts"):
        journal.append([bad])


def test_a_reason_that_quotes_a_nul_is_kept_without_it(journal: Journal) -> None:
    [event] = journal.append([NewEvent(EventKind.NONE, ALICE, "n", reason="Bos\0ton \0")])
    assert event.reason == "Bos\ufffdton \ufffd"
    assert journal.tail("user:alice") == [event]


@pytest.mark.parametrize("text", ["half \ud83d", "nul \0"])
def test_ids_and_actors_must_be_texts_that_both_databases_hold(journal: Journal, text: str) -> None:
    with pytest.raises(BadInput):
        journal.append([add(text)])
    with pytest.raises(BadInput):
        journal.append([NewEvent(EventKind.ADD, ALICE, "i1", actor=text)])
    assert journal.last_seq() == 0


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)


def test_any_json_comes_back_unchanged(tmp_path: Path) -> None:
    with Journal.open(f"sqlite:///{tmp_path}/j.db") as journal:

        @given(
            st.lists(
                st.dictionaries(st.text(st.characters(codec="utf-8")), json_values), max_size=4
            )
        )
        def comes_back(contents: list[dict[str, Any]]) -> None:
            owner = uuid4().hex
            events = [
                NewEvent(EventKind.ADD, Scope(owner), f"i{place}", after=after)
                for place, after in enumerate(contents)
            ]
            written = journal.append(events)
            assert [event.after for event in journal.tail(f"user:{owner}")] == contents
            assert journal.tail(f"user:{owner}") == written

        comes_back()


def test_whoever_tails_all_while_others_write_misses_nothing(url: str) -> None:
    def work(name: str) -> None:
        with Journal.open(url) as journal:  # its own, as another process would have
            for number in range(40):
                journal.append([add(f"{name}.{number}"), add(f"{name}.{number}'")])

    threads = [threading.Thread(target=work, args=(str(name),)) for name in range(4)]
    with Journal.open(url) as journal:
        for thread in threads:
            thread.start()
        seen: list[int] = []
        while len(seen) < 320:
            alive = any(thread.is_alive() for thread in threads)
            events = journal.tail_all(after=seen[-1] if seen else 0, limit=7)
            seen += [event.seq for event in events]
            assert events or alive
            if not events:
                time.sleep(0.005)  # Let the writers go on.
        for thread in threads:
            thread.join()
        assert seen == list(range(1, 321))


def test_of_writers_with_one_expectation_exactly_one_wins(url: str) -> None:
    outcomes: list[str] = []

    def work() -> None:
        with Journal.open(url) as journal:
            try:
                journal.append([add("i1")], expect={"i1": 0})
                outcomes.append("won")
            except Conflict:
                outcomes.append("lost")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost"] * 5 + ["won"]


def test_owners_by_the_ids_of_their_events(journal: Journal) -> None:
    journal.append(
        [
            add("1", scope=Scope("alice", "planner")),
            add("2", scope=Scope("bob", "planner", "7")),
            add("3", scope=Scope(agent_id="planner")),
            add("4", scope=Scope(run_id="7")),
        ]
    )
    assert journal.owners() == ["agent:planner", "run:7", "user:alice", "user:bob"]
    assert journal.owners(user_id="alice") == ["user:alice"]
    assert journal.owners(user_id="alice", run_id="7") == []
    assert journal.owners(agent_id="planner") == ["agent:planner", "user:alice", "user:bob"]
    assert journal.owners(run_id="7") == ["run:7", "user:bob"]
    assert journal.owners(agent_id="planner", run_id="7") == ["user:bob"]
    assert journal.owners(user_id="' OR '1'='1") == []


def test_meta_keeps_the_last_value(journal: Journal) -> None:
    assert journal.get_meta("embedder") is None
    journal.set_meta("embedder", "e5")
    journal.set_meta("embedder", "minilm")
    assert journal.get_meta("embedder") == "minilm"
    for key in ("schema_version", "scrub_pending"):
        with pytest.raises(BadInput, match="belongs to the journal"):
            journal.set_meta(key, "2")


def test_meta_noted_together_is_noted_all_or_none_and_told(journal: Journal) -> None:
    assert journal.set_meta_all({"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
    found = journal.set_meta_all({"a": "x", "c": "3"}, if_absent=True)
    assert found == {"a": "1", "c": "3"}
    assert journal.set_meta_all({"a": "x", "b": "y"}, if_absent=True) == {"a": "1", "b": "2"}
    assert [journal.get_meta(key) for key in "abc"] == ["1", "2", "3"]
    with pytest.raises(BadInput):
        journal.set_meta_all({"a": "new", "schema_version": "2"})
    assert journal.get_meta("a") == "1"
    assert journal.set_meta_all({}) == {}


def test_of_those_who_note_what_is_absent_all_are_told_the_same(url: str) -> None:
    told: list[dict[str, str]] = []

    def work(name: str) -> None:
        with Journal.open(url) as journal:
            told.append(journal.set_meta_all({"by": name, "size": name}, if_absent=True))

    threads = [threading.Thread(target=work, args=(str(name),)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [told[0]] * 6
    assert told[0]["by"] == told[0]["size"]


def test_vectors_of_another_embedder_are_refused(journal: Journal) -> None:
    journal.append([add("i1")], derived=[derive("i1")], embedder="e5")  # nothing is noted yet
    journal.set_meta("embedder", "e5")
    journal.store_derived([derive("i2")], embedder="e5")
    journal.reset_derived({"embedder": "minilm", "dimension": "4"})
    assert journal.derived("user:alice") == {}
    assert (journal.get_meta("embedder"), journal.get_meta("dimension")) == ("minilm", "4")
    sentence = "changed over to the embedder minilm meanwhile: open it again"
    with pytest.raises(BadInput, match=sentence):
        journal.append([add("i2")], derived=[derive("i2")], embedder="e5")
    with pytest.raises(BadInput, match=sentence):
        journal.store_derived([derive("i2")], embedder="e5")
    assert journal.last_seq() == 1
    assert journal.derived("user:alice") == {}


def test_derived_texts_come_back_exactly_and_newer_ones_replace(journal: Journal) -> None:
    long, short = derive("今天 天气 好", dimension=8), derive("short")
    journal.append([add("i1")], derived=[long, short, derive("short", owner="user:bob")])
    found = journal.derived("user:alice")
    assert found.keys() == {long.content_hash, short.content_hash}
    for text in (long, short):
        back = found[text.content_hash]
        assert (back.owner, back.terms) == ("user:alice", text.terms)
        assert back.vector.dtype == np.float32
        np.testing.assert_array_equal(back.vector, text.vector)
    assert journal.derived("user:alice", [short.content_hash, "other"]).keys() == {
        short.content_hash
    }
    assert journal.derived("user:alice", []) == {}
    newer = DerivedText("user:alice", short.content_hash, -short.vector, ("new",))
    journal.store_derived([newer])
    again = journal.derived("user:alice", [short.content_hash])[short.content_hash]
    assert again.terms == ("new",)
    np.testing.assert_array_equal(again.vector, newer.vector)
    many = [derive(f"text {number}") for number in range(1200)]
    journal.store_derived(many)
    assert len(journal.derived("user:alice", [text.content_hash for text in many])) == 1200
    journal.reset_derived({})
    assert journal.derived("user:alice") == {}


@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(3, dtype=np.float64),
        np.zeros((1, 3), dtype=np.float32),
        np.array([1, np.nan], dtype=np.float32),
        np.array([np.inf, -np.inf], dtype=np.float32),
        [1.0, 2.0],
    ],
)
def test_a_vector_must_be_float32_with_one_axis_and_finite(journal: Journal, vector: Any) -> None:
    with pytest.raises(BadInput, match="vector"):
        journal.append([add("i1")], derived=[DerivedText("user:alice", "h", vector, ())])
    assert journal.last_seq() == 0


def test_an_import_gives_every_event_once(journal: Journal, tmp_path: Path) -> None:
    journal.append([add(f"i{number}", f"第{number}") for number in range(2500)])
    journal.append([add("b1", scope=BOB), NewEvent(EventKind.DELETE, ALICE, "i1", reason="x")])
    journal.purge(subjects=["i2"], actor="user", reason="asked")
    lines = [event.to_json() for event in journal.export_events()]
    assert len(lines) == 2503
    copies = [Event.from_json(json.loads(json.dumps(line)), seq=0) for line in lines]
    with Journal.open(f"sqlite:///{tmp_path}/copy.db") as other:
        other.append([add("own", scope=Scope(run_id="1"))])
        assert other.import_events(copies[:1700]).new == 1700
        assert other.import_events(iter(copies + copies[:5])).new == 803
        assert other.import_events(copies).new == 0
        assert [e.to_json() for e in other.tail_all(after=1, limit=9999)] == lines
        assert [e.seq for e in other.tail_all(after=0, limit=9999)] == list(range(1, 2505))
        assert [e.subject for e in other.export_events(["user:bob"])] == ["b1"]
        assert list(other.export_events([])) == []
    assert journal.import_events(copies).new == 0


def test_an_import_keeps_each_owners_time_in_order(url: str, tmp_path: Path) -> None:
    now = datetime(2024, 6, 1, tzinfo=UTC)
    days = [now - timedelta(days=30), now - timedelta(days=20), now + timedelta(days=99)]
    clock = iter(days)
    with Journal.open(f"sqlite:///{tmp_path}/old.db", clock=lambda: next(clock)) as old:
        old.append([add("a1")])
        old.append([add("b1", scope=BOB)])
        old.append([add("b2", scope=BOB)])
        events = list(old.export_events())
    middle = now - timedelta(days=25)
    with Journal.open(url, clock=lambda: middle) as journal:
        journal.append([add("a0")])
    with Journal.open(url, clock=lambda: now) as journal:
        journal.import_events([*events[1:], events[0]])
        alice = [event.recorded_at for event in journal.tail("user:alice")]
        assert alice == [middle, middle]  # not before the newest of its owner
        bob = [event.recorded_at for event in journal.tail("user:bob")]
        assert bob == [days[1], now]  # its own time, but none to come
    with Journal.open(url, clock=lambda: now - timedelta(days=28)) as journal:
        # The newest event in the journal is Alice's and older than Bob's own.
        assert journal.append([add("b3", scope=BOB)])[0].recorded_at == now


def test_an_import_that_gives_a_subject_two_owners_is_refused_whole(
    journal: Journal, tmp_path: Path
) -> None:
    journal.append([add("i1")])
    with Journal.open(f"sqlite:///{tmp_path}/other.db") as other:
        other.append([add("new", scope=BOB), add("i1", scope=BOB)])
        events = list(other.export_events())
    with pytest.raises(BadInput, match="'i1' of user:bob belongs to user:alice"):
        journal.import_events(events)
    assert journal.last_seq() == 1


def test_stats_count(journal: Journal) -> None:
    journal.append([add("a1"), add("b1", scope=BOB)], derived=[derive("a1")])
    stats = journal.stats()
    counts = {key: stats[key] for key in ("events", "erased", "owners", "derived", "last_seq")}
    assert counts == {"events": 2, "erased": 0, "owners": 2, "derived": 1, "last_seq": 2}
    assert stats["bytes"] > 0
