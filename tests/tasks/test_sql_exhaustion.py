"""Statements that are deep, grow with every level, or take long within one step of SQLite's."""

from __future__ import annotations

import hashlib
import itertools
import resource
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memograd.tasks.sql.sandbox import Sandbox, SqlLimits

START_SECONDS = 1.0
LIMITS = SqlLimits(steps=200_000, seconds=60, wall_seconds=120)
"""Counts end what these tests run: a busy machine must not let the clock be first."""


def _deep() -> Iterator[str]:
    """Nested, repeated and endless forms of everything, each within the length that is read."""
    yield from (
        "SELECT " + "(" * 39 + "1" + ")" * 39,
        *(f"SELECT {word * (3900 // len(word))} 1" for word in ("NOT ", "- ", "~", "EXISTS ")),
        *(f"SELECT {word * (3900 // len(word))}" for word in ("[", "{", "(", "CASE ", "INTERVAL ")),
        *(f"SELECT 1{word * (3800 // len(word))}1" for word in (".a", " -> 1", "||", " AND ")),
        "SELECT " + "CASE WHEN 1 THEN " * 150 + "1" + " END" * 150,
        "SELECT " + "(CASE WHEN (1) THEN " * 18 + "1" + " ELSE (2) END)" * 18,
        *(f"SELECT {opened * 38}1{')' * 38}" for opened in ("coalesce(1,", "CAST(", "f(x->")),
        "SELECT " + "EXISTS(SELECT " * 38 + "1" + ")" * 38,
        "SELECT * FROM " + "(SELECT * FROM " * 38 + "drugs_info" + ")" * 38,
        "SELECT 1 FROM " + "(drugs_info JOIN " * 38 + "drugs_info" + ")" * 38,
        "SELECT 1 WHERE 1 IN " + "(SELECT 1 WHERE 1 IN " * 38 + "(1)" + ")" * 38,
        "WITH c0 AS (SELECT 1 x UNION ALL SELECT 1), "
        + ", ".join(f"c{n} AS (SELECT a.x FROM c{n - 1} a, c{n - 1} b)" for n in range(1, 14))
        + " SELECT count(*) FROM c13",
        "SELECT " + "9" * 3900,
        "SELECT 1e" + "9" * 300,
        "SELECT x'" + "00" * 1900 + "'",
        "SELECT abs(-9223372036854775807 - 1)",
        "SELECT round(1e300, 30), round(1.5, 1000000)",
        "SELECT * FROM drugs_info LIMIT -1 OFFSET 9223372036854775807",
        "SELECT ?1, :a, @b, $c",
        "SELECT 'a' COLLATE evil",
        "SELECT * FROM drugs_info INDEXED BY evil",
        "SELECT 'a' REGEXP '(a+)+$', 'a' MATCH 'b'",
    )


CHINESE = (
    "ＳＥＬＥＣＴ　＊　ＦＲＯＭ　drugs_info",
    "ＤＲＯＰ ＴＡＢＬＥ drugs_info",
    "SELECT * FROM drugs_info；DROP TABLE drugs_info",
    "SELECT 1 －－；\n; ATTACH 'x' AS y",
    "SELECT med_name FROM drugs_info WHERE id＝1",
    "SELECT “药” FROM drugs_info",
    "SELECT 1;\u3000DELETE FROM drugs_info",
    "SELECT/*；*/1;/*；*/DELETE/**/FROM/**/drugs_info",
    "SELECT 1 /* 没有结束 DELETE FROM drugs_info",
    "WITH 药 AS (DELETE FROM drugs_info RETURNING *) SELECT * FROM 药",
    "SEL\u200bECT 1", "\ufeffDROP TABLE drugs_info", "SELECT '\ud800'", "SELECT 1\0; DELETE FROM x",
    "\u202eSELECT 1", "SELECT 1\u2028; DROP TABLE drugs_info", "DROP\u00a0TABLE drugs_info",
)  # fmt: skip
"""Full-width letters and signs, comments, invisible characters."""


def _grown(character: str, tens: int) -> str:
    text = f"'{character * 10}'"
    for _ in range(tens - 1):
        text = f"replace({text}, '{character}', '{character * 10}')"
    return text


