"""A thousand statements that want to change, leave, crash or exhaust the database's process."""

from __future__ import annotations

import hashlib
import itertools
import random
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlglot import exp

from memograd.tasks.sql.sandbox import Sandbox, SqlLimits
from memograd.tasks.sql.sandbox import worker as worker_module

COUNT = 1000
START_SECONDS = 1.0
LIMITS = SqlLimits(steps=200_000)

WRITES = (
    "DROP TABLE drugs_info",
    "DELETE FROM drugs_info",
    "UPDATE drugs_info SET med_name = 'x'",
    "INSERT INTO drugs_info VALUES (9999, 'x')",
    "REPLACE INTO drugs_info VALUES (1, 'x')",
    "CREATE TABLE evil(x)",
    "CREATE TEMP TABLE evil AS SELECT * FROM drugs_info",
    "CREATE TRIGGER evil AFTER INSERT ON drugs_info BEGIN DELETE FROM drugs_info; END",
    "CREATE VIRTUAL TABLE evil USING fts5(x)",
    "ALTER TABLE drugs_info RENAME TO gone",
    "VACUUM",
    "VACUUM INTO '{folder}/stolen.sqlite'",
    "REINDEX",
    "ANALYZE",
    "ATTACH '{folder}/new.sqlite' AS n",
    "ATTACH DATABASE ':memory:' AS n",
    "DETACH main",
    "BEGIN EXCLUSIVE",
    "COMMIT",
    "SAVEPOINT s",
    "PRAGMA query_only = OFF",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA writable_schema = ON",
    "PRAGMA user_version = 7",
    "PRAGMA hard_heap_limit = 1",
    "PRAGMA table_info(drugs_info)",
)
"""What must not happen, alone and hidden in something harmless."""

FUNCTIONS = (
    "load_extension('{folder}/evil')",
    "load_extension('{folder}/evil', 'entry')",
    "writefile('{folder}/evil', 'x')",
    "readfile('/etc/passwd')",
    "fts3_tokenizer('simple')",
    "fts3_tokenizer('simple', x'4141414141414141')",
    "edit('x')",
    "zeroblob({huge})",
    "randomblob({huge})",
    "hex(zeroblob({huge}))",
    "printf('%.*c', {huge}, 'x')",
    "printf('%{huge}d', 1)",
    "format('%*d', {huge}, 1)",
    "quote(zeroblob({huge}))",
    "char(1, 2, 3)",
    "randomblob(10)",
    "random()",
    "sqlite_compileoption_get(1)",
    "sqlite_source_id()",
    "last_insert_rowid()",
    "json_group_array(med_name)",
    "sqlite_log(1, 'x')",
)
SCHEMAS = (
    *("sqlite_master", "sqlite_schema", "main.sqlite_master", "sqlite_temp_master", "temp.x"),
    *("pragma_database_list", "pragma_table_info('drugs_info')", "pragma_user_version(7)"),
    *("json_each('[1]')", "json_tree('[1]')", "sqlite_dbpage", "dbstat", "sqlite_stmt", "bytecode"),
    *("fsdir('/')", "generate_series(1, 1000000000)", "nothing", "other.drugs_info"),
)
BOMBS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {what} FROM c",
    "WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {what} FROM c",
    "WITH RECURSIVE c(x) AS (SELECT 'ab' UNION ALL SELECT x || x FROM c) SELECT {what} FROM c",
    "SELECT {what} FROM drugs_info a, drugs_info b, drugs_info c, drugs_info d",
    "SELECT {what} FROM drugs_info a JOIN drugs_info b JOIN drugs_info c ORDER BY a.med_name || "
    "b.med_name || c.med_name",
    "SELECT DISTINCT a.med_name || b.med_name || c.med_name FROM drugs_info a, drugs_info b, "
    "drugs_info c",
    "SELECT group_concat(a.med_name || b.med_name) FROM drugs_info a, drugs_info b, drugs_info c",
    "SELECT {what} FROM drugs_info WHERE med_name LIKE '" + "%a" * 90 + "%'",
    "SELECT {what} FROM drugs_info WHERE med_name LIKE '" + "%_" * 300 + "'",
    "SELECT replace(replace(replace(replace(replace(replace("
    + "'"
    + "a" * 90
    + "'"
    + ",'a','"
    + "a" * 90
    + "')"
    + ",'a','"
    + "a" * 90
    + "')" * 5,
    "SELECT max((SELECT count(*) FROM drugs_info b, drugs_info c WHERE b.id < a.id)) "
    "FROM drugs_info a",
    "SELECT {what} FROM drugs_info GROUP BY (SELECT count(*) FROM drugs_info b, drugs_info c)",
    "SELECT " + "+".join("1" * 900),
    "SELECT " + "(" * 900 + "1" + ")" * 900,
    "SELECT " + ", ".join(["med_name"] * 400) + " FROM drugs_info",
    " UNION ALL ".join(["SELECT 1"] * 200),
    "SELECT 1 WHERE " + " OR ".join(["1 = 0"] * 350),
    "SELECT " + "CASE WHEN 1 THEN " * 150 + "1" + " END" * 150,
)
WHATS = ("count(*)", "1", "max(1)", "*", "sum(1) + 1")


