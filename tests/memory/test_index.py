"""The index is a function of the journal: searches, catching up, damage, purges."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from indexed import (
    NASTY,
    answers,
    history,
    ids,
    item,
    open_index,
    purge,
    turn,
    vector,
)

from memograd.errors import BadInput
from memograd.memory.index import milvus_index
from memograd.memory.journal import Journal
from memograd.memory.records.events import EventKind


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milvus_index, "BATCH_EVENTS", 7)


# Searching


def test_items_and_turns_are_found_by_meaning_and_by_word(tmp_path: Path, journal: Journal) -> None:
    with open_index(tmp_path / "i.db", journal) as index:
        texts = {"i1": "Ann likes tea", "i2": "Ann has a dog", "i3": "安 喜欢 上海"}
        journal.append([item(subject, text) for subject, text in texts.items()])
        journal.append([turn("t1", "tea"), turn("t2", "no", verbatim=True)])
        assert index.catch_up() == 5
        assert index.catch_up() == 0

        hits = index.search(vector("Ann has a dog"), ["likes"], layer="item", k=3)
        dog, tea = (next(hit for hit in hits if hit.id == subject) for subject in ("i2", "i1"))
        assert (dog.dense_rank, dog.lexical_rank) == (1, None)
        assert dog.similarity == pytest.approx(1.0)
        assert tea.lexical_rank == 1
        assert tea.fused == pytest.approx(1 / (20 + tea.dense_rank) + 1 / 21)
        assert [hit.fused for hit in hits] == sorted((hit.fused for hit in hits), reverse=True)

        # A Chinese word is found by itself and not by its characters.
        assert ids(index.search(None, ["上海"], layer="item", k=3, mode="lexical")) == ["i3"]
        assert index.search(None, ["上"], layer="item", k=3, mode="lexical") == []
        assert ids(index.search(None, ["tea"], layer="turn", k=3, mode="lexical")) == ["t1"]
        assert ids(index.search(vector("x"), ["tea"], layer="turn", k=3, mode="dense")) == ["t1"]
        assert index.search(None, [], layer="item", k=3, mode="lexical") == []
        stats = index.stats()
        assert stats.pop("bytes") > 1000
        assert stats == {"rows": 4, "items": 3, "turns": 1, "watermark": 5, "lag": 0}


def test_owners_agents_and_runs_wall_off(tmp_path: Path, journal: Journal) -> None:
    with open_index(tmp_path / "i.db", journal) as index:
        journal.append(
            [
                item("1", "tea", user_id="ann", agent_id="x"),
                item("2", "tea", user_id="ann", agent_id="x", run_id="r"),
                item("3", "tea", user_id="bob", agent_id="x"),
                item("4", "tea", agent_id="ann"),
                item("5", "tea", user_id=NASTY[0]),
            ]
        )
        index.catch_up()

        def found(**more: Any) -> list[str]:
            hits = index.search(vector("tea"), ["tea"], layer="item", k=9, **more)
            assert all(hit.dense_rank and hit.lexical_rank for hit in hits)
            return sorted(ids(hits))

        assert found() == ["1", "2", "3", "4", "5"]
        assert found(owners=["user:ann"]) == ["1", "2"]
        assert found(owners=["agent:ann", f"user:{NASTY[0]}"]) == ["4", "5"]
        assert found(agent_id="x", run_id="r") == ["2"]
        assert found(owners=["user:bob"], agent_id="x") == ["3"]
        assert found(owners=[]) == found(owners=["user:nobody"]) == found(agent_id="") == []
        assert found(owners=[f"user:{n}" for n in range(2_500)] + ["user:ann"]) == ["1", "2"]


def test_any_text_can_be_an_id_an_owner_and_a_term(
    tmp_path: Path, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    ids_ = [text for text in NASTY if "\x00" not in text]  # PostgreSQL has no NUL
    with open_index(tmp_path / "i.db", journal) as index:
        for text in ids_:
            journal.append([item(text, text, user_id=text), turn(f"t{text}", text, user=text)])
        journal.append([item("long", "word " * 30_000), item("empty", "")])
        journal.append([turn("上" * 22_000, "an id that Milvus cannot hold")])
        index.catch_up()
        assert "is longer than 65535 bytes" in caplog.text
        for text in ids_:
            (hit,) = index.search(vector(text), [], layer="item", k=1, mode="dense")
            assert (hit.owner, hit.id) == (f"user:{text}", text)
            (hit,) = index.search(
                vector(text), text.split(), layer="turn", k=5, owners=[f"user:{text}"]
            )
            assert hit.id == f"t{text}"
            assert hit.lexical_rank == 1
        assert ids(index.search(None, ["word"], layer="item", k=5, mode="lexical")) == ["long"]
        for text in ids_:
            journal.append([item(text, text, EventKind.DELETE, user_id=text)])
        index.catch_up()
        assert index.stats()["items"] == 2


def test_bad_searches(tmp_path: Path, journal: Journal) -> None:
    with open_index(tmp_path / "i.db", journal) as index:
        for k in (0, 16_385):
            with pytest.raises(BadInput, match="can return 1 to 16384 rows"):
                index.search(vector("x"), [], layer="item", k=k)
        with pytest.raises(BadInput, match=r"vectors of shape \(16,\)"):
            index.search(np.ones(3, np.float32), [], layer="item", k=1)
        with pytest.raises(BadInput, match="gave None"):
            index.search(None, [], layer="item", k=1)
        assert index.search(vector("x"), ["x"], layer="item", k=16_384) == []


# Index = f(journal)


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 2**32), st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_however_it_caught_up_a_rebuild_answers_the_same(
    tmp_path: Path, seed: int, pieces: list[int]
) -> None:
    place = tmp_path / uuid.uuid4().hex
    place.mkdir()
    events = history(sum(pieces), seed)
    with (
        Journal.open(f"sqlite:///{place / 'journal.db'}") as journal,
        open_index(place / "i.db", journal) as index,
    ):
        for piece in pieces:
            journal.append(events[:piece])
            del events[:piece]
            index.catch_up()
        incremental = answers(index)
        assert index.check() is None
        index.rebuild()
        assert answers(index) == incremental
        # And both are what the journal says, counted here without the index.
        alive: dict[tuple[str, str], bool] = {}
        for event in journal.tail_all(after=0, limit=1_000):
            alive[event.scope.owner, event.subject] = event.kind is not EventKind.DELETE
        assert index.stats()["rows"] == sum(alive.values())


def test_reopening_goes_on_where_it_stopped(tmp_path: Path, journal: Journal) -> None:
    events = history(30)
    journal.append(events[:20])
    with open_index(tmp_path / "i.db", journal) as index:
        index.catch_up()
        before = answers(index)
    with open_index(tmp_path / "i.db", journal) as index:
        assert answers(index) == before
        journal.append(events[20:])
        assert index.stats()["lag"] == 10
        assert index.catch_up() == 10


def damaged(folder: Path, damage: Callable[[Path], None], suffixes: tuple[str, ...]) -> int:
    files = [f for f in folder.rglob("*") if f.is_file() and f.name.endswith(suffixes)]
    for file in files:
        damage(file)
    return len(files)


@pytest.mark.parametrize(
    ("suffixes", "damage"),
    [
        ((".parquet",), lambda file: file.write_bytes(file.read_bytes()[:50])),
        ((".parquet",), lambda file: file.write_bytes(b"garbage" * 99)),
        ((".parquet",), Path.unlink),
        (("schema.json",), lambda file: file.write_bytes(b"\x00\xff{")),
        (("schema.json",), Path.unlink),
        (("manifest.json", "manifest.json.prev"), lambda file: file.write_bytes(b"{")),
        (("",), lambda file: file.write_bytes(b"garbage")),
    ],
    ids=["cut", "garbage", "gone", "schema", "no-schema", "manifest", "everything"],
)
def test_damaged_files_are_noticed_and_filled_again(
    tmp_path: Path,
    journal: Journal,
    suffixes: tuple[str, ...],
    damage: Callable[[Path], None],
) -> None:
    journal.append(history(15))
    with open_index(tmp_path / "i.db", journal) as index:
        index.catch_up()
        right = answers(index)
    collection = tmp_path / "i.db" / "collections" / "memograd"
    assert damaged(collection, damage, suffixes) > 0
    with open_index(tmp_path / "i.db", journal) as index:
        index.catch_up()
        assert answers(index) == right
        assert index.check() is None


def test_a_deleted_index_is_filled_again(tmp_path: Path, journal: Journal) -> None:
    journal.append(history(15))
    with open_index(tmp_path / "i.db", journal) as index:
        index.catch_up()
        right = answers(index)
    shutil.rmtree(tmp_path / "i.db")
    with open_index(tmp_path / "i.db", journal) as index:
        assert index.catch_up() == 15
        assert answers(index) == right


def test_an_index_that_does_not_fit_the_journal_is_emptied(
    tmp_path: Path, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    journal.append(history(10))
    with open_index(tmp_path / "i.db", journal) as index:
        index.catch_up()
    with Journal.open(f"sqlite:///{tmp_path / 'another.db'}") as other:
        other.append([item("only", "tea")])
        with open_index(tmp_path / "i.db", other) as index:
            assert "emptied and will be filled from the journal: it was made from another" in (
                caplog.text
            )
            index.catch_up()
            assert ids(index.search(vector("tea"), ["tea"], layer="item", k=9)) == ["only"]
    with open_index(tmp_path / "i.db", journal) as index:
        assert index.catch_up() == 10
    with Journal.open(f"sqlite:///{tmp_path / 'older.db'}") as older:
        older.set_meta("store_id", str(journal.get_meta("store_id")))
        with open_index(tmp_path / "i.db", older) as index:
            assert "it knows event 10, but the journal ends at 0" in caplog.text
            assert index.stats()["rows"] == 0


def test_lost_rows_are_noticed(
    tmp_path: Path, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    journal.append([item(str(number), "tea") for number in range(5)])
    with open_index(tmp_path / "i.db", journal) as index:
        index.catch_up()
        index._connection.client.delete("memograd", filter="seq == 3")
        assert index.check() == "it holds 4 rows, not the 5 that were written"
    with open_index(tmp_path / "i.db", journal) as index:
        assert "it holds 4 rows, not the 5" in caplog.text
        index.catch_up()
        assert index.stats()["rows"] == 5


def test_another_embedder_is_refused_until_reindexed(tmp_path: Path, journal: Journal) -> None:
    journal.append([item("1", "tea")])
    with open_index(tmp_path / "i.db", journal) as index:
        index.catch_up()
    with pytest.raises(BadInput, match=r"'hash', not 'e5': .*memograd memory reindex"):
        open_index(tmp_path / "i.db", journal, embedder_name="e5")
    with pytest.raises(BadInput, match=r"vectors of 16 numbers.* makes 8.*memory reindex"):
        open_index(tmp_path / "i.db", journal, dimension=8)
    with open_index(tmp_path / "i.db", journal) as index:  # free and unharmed
        assert index.catch_up() == 0
    with open_index(tmp_path / "i.db", journal, embedder_name="e5", replace=True) as index:
        assert index.catch_up() == 1


def test_somebody_elses_collection_is_left_alone(tmp_path: Path, journal: Journal) -> None:
    from memograd.memory.index.connection import Connection

    connection = Connection(str(tmp_path / "i.db"))
    connection.client.create_collection("memograd", dimension=4)
    connection.close()
    with pytest.raises(BadInput, match="was not made by this version of memograd"):
        open_index(tmp_path / "i.db", journal)
    with open_index(tmp_path / "i.db", journal, collection="another") as index:
        assert index.stats()["rows"] == 0


# Erasing


def bytes_under(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def written_within_a_minute(folder: Path, secret: bytes) -> bool:
    """Milvus Lite writes behind the call."""
    for _ in range(600):
        if secret in bytes_under(folder):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("while_closed", [False, True])
def test_a_purge_leaves_no_bytes(tmp_path: Path, journal: Journal, while_closed: bool) -> None:
    folder = tmp_path / "i.db"
    index = open_index(folder, journal)
    journal.append([item("secret-id", "tea"), item("kept-id", "dog"), turn("secret-turn", "x")])
    journal.append([item("old", "tea", user_id="secret-user")])
    index.catch_up()
    journal.append([item("old", "tea", EventKind.DELETE, user_id="secret-user")])
    index.catch_up()
    for secret in (b"secret-id", b"secret-turn", b"secret-user"):
        assert written_within_a_minute(folder, secret)
    if while_closed:
        index.close()
    purge(journal, subject="secret-id")
    purge(journal, subject="secret-turn")
    purge(journal, owner="user:secret-user")
    if while_closed:
        index = open_index(folder, journal)
    journal.append([item("new", "cat", user_id="secret-user-2")])
    index.catch_up()
    assert b"secret-turn" not in bytes_under(folder)
    assert b"secret-id" not in bytes_under(folder)
    assert b"secret-user\x00" not in bytes_under(folder).replace(b"secret-user-2", b"")
    assert sorted(ids(index.search(vector("x"), [], layer="item", k=9))) == ["kept-id", "new"]
    assert index.check() is None
    index.close()