def _slow() -> Iterator[str]:
    """Much work, or much room, for each row."""
    long = f"replace({_grown('a', 4)}, 'a', 'aaaaaaaaa')"
    pairs = "FROM drugs_info a, drugs_info b"
    for pattern in ("%a" * 90, "%a_" * 60, "%药" * 30):
        yield f"SELECT {long} LIKE '{pattern}%b'"
    for pattern in ("*a" * 90, "*[a-z]" * 30, "*?a" * 60):
        yield f"SELECT {long} GLOB '{pattern}*b'"
    for name in ("trim", "ltrim", "rtrim"):
        yield f"SELECT sum(length({name}({long} || a.id, {_grown('b', 3)} || 'a'))) {pairs}"
    yield f"SELECT count(*) {pairs} WHERE instr({long} || a.id, {_grown('a', 4)} || 'b' || b.id)"
    yield f"SELECT {long} || a.id || b.id AS v {pairs} ORDER BY v"
    yield f"SELECT DISTINCT {long} || a.id || '-' || b.id {pairs}"
    yield f"SELECT {long} || a.id || '-' || b.id {pairs} UNION SELECT 1"
    yield f"SELECT group_concat({_grown('a', 3)} || a.id) {pairs} GROUP BY a.id % 2"
    yield f"SELECT sum(length(upper({long} || a.id))) {pairs}"
    yield f"SELECT length(strftime('{'%J%f%s' * 500}', 1)) {pairs}"
    yield f"SELECT {', '.join(f'v || {n}' for n in range(190))} FROM (SELECT {long} AS v {pairs})"


@pytest.mark.parametrize("statement", [*_deep(), *CHINESE, *_slow()])
def test_what_is_deep_disguised_or_slow_ends_in_words(database: Path, statement: str) -> None:
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    limits = SqlLimits(steps=20_000, seconds=0.2)
    result = Sandbox(database, limits).run(statement)
    assert result.error is None or result.error.strip()
    assert result.steps <= limits.steps
    assert sum(len(str(row)) for row in result.rows) <= 3 * limits.result_bytes
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert [path.name for path in database.parent.iterdir()] == ["medical.sqlite"]


def _chain(levels: int, first: str, step: str, last: str) -> str:
    """CTEs over each other: `@` is a level's number, `#` that of the one below."""
    steps = (
        step.replace("@", str(level)).replace("#", str(level - 1)) for level in range(1, levels + 1)
    )
    return f"WITH a0 AS ({first}), {', '.join(steps)} {last.replace('@', str(levels))}"


ROWS = "SELECT id AS k FROM drugs_info"
DOUBLING = {
    "cross join": "a@ AS (SELECT 1 k FROM a# x, a# y)",
    "cross join in brackets": "a@ AS (SELECT 1 k FROM (a# x JOIN a# y))",
    "union": "a@ AS (SELECT k FROM a# UNION ALL SELECT k FROM a#)",
    "exists": "a@ AS (SELECT 1 k FROM drugs_info WHERE EXISTS(SELECT 1 FROM a#) OR "
    "EXISTS(SELECT 1 FROM a#))",
    "scalar": "a@ AS (SELECT (SELECT k FROM a#) + (SELECT k FROM a#) k)",
    "in a table": "a@ AS (SELECT 1 k FROM drugs_info WHERE id IN a# OR id + 1 IN a#)",
    "column": "a@ AS (SELECT k + k k FROM a#)",
    "quoted column": 'a@ AS (SELECT [k] + `k` "K" FROM a#)',
    "column of a star": "a@ AS (SELECT *, k + k k FROM (SELECT * FROM a#))",
    "column without a name": 'a@ AS (SELECT "k+k" + "k+k" k, k+k FROM (SELECT k, k+k FROM a#))',
    "renamed column": "a@(k) AS (SELECT k + k FROM a#)",
    "alias": "a@ AS (SELECT k + 1 k FROM a# GROUP BY k HAVING k + k + (SELECT k FROM a#))",
    "window": "a@ AS (SELECT sum(k) OVER (ORDER BY k) k FROM a#)",
    "subquery": "a@ AS (SELECT k FROM (SELECT k FROM a#) JOIN (SELECT 1 FROM a#))",
    "distinct": "a@ AS (SELECT DISTINCT 1 k FROM a# x, a# y)",
    "grouped": "a@ AS (SELECT x.k FROM a# x, a# y GROUP BY 1)",
    "two of one alias": "a@ AS (SELECT x.k + x.k k FROM (SELECT k FROM a#) x, (SELECT 1 j) x)",
    "star over two": "a@ AS (SELECT k + k k FROM (SELECT * FROM a# x, (SELECT 1 k) y))",
    "second of a name": 'a@ AS (SELECT "k:1" + "k:1" k FROM (SELECT 1 k, k k FROM a#))',
    "a cast's text": 'a@ AS (SELECT "CAST(k AS INT)" + "CAST(k AS INT)" k '
    "FROM (SELECT CAST(k AS INT) FROM a#))",
    "a call's text": 'a@ AS (SELECT "date(k)" || "date(k)" k FROM (SELECT date(k) FROM a#))',
    "in a quoted table": "a@ AS (SELECT 1 k FROM drugs_info WHERE id IN 'a#' OR id + 1 IN 'a#')",
    "in a called table": "a@ AS (SELECT 1 k FROM drugs_info WHERE id IN a#() OR id + 1 IN a#())",
    "in text": "a@ AS (SELECT a#.'k' + a#.'k' k FROM 'a#')",
}
"""What doubles with every level before SQLite runs anything."""