def attacks(folder: Path) -> list[str]:
    """`COUNT` different statements, drawn evenly from every family."""
    families = [
        [*WRITES, *(f"{write};" for write in WRITES)],
        list(_hidden()),
        [f"SELECT {call}" for call in FUNCTIONS]
        + [f"SELECT 1 FROM drugs_info WHERE {call} IS NOT NULL" for call in FUNCTIONS]
        + [f"SELECT id FROM drugs_info ORDER BY {call} LIMIT 1" for call in FUNCTIONS]
        + [f"WITH a AS (SELECT {call} AS x) SELECT x FROM a" for call in FUNCTIONS],
        [f"SELECT * FROM {table}" for table in SCHEMAS]
        + [f"SELECT (SELECT 1 FROM {table} LIMIT 1)" for table in SCHEMAS]
        + [f"SELECT 1 UNION ALL SELECT 1 FROM {table}" for table in SCHEMAS]
        + [f"SELECT count(*) FROM drugs_info, {table}" for table in SCHEMAS],
        [bomb.replace("{what}", what) for bomb in BOMBS for what in WHATS],
        list(_noise()),
    ]
    found = dict.fromkeys(
        statement.replace("{folder}", str(folder)).replace("{huge}", "2000000000")
        for statement in itertools.chain.from_iterable(itertools.zip_longest(*families))
        if statement is not None
    )
    return list(found)[:COUNT]


def _hidden() -> Iterator[str]:
    """Writes behind statements, comments, quotes and CTEs."""
    for write in WRITES:
        yield f"SELECT 1; {write}"
        yield f"SELECT 1;{write};--"
        yield f"/* SELECT */ {write}"
        yield f"-- SELECT 1\n{write}"
        yield f"SELECT 1 /* ; */; /**/ {write}"
        yield f"SELECT 1 -- \n; {write}"
        yield f"SELECT '1'';'; {write}"
        yield f"WITH a AS ({write} RETURNING *) SELECT * FROM a"
        yield f"WITH a AS (SELECT 1) {write}"
        yield f"EXPLAIN {write}"
        yield f"SELECT * FROM ({write})"
        yield f"SELECT \u00a0 1;\u2028{write}"
        yield f"\ufeff{write}"
        yield f"SELECT 1\0; {write}"


def _noise() -> Iterator[str]:
    """Random pieces of SQL in random order, from a fixed seed."""
    drawn = random.Random(6)
    pieces = [*WRITES, *FUNCTIONS, *SCHEMAS, "SELECT", "FROM", "(", ")", ";", "--", "/*", "*/", "'"]
    pieces += [
        '"',
        "`",
        "[",
        "WITH x AS",
        "UNION",
        "drugs_info",
        ",",
        "*",
        "\n",
        "药",
        "\\",
        "@a",
        "?1",
    ]
    for _ in range(400):
        yield " ".join(["SELECT", *drawn.choices(pieces, k=drawn.randint(1, 8))])


def test_a_thousand_attacks_change_nothing_and_end(database: Path) -> None:
    folder = database.parent
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    modified = database.stat().st_mtime_ns
    statements = attacks(folder)
    assert len(statements) == COUNT
    sandbox = Sandbox(database, LIMITS)
    sandbox.run("SELECT 1")  # what is imported for it is no attack's doing
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answered = 0
    for statement in statements:
        result = sandbox.run(statement)
        assert result.steps <= LIMITS.steps, statement
        assert sum(len(str(row)) for row in result.rows) <= 3 * LIMITS.result_bytes, statement
        assert len(result.rows) <= LIMITS.rows, statement
        answered += result.error is None
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert grown < 100_000, f"memory grew by {grown} kB"
    assert answered < COUNT / 10  # a few are mere reading, and may be answered
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert database.stat().st_mtime_ns == modified
    assert [path.name for path in folder.iterdir()] == ["medical.sqlite"]


def test_whatever_writes_is_refused(database: Path) -> None:
    sandbox = Sandbox(database, LIMITS)
    for write in (*WRITES, *_hidden()):
        assert sandbox.run(write.replace("{folder}", str(database.parent))).error, write


@pytest.mark.parametrize("fence", ["read_query", "_allow"])
def test_one_fence_less_and_the_file_is_still_the_same(
    database: Path, fence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading and writing are told apart more than once: neither parser nor authorizer is the
    only guard of the file."""
    if fence == "read_query":
        monkeypatch.setattr(worker_module, fence, lambda _: exp.select("1"))
    else:
        monkeypatch.setattr(worker_module._Statement, fence, lambda *_: sqlite3.SQLITE_OK)
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    for write in WRITES:
        if not write.startswith("PRAGMA"):  # the process's own settings, which the parser guards
            written = write.replace("{folder}", str(database.parent))
            worker_module.execute(database, written, LIMITS)
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert [path.name for path in database.parent.iterdir()] == ["medical.sqlite"]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel bounds memory on Linux only")
def test_without_any_fence_of_sqlites_the_process_writes_and_takes_little(tmp_path: Path) -> None:
    """The last fence: in the process itself no file can grow, and 500 MB are not to be had."""
    script = f"""
import sqlite3
from memograd.tasks.sql.sandbox.worker import _limit_process
_limit_process()
try:
    bytearray(500_000_000)
except MemoryError as error:
    print(type(error).__name__)
for attempt in ("file", "database"):
    try:
        if attempt == "file":
            with open({str(tmp_path / "evil")!r}, "w") as file:
                file.write("x")
        else:
            sqlite3.connect({str(tmp_path / "evil.sqlite")!r}).execute("CREATE TABLE evil(x)")
    except (OSError, sqlite3.Error) as error:
        print(type(error).__name__)
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert shown.stdout.split() == ["MemoryError", "OSError", "OperationalError"], shown.stderr
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [0, 0]
