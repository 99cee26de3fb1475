from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

from memograd.errors import BadInput, MemogradError
from memograd.memory.journal import Journal, sqlite_url
from memograd.memory.records.events import EventKind, NewEvent
from memograd.memory.records.scope import Scope

EVENT = NewEvent(EventKind.ADD, Scope("alice"), "i1", after={"text": "x"})
OTHER = NewEvent(EventKind.ADD, Scope("alice"), "i2", after={"text": "y"})


def refusal(url: str) -> str:
    with pytest.raises(BadInput) as caught:
        Journal.open(url)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Not the superuser, whom no permission stops."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_new_journal_is_empty_and_opens_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/日记 1.db"
    with Journal.open(url) as journal:
        assert (journal.last_seq(), journal.owners()) == (0, [])
        journal.append([EVENT])
    with Journal.open(url) as journal:
        assert journal.last_seq() == 1


def test_sqlite_is_told_to_be_durable_and_to_overwrite(tmp_path: Path) -> None:
    with Journal.open(f"sqlite:///{tmp_path}/j.db") as journal:
        with journal._database.reading() as connection:
            pragmas = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("journal_mode", "synchronous", "secure_delete", "busy_timeout")
            }
        assert pragmas == {
            "journal_mode": "wal",
            "synchronous": 2,
            "secure_delete": 1,
            "busy_timeout": 30_000,
        }


def test_a_write_is_one_transaction_that_begins_as_a_writer(tmp_path: Path) -> None:
    statements: list[str] = []
    with Journal.open(f"sqlite:///{tmp_path}/j.db") as journal:
        with journal._database.writing() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            assert driver.in_transaction
            driver.set_trace_callback(statements.append)
        statements.clear()
        journal.append([EVENT, OTHER])
    words = [statement.split()[0] for statement in statements]
    assert words == ["BEGIN", *["SELECT"] * 4, "INSERT", "INSERT", "COMMIT"]
    assert statements[0] == "BEGIN IMMEDIATE"


def test_an_exception_within_a_write_takes_it_back(tmp_path: Path) -> None:
    with Journal.open(f"sqlite:///{tmp_path}/j.db") as journal:
        journal.append([EVENT])
        with pytest.raises(ZeroDivisionError), journal._database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM events")
            raise ZeroDivisionError
        assert journal.last_seq() == 1
        journal.append([OTHER])


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/j.db"
    Journal.open(url).close()
    with sqlite3.connect(tmp_path / "j.db") as raw:
        raw.execute("UPDATE meta SET value = '2' WHERE key = 'schema_version'")
    raw.close()
    assert "format 2" in refusal(url)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("Dear diary, this is not a database at all." * 100, "not a database"),
        ("x", "a file with one byte stands there, which is no database"),
    ],
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(
    tmp_path: Path, held: str, said: str
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(held)
    assert said in refusal(f"sqlite:///{file}")
    assert file.read_text() == held


@pytest.mark.parametrize("table", ["bookmarks (url TEXT)", "meta (version INT)", "events (x INT)"])
def test_the_database_of_another_program_is_refused_and_left_alone(
    tmp_path: Path, table: str
) -> None:
    file = tmp_path / "other.db"
    raw = sqlite3.connect(file)
    raw.execute(f"CREATE TABLE {table}")
    raw.commit()
    before = file.read_bytes()
    assert "something else" in refusal(f"sqlite:///{file}")
    tables = raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    raw.close()
    assert tables == [(table.split()[0],)]
    assert file.read_bytes() == before  # no write-ahead log was switched on
    assert [other.name for other in tmp_path.iterdir()] == ["other.db"]


@pytest.mark.parametrize("name", ["what?x", "a#b", "100%25", "100%", "a b;c", "日记", "x&mode=ro"])
def test_any_folder_can_hold_a_journal(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    url = sqlite_url(folder / "j.db")
    with Journal.open(url) as journal:
        journal.append([EVENT])
        assert (folder / "j.db").exists()
    with Journal.open(url.render_as_string()) as journal:
        assert journal.last_seq() == 1
        assert journal.stats()["place"] == str(folder / "j.db")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_places_that_hold_no_file_are_refused(tmp_path: Path) -> None:
    assert "is a folder" in refusal(f"sqlite:///{tmp_path}")
    assert "does not exist" in refusal(f"sqlite:///{tmp_path}/missing/j.db")
    assert "must have a file" in refusal("sqlite://")
    assert "must have a file" in refusal("sqlite:///:memory:")
    assert "mysql" in refusal("mysql://localhost/x") or "package" in refusal("mysql://localhost/x")
    assert "not understood" in refusal("journal.db")
    assert "not understood" in refusal("cassandra://localhost/x")


@pytest.mark.usefixtures("ordinary_user")
def test_a_folder_without_permission_is_refused() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        assert "unable to open" in refusal(f"sqlite:///{folder}/j.db")


@pytest.mark.usefixtures("ordinary_user")
def test_a_file_that_cannot_be_written_is_refused() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "j.db"
        file.touch(mode=0o444)
        assert "writable" in refusal(f"sqlite:///{file}")


def test_a_server_that_does_not_answer_is_refused_without_its_password() -> None:
    pytest.importorskip("psycopg")
    message = refusal("postgresql+psycopg://me:secret@127.0.0.1:1/none")
    assert "127.0.0.1" in message
    assert "secret" not in message


def test_a_closed_journal_says_so(tmp_path: Path) -> None:
    journal = Journal.open(f"sqlite:///{tmp_path}/j.db")
    journal.close()
    journal.close()
    with pytest.raises(MemogradError, match="closed"):
        journal.append([EVENT])
    with pytest.raises(MemogradError, match="closed"):
        journal.tail("user:alice")


def test_the_last_to_close_leaves_a_single_file(tmp_path: Path) -> None:
    with Journal.open(f"sqlite:///{tmp_path}/j.db") as journal:
        journal.append([EVENT])
        assert journal.stats()["bytes"] > (tmp_path / "j.db").stat().st_size
    assert [file.name for file in tmp_path.iterdir()] == ["j.db"]


def test_two_journals_are_two_databases(tmp_path: Path) -> None:
    with (
        Journal.open(f"sqlite:///{tmp_path}/1.db") as one,
        Journal.open(f"sqlite:///{tmp_path}/2.db") as two,
    ):
        one.append([EVENT])
        assert two.last_seq() == 0
        engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/1.db")
        assert set(sqlalchemy.inspect(engine).get_table_names()) == {"meta", "events", "derived"}
        engine.dispose()
