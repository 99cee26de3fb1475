"""Attacks on a database that has more than tables: many indexes, full-text search, triggers.

Each statement is run twice with the ordinary limits: it says the same, not by the clock, in the
same number of steps, and no byte changes."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memograd.errors import BadInput
from memograd.tasks.sql.sandbox import Sandbox, SqlLimits

COLUMNS = [f"c{number}" for number in range(20)]
PAIRS = "FROM t a, t b, t c"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "indexed.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"CREATE TABLE t(id integer primary key, {', '.join(COLUMNS)}, text text, j text, b "
            "blob, g text GENERATED ALWAYS AS (text || text) VIRTUAL)"
        )
        for first in range(12):
            five = ", ".join(COLUMNS[(first + place) % 20] for place in range(5))
            connection.execute(f"CREATE INDEX i{first} ON t({five})")
        connection.execute("CREATE INDEX e ON t(lower(c1), c2) WHERE c3 > 5")
        connection.execute(
            "CREATE TABLE n(k TEXT COLLATE NOCASE, v, PRIMARY KEY (k, v)) WITHOUT ROWID"
        )
        connection.execute("CREATE VIEW pairs AS SELECT a.c1 FROM t a, t b")
        connection.execute(
            "CREATE TRIGGER gone INSTEAD OF INSERT ON pairs BEGIN DELETE FROM t; END"
        )
        connection.execute("CREATE VIEW today AS SELECT date('now') d, c1 FROM t")
        connection.execute("CREATE VIRTUAL TABLE found USING fts5(body)")
        connection.execute("INSERT INTO found VALUES ('aspirin')")
        wide = "[" + ",".join(f'{{"k{number}":{number}}}' for number in range(1_000)) + "]"
        for number in range(60):
            row = [number, *((number * place) % 7 for place in range(20)), "药" * 5_000, wide]
            connection.execute(
                f"INSERT INTO t(id, {', '.join(COLUMNS)}, text, j, b) "
                f"VALUES ({', '.join('?' * 24)})",
                [*row, b"\xff\xfe" * 4_000],
            )
        connection.execute("ANALYZE")
    return path


def _attacks() -> dict[str, str]:
    terms = [f"c{column}={value}" for column in range(5) for value in range(19)]
    names = [f"x{number}" for number in range(60)]
    tables = ", ".join(f"t {name}" for name in names)
    levels = range(1, 25)
    return {
        "each of an index's columns many times": "SELECT 1 FROM t WHERE " + " AND ".join(terms),
        "lists for them": "SELECT 1 FROM t WHERE "
        + " AND ".join(term.replace("=", " IN (1, ") + ")" for term in terms),
        "an index for each OR": "SELECT 1 FROM t WHERE "
        + " OR ".join(f"(c{n % 20}=1 AND c{(n * 3 + 1) % 20}=2)" for n in range(80)),
        "joins along indexes": f"SELECT 1 FROM {tables} WHERE "
        + " AND ".join(f"x{n}.c{n % 20}=x{n + 1}.c{(n + 1) % 20}" for n in range(59)),
        "one column for all": f"SELECT 1 FROM {tables} WHERE "
        + " AND ".join(f"x0.c1={name}.c1" for name in names[1:]),
        "full joins": "WITH a0 AS (SELECT id FROM t), "
        + ", ".join(f"a{n} AS (SELECT id FROM a{n - 1} FULL JOIN t USING (id))" for n in levels)
        + " SELECT id, id FROM a24",
        "windows on windows": "WITH a0 AS (SELECT c1 k FROM t), "
        + ", ".join(f"a{n} AS (SELECT sum(k) OVER (ORDER BY k) k FROM a{n - 1})" for n in levels)
        + " SELECT * FROM a24",
        "windows by name": "SELECT sum(c1) OVER w39 FROM t WINDOW w0 AS (PARTITION BY c1), "
        + ", ".join(f"w{n} AS (w{n - 1})" for n in range(1, 40)),
        "VALUES of queries": "VALUES " + ",".join(["((SELECT max(text || id) FROM t))"] * 90),
        "EXCEPT in a chain": " EXCEPT ".join(["SELECT text || id FROM t"] * 20),
        "900 numbers": f"SELECT count(*) {PAIRS} WHERE a.id + b.id IN "
        f"({','.join(map(str, range(900)))})",
        "rows of values": f"SELECT count(*) {PAIRS} WHERE (a.c1, b.c2, c.c3) IN "
        "(SELECT c1, c2, c3 FROM t)",
        "BETWEEN in BETWEEN": "SELECT 1 FROM t WHERE " + "(" * 30 + "c1" + " BETWEEN 0 AND 5)" * 30,
        "views of pairs": "SELECT count(*) FROM " + ", ".join(f"pairs p{n}" for n in range(30)),
        "stars of stars": "SELECT *, *, *, * FROM (SELECT *, * FROM (SELECT *, * FROM t))",
        "a materialized chain": "WITH a0 AS MATERIALIZED (SELECT c1 k FROM t), "
        + ", ".join(
            f"a{n} AS MATERIALIZED (SELECT x.k FROM a{n - 1} x, a{n - 1} y)" for n in range(1, 5)
        )
        + " SELECT count(*) FROM a4",
        "widths": "SELECT printf('%99999d%99999d', 1, 2), printf('%*d', 2147483647, 1)",
        "a format out of the table": f"SELECT count(printf(a.text, b.text)) {PAIRS}",
        "digits": "SELECT printf('%!.99999f', 1e-300), round(1e308, 2147483647)",
        "paths": "SELECT json_extract(j, "
        + ", ".join(f"'$[{900 + n}]'" for n in range(99))
        + ") FROM t",
        "arrows": "SELECT j" + "->0" * 90 + " FROM t",
        "trees": "SELECT count(*), max(x.fullkey) FROM t, json_tree(t.j) x, t b",
        "a pattern in a column": f"SELECT count(*) {PAIRS} WHERE a.text LIKE substr(b.text, 1, 60)",
        "frames": f"SELECT count(*) OVER (ORDER BY a.c1 GROUPS 9 PRECEDING EXCLUDE TIES) {PAIRS}",
        "a limit that counts": f"SELECT 1 FROM t LIMIT (SELECT count(*) {PAIRS}, t d)",
        "rows passed over": f"SELECT 1 {PAIRS} LIMIT 1 OFFSET 200000",
        "texts of bytes": "SELECT CAST(b AS TEXT), CAST(x'c080' AS TEXT) FROM t",
        "letters that are none": "SELECT char(0, 55296, 1114111, -1)",
        "the present time in a view": "SELECT d FROM today",
        "the present time in a pattern": "SELECT date(lower(replace('NXW', 'X', 'o')))",
        "a trigger": "INSERT INTO pairs VALUES (1) RETURNING c1",
        "a WITH named as a view": "WITH pairs(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM "
        "main.pairs) SELECT count(*) FROM pairs",
        "a WITH of itself, around": "WITH a AS (WITH b AS (SELECT * FROM a) SELECT * FROM b) "
        "SELECT * FROM a",
        "pages as a table": "SELECT * FROM dbstat",
        "a PRAGMA as a table": "SELECT * FROM pragma_table_list, pragma_journal_mode('delete')",
        "a PRAGMA named by a WITH": "WITH pragma_user_version AS (SELECT 1) "
        "SELECT * FROM main.pragma_user_version",
    }


ATTACKS = _attacks()


@pytest.mark.parametrize("statement", ATTACKS.values(), ids=ATTACKS.keys())
def test_each_ends_by_a_count_and_changes_nothing(database: Path, statement: str) -> None:
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    # A busy machine must not let the clock be first.
    sandbox = Sandbox(database, SqlLimits(seconds=60, wall_seconds=120))
    result = sandbox.run(statement)
    again = sandbox.run(statement)
    assert (again, again.steps) == (result, result.steps)
    assert "clock" not in (result.error or "")
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM found WHERE found MATCH 'aspirin'",
        "SELECT count(*) FROM t, Found",
        "WITH found AS (SELECT 1) SELECT * FROM main.found",
    ],
)
def test_a_virtual_table_is_named_and_not_offered(database: Path, statement: str) -> None:
    sandbox = Sandbox(database)
    assert "found" not in {table.name for table in sandbox.tables}
    assert "virtual one" in (sandbox.run(statement).error or "")
    assert sandbox.run("WITH found AS (SELECT 7 x) SELECT x FROM found").rows == ((7,),)


def test_bytes_that_are_no_text_are_told(database: Path) -> None:
    said = Sandbox(database).run("SELECT instr(b, CAST(x'ff' AS TEXT)) FROM t")
    assert said.error == "a function was given a text that is not UTF-8"


def test_a_view_of_what_is_gone_is_named(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE drugs(id)")
        connection.execute("CREATE TABLE old(id)")
        connection.execute("CREATE VIEW of_old AS SELECT * FROM old")
        connection.execute("DROP TABLE old")
    with pytest.raises(BadInput, match=r"of_old cannot be read \(no such table: main\.old\)"):
        Sandbox(path)