def _planned() -> Iterator[str]:
    """Much to think about before the first row: joins, terms, arms, columns, each a short text."""
    arms = "(SELECT id k FROM drugs_info UNION ALL SELECT id FROM drugs_info)"
    doubled = _chain(8, ROWS, DOUBLING["union"], "")
    yield from (
        # A query over several unions is written once for each choice of their arms.
        *(f"SELECT 1 FROM {', '.join(f'{arms} s{n}' for n in range(k))} LIMIT 1" for k in (6, 40)),
        # Conditions and columns are copied into every arm of what they are asked of.
        f"{doubled} SELECT k FROM a8 WHERE {' AND '.join(f'k<>{n}' for n in range(90))}",
        f"{doubled} SELECT k FROM a8 WHERE k IN ({', '.join(map(str, range(400)))})",
        f"{doubled} SELECT {', '.join(f'k + {n}' for n in range(150))} FROM a8 ORDER BY 1 LIMIT 2",
    )
    names = [f"d{n}" for n in range(60)]
    tables = ", ".join(f"drugs_info {name}" for name in names)
    pairs = list(itertools.pairwise(names))
    yield from (
        f"SELECT count(*) FROM {tables} WHERE {' AND '.join(f'{a}.id={b}.id' for a, b in pairs)}",
        f"SELECT 1 FROM {tables} WHERE {' AND '.join(f'd0.med_name={b}.id' for _, b in pairs)}",
        "SELECT 1 FROM drugs_info " + " ".join(f"NATURAL JOIN drugs_info {n}" for n in names),
        "SELECT id FROM drugs_info "
        + " ".join(f"FULL JOIN drugs_info {name} USING (id)" for name in names[:40]),
        "SELECT count(*) FROM drugs_info d "
        + " ".join(f"LEFT JOIN drugs_info {b} ON {b}.id={a}.id OR {a}.id=1" for a, b in pairs[1:]),
        f"SELECT DISTINCT {', '.join(f'{name}.id' for name in names)} FROM {tables} LIMIT 5",
    )
    for joined, term in (
        *((" OR ", "id=@"), (" AND ", "id IN (1, 2)"), (" OR ", "id=@ AND id<@")),
        *((" AND ", "(id=@ OR med_name=@)"), (" AND ", "id NOT IN (SELECT 1)")),
        *((" OR ", "med_name LIKE '%@%'"), (" AND ", "id=med_name"), (" OR ", "EXISTS(SELECT 1)")),
    ):
        terms = joined.join([term.replace("@", "7")] * (90 if joined == " OR " else 95))
        yield f"SELECT count(*) FROM drugs_info WHERE {terms}"
    shown = ", ".join
    yield from (
        f"SELECT {shown(f'count(DISTINCT id % {n})' for n in range(2, 100))} FROM drugs_info",
        f"SELECT {shown(f'sum(id) FILTER (WHERE id > {n})' for n in range(90))} FROM drugs_info",
        f"SELECT {shown(f'sum(id) OVER (PARTITION BY id % {n})' for n in range(2, 80))} "
        "FROM drugs_info",
        f"SELECT {shown(f'(SELECT max(id) FROM drugs_info WHERE id < {n})' for n in range(50))}",
        f"SELECT max({shown(['id'] * 120)}), coalesce({shown(['id'] * 120)}) FROM drugs_info",
        f"SELECT 1 FROM drugs_info ORDER BY {shown(f'id % {n}' for n in range(1, 190))} LIMIT 1",
        f"SELECT id + id q FROM drugs_info GROUP BY {shown(['q'] * 60)} HAVING q + q",
        f"SELECT {shown('*' * 100)} FROM drugs_info LIMIT 1",
        f"WITH {shown(f'q{n} AS (SELECT 1)' for n in range(140))} SELECT 1",
        f"SELECT count(CASE {' '.join(f'WHEN id={n} THEN {n}' for n in range(90))} END) "
        "FROM drugs_info",
        f"SELECT count(*) FROM (VALUES {shown(['(1)'] * 600)}) v, drugs_info a, drugs_info b",
        "SELECT 1 /* /* */ , (SELECT count(*) FROM drugs_info) /* */ -- */",
    )


