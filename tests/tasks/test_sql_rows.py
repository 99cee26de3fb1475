"""The prompt, the schema, and which questions become rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memograd.errors import BadInput
from memograd.tasks.sql.questions import (
    SqlQuestion,
    describe_schema,
    make_rows,
    read_questions,
    system_prompt,
)
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sandbox import Sandbox


def test_every_table_and_column_is_named_once() -> None:
    sandbox = Sandbox(sample_database())
    lines = describe_schema(sandbox.tables).splitlines()
    assert len(lines) == len(sandbox.tables) == 2
    for line, table in zip(lines, sandbox.tables, strict=True):
        title, _, columns = line.partition("：")
        assert title.startswith(f"{table.name}（")
        named = [part.split(" ")[0] for part in columns.split("，")]
        assert named == [name for name, _ in table.columns]
        assert all(len(part.split(" ")) == 2 for part in columns.split("，"))
    assert "contraindications 禁忌" in system_prompt(sandbox)


def test_tables_that_we_do_not_know_have_their_types(tmp_path: Path) -> None:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE orders(id INTEGER, price REAL, note)")
    assert describe_schema(Sandbox(path).tables) == "orders：id integer，price real，note"


def test_questions_that_find_nothing_are_left_out_with_the_reason() -> None:
    sandbox = Sandbox(sample_database())
    good = SqlQuestion("good", "?", "SELECT id FROM disease WHERE id = 1", (), "一")
    empty = SqlQuestion("empty", "?", "SELECT id FROM disease WHERE id = 0", (), "无")
    broken = SqlQuestion("broken", "?", "SELECT id FROM diseases", (), "无")
    rows, left_out = make_rows([empty, good, broken], sandbox)
    (row,) = rows
    assert [message["role"] for message in row.prompt] == ["system", "user"]  # type: ignore[index]
    assert row.columns["gold_sql"] == good.sql
    assert row.columns["columns"] is None
    assert len(row.columns["database_sha256"]) == 64
    assert [(one.id, one.reason.rpartition(" finds nothing")[1]) for one in left_out] == [
        ("empty", " finds nothing"), ("broken", ""),
    ]  # fmt: skip
    with pytest.raises(BadInput, match="None of 1 questions can be asked"):
        make_rows([empty], sandbox)


def test_the_seed_s_questions_can_all_be_asked(shared_data: Path) -> None:
    folder = shared_data / "medical_sql"
    rows, left_out = make_rows(
        read_questions(folder / "questions_dev.jsonl.gz"), Sandbox(folder / "medical.sqlite")
    )
    assert (len(rows), left_out) == (666, [])


def test_public_databases_of_other_kinds_work_too(shared_data: Path, tmp_path: Path) -> None:
    """Eleven databases of every day: the sandbox opens them, and their schemas can be shown."""
    for script in sorted((shared_data / "defog" / "sqlite_sql").glob("*.sql")):
        path = tmp_path / f"{script.stem}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script.read_text("utf-8"))
        sandbox = Sandbox(path)
        for table in sandbox.tables:
            assert sandbox.run(f'SELECT * FROM "{table.name}" LIMIT 2').error is None
