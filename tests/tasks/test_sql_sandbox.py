"""The sandbox on ordinary statements, on every kind of refusal, and on files that are none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.tasks.sql.sandbox import Sandbox, SqlLimits


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "药 房?#%.sqlite"  # every character a URI could trip on
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE drugs_info(id integer primary key, med_name text)")
        rows = [(number, f"药{number}") for number in range(1000)]
        connection.executemany("INSERT INTO drugs_info VALUES (?, ?)", rows)
        connection.execute("CREATE VIEW few AS SELECT med_name FROM drugs_info WHERE id < 3")
        connection.execute("CREATE TABLE big(text text)")
        connection.execute("INSERT INTO big VALUES (?)", ("x" * 200_000,))
    return path


@pytest.fixture(scope="module")
def sandbox(database: Path) -> Sandbox:
    return Sandbox(database)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT med_name FROM drugs_info WHERE id = 7", (("药7",),)),
        ("select count(*) from drugs_info;", ((1000,),)),
        ("-- how many?\nSELECT count(*) FROM few", ((3,),)),
        ("WITH a AS (SELECT id FROM drugs_info WHERE id < 2) SELECT * FROM a", ((0,), (1,))),
        ("SELECT id FROM drugs_info WHERE id=1 UNION SELECT id FROM drugs_info WHERE id=2",
         ((1,), (2,))),
        ("VALUES (1), (2)", ((1,), (2,))),
        ("SELECT upper('a'), length('药'), 1.5, NULL", (("A", 1, 1.5, None),)),
        ("SELECT ';'", ((";",),)),
        ("SELECT d.id FROM (SELECT id FROM drugs_info) AS d LIMIT 1", ((0,),)),
        ("SELECT row_number() OVER (ORDER BY id) FROM drugs_info LIMIT 1", ((1,),)),
        ("WITH a AS (SELECT id FROM few, drugs_info WHERE id < 2), b AS (SELECT 1 FROM a x, a y) "
         "SELECT count(*) FROM b", ((36,),)),
        ("WITH 药(名) AS (VALUES (1), (2)) SELECT count(*) FROM 药 AS x, 药 AS y", ((4,),)),
        ("SELECT trim('药药abc药', '药'), ltrim(12.50, '1'), rtrim(NULL, 'a'), trim('  a ')",
         (("abc", "2.5", None, "a"),)),
    ],
)  # fmt: skip
def test_a_query_is_answered(sandbox: Sandbox, sql: str, rows: object) -> None:
    result = sandbox.run(sql)
    assert (result.error, result.rows, result.cut) == (None, rows, False)


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("", "these are 0 statements"),
        (" ; ", "these are 0 statements"),
        ("SELECT 1; SELECT 2", "these are 2 statements"),
        ("WITH sqlite_master AS (SELECT 1 FROM drugs_info, drugs_info b) SELECT count(*) FROM "
         "sqlite_master, main.sqlite_master", "the table sqlite_master may not be read"),
        ("WITH a AS (SELECT 1) SELECT a.x FROM a, gone", "no such table: gone"),
        ("DROP TABLE drugs_info", "only SELECT is allowed, not DROP"),
        ("PRAGMA user_version = 3", "only SELECT is allowed, not PRAGMA"),
        ("EXPLAIN SELECT 1", "only SELECT is allowed, not EXPLAIN"),
        ("WITH a AS (DELETE FROM drugs_info RETURNING *) SELECT * FROM a", "within WITH too"),
        ("SELECT * FROM sqlite_master", "sqlite_master may not be read"),
        ("SELECT * FROM pragma_table_info('drugs_info')", "only reading is allowed"),
        ("SELECT load_extension('x')", "function load_extension is not allowed"),
        ("SELECT zeroblob(1000000000)", "function zeroblob is not allowed"),
        ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c",
         "recursive queries"),
        ("SELECT gone FROM drugs_info", "no such column: gone"),
        ("SELECT * FROM gone", "no such table: gone"),
        ("SELECT 'a", "not valid SQL"),
        ("SELEC 1", "not SELEC"),
        ("SELECT " + "(" * 60 + "1" + ")" * 60, "nested too deeply"),
        ("SELECT " + "not " * 900 + "1", "nested too deeply"),
        ("SELECT '" + "x" * 5000 + "'", "at most 4000 are allowed"),
        ("SELECT 1\0", "not allowed"),
        ("SELECT '\ud800'", ""),
        ("SELECT text FROM big", "too big"),
        ("SELECT count(*) FROM drugs_info a, drugs_info b, drugs_info c", "takes too long"),
        ("SELECT abs(-9223372036854775807 - 1)", "integer overflow"),
    ],
)  # fmt: skip
def test_what_is_refused_or_fails_is_said_in_words(sandbox: Sandbox, sql: str, error: str) -> None:
    result = sandbox.run(sql)
    assert result.error and error in result.error
    assert not result.rows


def test_results_are_cut_by_rows_and_by_size(database: Path) -> None:
    few = Sandbox(database, SqlLimits(rows=5)).run("SELECT id FROM drugs_info")
    assert (len(few.rows), few.cut) == (5, True)
    small = Sandbox(database, SqlLimits(result_bytes=30)).run("SELECT med_name FROM drugs_info")
    assert small.cut
    assert 5 < len(small.rows) < 20
    exactly = Sandbox(database, SqlLimits(rows=3)).run("SELECT * FROM few")
    assert (len(exactly.rows), exactly.cut) == (3, False)


def test_steps_are_counted_the_same_every_time(database: Path) -> None:
    """Where a long statement stops does not depend on the clock."""
    sandbox = Sandbox(database, SqlLimits(steps=30_000, seconds=600))
    stopped = [sandbox.run("SELECT count(*) FROM drugs_info a, drugs_info b") for _ in range(2)]
    assert [result.steps for result in stopped] == [30_000, 30_000]
    out_of_time = Sandbox(database, SqlLimits(seconds=0))
    stopped_by = out_of_time.run("SELECT count(*) FROM drugs_info a, drugs_info b").error
    assert "stopped by the clock, after 0 seconds of computing" in str(stopped_by)


def test_tables_and_views_are_known_with_their_columns(sandbox: Sandbox) -> None:
    assert {table.name: table.columns for table in sandbox.tables} == {
        "drugs_info": (("id", "integer"), ("med_name", "text")),
        "few": (("med_name", "text"),),
        "big": (("text", "text"),),
    }


def test_files_that_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no database .*gone"):
        Sandbox(tmp_path / "gone.sqlite")
    (tmp_path / "text.sqlite").write_text("hello, this is a text of some length" * 100)
    with pytest.raises(BadInput, match="cannot be read as a SQLite file"):
        Sandbox(tmp_path / "text.sqlite")
    sqlite3.connect(tmp_path / "empty.sqlite").executescript("VACUUM").connection.close()
    with pytest.raises(BadInput, match="has no tables"):
        Sandbox(tmp_path / "empty.sqlite")


def test_a_write_ahead_log_is_refused_and_not_overlooked(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t(x)")
        writer.commit()
        with pytest.raises(BadInput, match=r"log\.sqlite-wal that are not in the file yet"):
            Sandbox(path)
    assert Sandbox(path).tables
    assert not list(tmp_path.glob("*-shm"))


def test_what_a_model_writes_does_not_fill_the_log(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    assert sandbox.run("REPLACE INTO drugs_info VALUES (1, 'x')").error
    assert sandbox.run("WITH a AS (VACUUM) SELECT 1").error
    assert not caplog.records


def grown(character: str, tens: int) -> str:
    """SQL that makes a text of 10 ** `tens` equal characters, and no limit stops."""
    text = f"'{character * 10}'"
    for _ in range(tens - 1):
        text = f"replace({text}, '{character}', '{character * 10}')"
    return text


@pytest.mark.parametrize("name", ["trim", "ltrim", "rtrim", '"trim"'])
def test_no_trim_takes_long_within_one_step(sandbox: Sandbox, name: str) -> None:
    """A step cannot be interrupted: SQLite's own would compare 10,000 times 1,001 characters in
    it, for every row."""
    few = f"{name}({grown('a', 4)} || id, {grown('b', 3)} || 'a')"
    result = sandbox.run(f"SELECT count({few}) FROM drugs_info")
    assert result.error == "trim takes away at most 200 different characters"


@pytest.mark.parametrize(
    "search",
    [
        f"instr({grown('a', 4)} || id, substr({grown('a', 4)}, 1, 5000) || 'b' || id)",
        f"replace({grown('a', 4)} || id, substr({grown('a', 4)}, 1, 5000) || 'b', '') = id",
        f"{grown('a', 4)} || id LIKE '{'%a' * 90}%b'",
        f"{grown('a', 4)} || id GLOB '*{'[a-z]' * 30}b'",
        f"\"glob\"('*{'[a-z]' * 30}b', {grown('a', 4)} || id)",
        f"trim({grown('a', 4)} || id, substr({grown('b', 3)}, 1, 150) || 'a') = id",
        f"strftime('{'%J%f' * 400}', id + length(a.med_name || b.med_name)) = ''",
    ],
)
def test_much_work_within_one_step_counts_as_many(database: Path, search: str) -> None:
    # A busy machine must not let the clock be first.
    sandbox = Sandbox(database, SqlLimits(seconds=60, wall_seconds=120))
    stopped = sandbox.run(
        f"SELECT count(*) FROM drugs_info, few a, few b, few c, few d WHERE {search}"
    )
    assert stopped.error == "the query takes too long; make it simpler or more selective"


@pytest.mark.parametrize(
    "search", ["text LIKE '%x%y'", "instr(text, 'x')", "replace(text, '药', 'x') = 'y'"]
)
def test_many_short_searches_in_long_texts_count_as_many_steps(tmp_path: Path, search: str) -> None:
    path = tmp_path / "long.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE long(text text)")
        connection.executemany("INSERT INTO long VALUES (?)", [("药" * 20_000,)] * 50)
    sandbox = Sandbox(path, SqlLimits(steps=1_000_000))
    few, many = (
        f"SELECT count(*) FROM long WHERE {' OR '.join([search] * count)}" for count in (5, 30)
    )
    assert sandbox.run(few).rows == ((0,),)
    assert sandbox.run(many).error == "the query takes too long; make it simpler or more selective"


@pytest.mark.parametrize(
    "moment",
    [
        *("date()", "date('now')", "date('NOW', '+1 day')", "date(lower('NOW'))", "julianday()"),
        *("unixepoch('now')", "unixepoch('subsec')", "strftime('%s')", "strftime('%s', 'n'||'ow')"),
        *("time('now')", "datetime('2020-01-01', 'localtime')", "date('2020-01-01', 'UTC')"),
        *("CURRENT_TIMESTAMP", "CURRENT_DATE", "current_time", "random()", "randomblob(8)"),
        # SQLite reads bytes as text, and text up to its first NUL.
        *("date(x'6e6f77')", "date(CAST('Now' AS BLOB))", "unixepoch(x'6e6f7700ff')"),
        *("julianday(CAST(x'4e4f5700' AS TEXT))", "strftime('%s', x'6e6f77')"),
        "datetime('2020-01-01', x'6c6f63616c74696d65')",
    ],
)
def test_nothing_depends_on_when_or_where_it_is_asked(sandbox: Sandbox, moment: str) -> None:
    refused = sandbox.run(f"SELECT {moment}").error or ""
    assert "not allowed" in refused
    assert "not allowed" in (
        sandbox.run(f"SELECT id FROM few, drugs_info ORDER BY {moment}").error or ""
    )


@pytest.mark.parametrize(
    "call",
    [
        "date('2024-02-28', '+2 days')",
        "strftime('%Y', '2024-02-28')",
        "unixepoch('2024-02-28 12:00:00')",
        "julianday(2460000)",
        "date(NULL)",
        "time('no time')",
        "datetime('2024-02-28', 'start of year', 'weekday 0')",
        "'aBc' LIKE 'A_C'",
        "'a%' LIKE 'a!%' ESCAPE '!'",
        "12 LIKE '1%'",
        "NULL LIKE 'a'",
        "'药a' GLOB '?[a-c]'",
        "instr('药房', '房')",
        "instr(x'0102', x'02')",
        "instr(1234, 34)",
        "replace('aaa', 'a', '药')",
        "replace('aaa', '', 'b')",
        "replace(NULL, 'a', 'b')",
        "replace(111, 1, 2.5)",
    ],
)
def test_guarded_functions_say_what_sqlite_says(sandbox: Sandbox, call: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        [(value,)] = connection.execute(f"SELECT {call}")
    found = sandbox.run(f"SELECT {call}, 'a' || 'b'")  # what can grow texts is guarded
    assert (found.error, found.rows) == (None, ((value, "ab"),))


@given(st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False))
@example(358135691577631.5)
def test_numbers_are_trimmed_as_sqlite_writes_them(sandbox: Sandbox, value: float) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        [(trimmed,)] = connection.execute("SELECT trim(?, '0')", (value,))
    literal = repr(value).replace("inf", "9e999")
    assert sandbox.run(f"SELECT trim({literal}, '0') FROM drugs_info WHERE id = 1").rows == (
        (trimmed,),
    )
