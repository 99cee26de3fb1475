"""What fools a reader of SQL, hides the present time, or grows where no table does.

Each statement is run twice with the ordinary limits: it says the same, and changes nothing."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memograd.tasks.sql.sandbox import Result, Sandbox, SqlLimits
from memograd.tasks.sql.sandbox import database as kept

ROWS = "(SELECT 1 FROM drugs_info LIMIT 120)"
LIST = f"WITH d AS (SELECT '['||group_concat(a.id)||']' x FROM drugs_info a, {ROWS})"
"""A list of 80,000 characters."""
DEEP = f"'{'[' * 990}{']' * 990}'"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "medical.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE drugs_info(id integer primary key, med_name text)")
        rows = [(number, f"药 {number}") for number in range(1001, 1136)]
        connection.executemany("INSERT INTO drugs_info VALUES (?, ?)", rows)
    return path


def asked_twice(database: Path, statement: str) -> Result:
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    # A busy machine must not let the clock be first.
    sandbox = Sandbox(database, SqlLimits(seconds=60, wall_seconds=120))
    result = sandbox.run(statement)
    assert sandbox.run(statement) == result
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]
    return result


READ_OTHERWISE = (
    "SELECT [a];DROP TABLE drugs_info;--] FROM drugs_info",
    "SELECT 'a\\'; DELETE FROM drugs_info; --'",
    "SELECT 'a\\', (SELECT sql FROM sqlite_master)",
    'SELECT "a\\", (SELECT sql FROM sqlite_master) x FROM drugs_info',
    "SELECT\u00a0sql\u00a0FROM\u00a0sqlite_master",
    'SELECT 1 /**/ , sql FROM "sqlite_master"',
    "SELECT sql FROM [sqlite_schema]",
    "SELECT name FROM 'sqlite_master'",
    "SELECT sql FROM `SQLITE_MASTER`",
    "SELECT * FROM temp.sqlite_temp_schema",
    "SELECT {# 1 #} 2, {{ 1 }}",
    "SELECT $$ 1 $$",
    "SELECT 1 \x1a; DROP TABLE x",
    "SELECT 1\u037e SELECT 2",
    "SELECT * INTO OUTFILE 'x' FROM drugs_info",
    "SELECT * FROM (EXPLAIN SELECT 1)",
    "SELECT * FROM bytecode('SELECT 1')",
    "SELECT * FROM pragma_function_list",
    "SELECT * FROM json_each('[1]'), pragma_database_list",
    "SELECT fts5(1)",
    "SELECT 1 RETURNING *",
)
THE_TIME = (
    "SELECT CURRENT_TIMESTAMP",
    "SELECT current_date",
    "SELECT date(char(110, 111, 119))",
    "SELECT date(printf('%s', 'now'))",
    "SELECT date(format('%s%c', 'no', 'w'))",
    "SELECT date(value) FROM json_each('[\"now\"]')",
    "SELECT date('[\"NOW\"]' ->> 0)",
    "SELECT date(json_extract('[\"now\"]', '$[0]'))",
    "SELECT date('now' || char(0))",
    "SELECT date(lower('NOW')), date('2024-01-01')",
    "SELECT date('2024-01-01') UNION ALL SELECT date('2024-01-01', 'local' || 'time')",
    "SELECT strftime(NULL, 'now')",
    "SELECT strftime('now')",
    "SELECT med_name FROM drugs_info ORDER BY random() LIMIT 1",
)


@pytest.mark.parametrize("statement", [*READ_OTHERWISE, *THE_TIME])
def test_it_is_refused(database: Path, statement: str) -> None:
    assert asked_twice(database, statement).error


TOO_MUCH = {
    "too big": (
        "SELECT hex(hex(hex(hex(hex(hex(hex(hex(printf('%900d', 1)))))))))",
        "SELECT json_group_array(a.med_name || b.med_name) FROM drugs_info a, drugs_info b",
        "SELECT json_group_object(a.id || b.id, a.id) FROM drugs_info a, drugs_info b",
        "WITH a0 AS (SELECT '[1,2,3,4,5,6,7,8,9]' x), "
        + ", ".join(
            f"a{n} AS (SELECT '['||group_concat(x)||']' x FROM a{n - 1}, json_each(a{n - 1}.x))"
            for n in range(1, 12)
        )
        + " SELECT length(x) FROM a11",
    ),
    "takes too long": (
        *(
            f"SELECT sum(length({made})) FROM drugs_info a, drugs_info b, drugs_info c"
            for made in (
                "printf('%90000d', a.id)",
                "printf('%.90000f', a.id)",
                "hex(printf('%40000d', a.id) || c.id)",
                "quote(printf('%40000d', a.id) || c.id)",
            )
        ),
        f"{LIST} SELECT sum(k.value) FROM d, json_each(d.x) j, json_each(d.x) k",
        "SELECT count(*) FROM "
        + ", ".join(f"json_each('[1,2,3,4,5,6,7,8,9]') j{n}" for n in range(30)),
        "SELECT count(*) FROM json_each('[1,2,3]') j0, "
        + ", ".join(f"json_each('['||j{n - 1}.value||',1,2,3]') j{n}" for n in range(1, 30)),
        "SELECT count(x) FROM (SELECT first_value(a.id) OVER (PARTITION BY a.id % 3 ORDER BY b.id "
        "ROWS BETWEEN 100 PRECEDING AND 100 FOLLOWING EXCLUDE GROUP) x FROM drugs_info a, "
        "drugs_info b, drugs_info c)",
    ),
    "at most 64 are allowed": (
        f"SELECT 1 FROM {', '.join(f'drugs_info d{n}' for n in range(65))}",
    ),
    "grows too large": (
        f"SELECT DISTINCT {', '.join(f'd{n}.id' for n in range(60))} "
        f"FROM {', '.join(f'drugs_info d{n}' for n in range(60))} LIMIT 5",
        f"SELECT DISTINCT * FROM {', '.join(f'drugs_info d{n}' for n in range(60))} LIMIT 5",
        f"SELECT 1 FROM {', '.join(f'drugs_info d{n}' for n in range(60))} "
        f"ORDER BY {', '.join(f'd{n}.med_name' for n in range(60))} LIMIT 5",
        f"WITH n AS (SELECT 1 FROM {', '.join(f'drugs_info d{n}' for n in range(60))}) SELECT 1 "
        f"WHERE {' OR '.join(['EXISTS(SELECT 1 FROM n)'] * 3)}",
    ),
}


@pytest.mark.parametrize(
    ("said", "statement"), [(said, one) for said, all_ in TOO_MUCH.items() for one in all_]
)
def test_what_grows_is_ended_by_a_count(database: Path, said: str, statement: str) -> None:
    assert said in (asked_twice(database, statement).error or "")


FINE = {
    "SELECT length(printf('%.*c', 99999, 'x'))": (99999,),
    "SELECT printf('%2000000000d', 1), printf('%.2000000000f', 1.5)": (None, None),
    f"{LIST} SELECT json_array_length(x) FROM d": (16200,),
    f"SELECT count(*) FROM json_tree({DEEP})": (990,),
    "SELECT lag(id, 9223372036854775807) OVER (ORDER BY id), ntile(9223372036854775807) OVER () "
    "FROM drugs_info LIMIT 1": (None, 1),
    "SELECT date('2024-01-01'), date('2024-01-01'), date(2460310.5)": ("2024-01-01",) * 3,
    "SELECT 1 /*/ , (SELECT sql FROM sqlite_master) /*/": (1,),
    'SELECT 1 AS "a""; DROP TABLE x"': (1,),
}


@pytest.mark.parametrize(("statement", "row"), FINE.items())
def test_what_is_only_strange_is_answered(
    database: Path, statement: str, row: tuple[object, ...]
) -> None:
    result = asked_twice(database, statement)
    assert (result.error, result.rows) == (None, (row,))


def test_what_is_kept_of_many_large_results_is_bounded(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy's statements differ, so without a bound each leaves a million characters."""
    fresh = kept._Kept()
    monkeypatch.setattr(kept, "_KEPT", fresh)
    monkeypatch.setattr(kept, "MOST_KEPT", 250_000)
    for number in range(8):
        large = f"SELECT printf('%90000d', {number})"
        assert kept.run_cached(str(database), large).error is None
        assert fresh._characters <= 250_000
    assert len(fresh._results) == 2
    assert kept.run_cached(str(database), large) is kept.run_cached(str(database), large)
    monkeypatch.setattr(kept, "MOST_KEPT", 1_000)
    assert kept.run_cached(str(database), f"{large}, 2").rows[0][1] == 2
    assert fresh._characters == 0