@pytest.mark.parametrize("statement", [*_planned()])
def test_what_is_much_to_plan_ends_and_ends_the_same_again(database: Path, statement: str) -> None:
    """Not one of them is ended by the clock, so a slower machine says the same."""
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    sandbox = Sandbox(database, LIMITS)
    result = sandbox.run(statement)
    assert "clock" not in (result.error or "")
    assert sandbox.run(statement) == result
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before


@pytest.mark.parametrize("step", DOUBLING.values(), ids=DOUBLING.keys())
@pytest.mark.parametrize("levels", [20, 40])
def test_what_grows_with_every_level_is_counted_first(
    database: Path, step: str, levels: int
) -> None:
    statement = _chain(levels, ROWS, step, "SELECT count(*), max(k) FROM a@")
    result = Sandbox(database).run(statement)
    refused = result.error or ""
    counted = "the query grows too large" in refused or "at most 64 are allowed" in refused
    assert counted or len(statement) > 4000


@pytest.mark.parametrize("step", DOUBLING.values(), ids=DOUBLING.keys())
def test_a_few_levels_are_answered_as_sqlite_answers_them(database: Path, step: str) -> None:
    statement = _chain(3, f"{ROWS} WHERE id < 3", step, "SELECT k FROM a@ ORDER BY 1")
    with closing(sqlite3.connect(database)) as connection:
        try:
            rows = connection.execute(statement).fetchmany(20)
        except sqlite3.OperationalError as error:
            assert Sandbox(database).run(statement).error == str(error)
            return
    assert list(Sandbox(database).run(statement).rows[:20]) == rows


@pytest.mark.parametrize("names", ["Éé", "\u212ak", "Жж"], ids=["accent", "kelvin", "cyrillic"])
def test_names_that_python_and_sqlite_compare_differently_hide_nothing(
    database: Path, names: str
) -> None:
    """Only ASCII is the same in capitals for SQLite, so these are two chains: one doubles."""
    large, small = names
    doubling = [
        f"{large}{n} AS (SELECT 1 k FROM {large}{n - 1} x, {large}{n - 1} y)" for n in range(1, 17)
    ]
    single = [f"{small}{n} AS (SELECT 1 k)" for n in range(1, 17)]
    chains = ", ".join([f"{large}0 AS ({ROWS})", *doubling, *single])
    result = Sandbox(database).run(f"WITH {chains} SELECT count(*) FROM {large}16")
    assert "at most 64 are allowed" in (result.error or "")
    assert Sandbox(database).run(f"WITH {chains} SELECT k FROM {small}16").rows == ((1,),)


def test_a_table_named_in_other_capitals_than_ascii_is_read(tmp_path: Path) -> None:
    path = tmp_path / "medical.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE Лекарства(Имя text)")
        connection.execute("INSERT INTO Лекарства VALUES ('аспирин')")
    assert Sandbox(path).run("SELECT Имя FROM Лекарства").rows == (("аспирин",),)


def test_grouped_views_are_one_table_each_where_they_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "medical.sqlite"
    tables = ", ".join(f"drugs d{n}" for n in range(12))
    joined = " AND ".join(f"d0.id = d{n}.id" for n in range(1, 12))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE drugs(id integer primary key, name text)")
        connection.executemany("INSERT INTO drugs VALUES (?, ?)", [(1, "a"), (2, "b")])
        for name, first, last in (
            ("grouped", "", " GROUP BY d0.id"),
            ("distinct_ones", "DISTINCT", ""),
            ("plain", "", ""),
        ):
            asked = f"SELECT {first} d0.id FROM {tables} WHERE {joined}{last}"
            connection.execute(f"CREATE VIEW {name} AS {asked}")
    for name, fine in (("grouped", True), ("distinct_ones", True), ("plain", False)):
        six = ", ".join(f"{name} v{n}" for n in range(6))
        result = Sandbox(path).run(f"SELECT count(*) FROM {six}")
        assert result.rows == ((64,),) if fine else "joins 72 tables" in (result.error or "")


@pytest.mark.parametrize("name", ["date", "char", "decimal", "datetime"])
def test_a_text_that_the_parser_would_read_for_hours_is_refused(database: Path, name: str) -> None:
    """sqlglot tries names of types twice at every bracket: 2 ** 39 times."""
    result = Sandbox(database, LIMITS).run("SELECT " + f"{name}(" * 39 + "1" + ")" * 39)
    assert "too intricate" in (result.error or "")


def test_what_is_sorted_or_kept_is_bounded_in_memory(database: Path) -> None:
    words = "a.med_name || b.med_name || c.id"
    tables = "drugs_info a, drugs_info b, drugs_info c"
    for statement in (
        f"SELECT {words} FROM {tables} ORDER BY {words}",
        f"SELECT count(*) FROM (SELECT DISTINCT {words} FROM {tables})",
        f"SELECT count(*) FROM (SELECT {words} w FROM {tables} UNION SELECT 1)",
    ):
        # What is looked at is the memory: the clocks of a busy machine must not come first.
        limits = SqlLimits(steps=10**9, seconds=30, wall_seconds=60)
        result = Sandbox(database, limits).run(statement)
        assert "too much memory" in (result.error or ""), statement


LONG_WORK = (
    "SELECT sum(length(upper(a.text))) FROM long a, long b, long c",
    "SELECT count(*) FROM long a, long b, long c WHERE a.text = b.text COLLATE NOCASE",
    "SELECT sum(length(a.text || b.text)) FROM long a, long b, long c",
    "SELECT sum(length(CAST(CAST(a.text AS BLOB) AS TEXT))) FROM long a, long b, long c",
    "SELECT sum(CAST(a.text AS REAL)) FROM long a, long b, long c",
    f"SELECT sum(length({'upper(lower(' * 18}a.text{'))' * 18})) FROM long a, long b, long c",
    "SELECT count(*) FROM long WHERE " + " OR ".join([f"text GLOB '*{'[a-z]' * 30}b'"] * 20),
    "SELECT group_concat(a.text) OVER (ORDER BY a.id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) "
    "FROM long a, long b, long c",
)
"""Much work on long texts that the database itself holds."""


@pytest.mark.slow
def test_no_statement_holds_up_its_caller_or_fills_its_memory(tmp_path: Path) -> None:
    """The clocks themselves, so this is the one test that looks at one: 3 s and 500 MB."""
    path = tmp_path / "long.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE drugs_info(id integer primary key, med_name text)")
        connection.execute("CREATE TABLE long(id integer primary key, text text)")
        rows = [(number, f"{'a' * 79}药" * 1000) for number in range(200)]
        connection.executemany("INSERT INTO long VALUES (?, ?)", rows)
        connection.executemany("INSERT INTO drugs_info VALUES (?, ?)", [(1, "a"), (2, "b")])
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    sandbox = Sandbox(path)
    sandbox.run("SELECT 1")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    chains = (
        _chain(levels, ROWS, step, "SELECT count(*), max(k) FROM a@")
        for levels in (6, 9, 12)
        for step in DOUBLING.values()
    )
    for statement in (*LONG_WORK, *_deep(), *_slow(), *_planned(), *chains):
        began = time.monotonic()
        sandbox.run(statement)
        taken = time.monotonic() - began
        assert taken < 3 + START_SECONDS, f"{taken:.1f} s: {statement}"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 50_000
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
