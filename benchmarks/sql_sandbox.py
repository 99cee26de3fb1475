"""What the SQL sandbox costs, and what an attack can cost.

    python benchmarks/sql_sandbox.py cost [--db FILE --data QUESTIONS]   # of a gold statement
    python benchmarks/sql_sandbox.py attacks                           # the longest of each kind

`cost` runs every gold statement once and once more. `attacks` asks a table of 200 texts of 80,000
characters, the worst that a database can hold; what is measured is the wait of the caller, its own
growth, and the largest process that ran statements.
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from memograd.tasks.sql.questions import read_questions
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sample.templates import write_sample_questions
from memograd.tasks.sql.sandbox import Sandbox

PAIRS = "FROM long a, long b, long c"


def chain(levels: int, step: str, last: str) -> str:
    """CTEs over each other: `@` is a level's number, `#` that of the one below."""
    steps = (step.replace("@", str(n)).replace("#", str(n - 1)) for n in range(1, levels + 1))
    return f"WITH a0 AS (SELECT id AS k FROM long), {', '.join(steps)} {last}{levels}"


ATTACKS = {
    "CTEs that double, 20": chain(
        20, "a@ AS (SELECT 1 k FROM a# x, a# y)", "SELECT count(*) FROM a"
    ),
    "CTEs that double, 10": chain(
        10, "a@ AS (SELECT 1 k FROM a# x, a# y)", "SELECT count(*) FROM a"
    ),
    "columns that double, 11": chain(11, "a@ AS (SELECT k + k k FROM a#)", "SELECT max(k) FROM a"),
    "EXISTS OR EXISTS, 8": chain(
        8,
        "a@ AS (SELECT 1 k FROM long WHERE EXISTS(SELECT 1 FROM a#) OR EXISTS(SELECT 1 FROM a#))",
        "SELECT count(*) FROM a",
    ),
    "types as functions": "SELECT " + "date(" * 39 + "1" + ")" * 39,
    "60 tables": "SELECT count(*) FROM " + ", ".join(f"long t{n}" for n in range(60)),
    "GLOB with 30 classes": "SELECT count(*) FROM long WHERE "
    + " OR ".join([f"text GLOB '*{'[a-z]' * 30}b'"] * 20),
    "instr of long in long": f"SELECT count(*) {PAIRS} WHERE instr(a.text, b.text || 'b')",
    "dates with 90 changes": "SELECT count(date(a.id"
    + ", '+1 day', 'weekday 0', 'start of year'" * 30
    + f")) {PAIRS}",
    "sorting all pairs": f"SELECT a.text || b.id || c.id {PAIRS} ORDER BY 1",
    "arms of unions, 40 times": "SELECT 1 FROM "
    + ", ".join(f"(SELECT id FROM long UNION ALL SELECT id FROM long) s{n}" for n in range(40)),
    "instr, 25 times": "SELECT count(*) FROM long WHERE " + " OR ".join(["instr(text, 'x')"] * 25),
    "LIKE, 98 times": "SELECT count(*) FROM long WHERE " + " OR ".join(["text LIKE '%x%y'"] * 98),
    "windows, 78": "SELECT "
    + ", ".join(f"sum(id) OVER (PARTITION BY id % {n})" for n in range(2, 80))
    + " FROM long",
    "upper": f"SELECT sum(length(upper(a.text))) {PAIRS}",
    "equality without case": f"SELECT count(*) {PAIRS} WHERE a.text = b.text COLLATE NOCASE",
    "substr from the end": f"SELECT sum(length(substr(a.text, -1))) {PAIRS}",
    "casts": f"SELECT sum({'+'.join(['CAST(a.text AS REAL)'] * 60)}) {PAIRS}",
}


def cost(database: Path, statements: list[str]) -> None:
    """Print how long the statements take, each run twice."""
    sandbox = Sandbox(database)
    began = time.perf_counter()
    sandbox.run("SELECT 1")
    print(f"first statement, with the start of a process: {time.perf_counter() - began:.2f} s")
    for name in ("first time", "again"):
        taken = []
        for statement in statements:
            began = time.perf_counter()
            result = sandbox.run(statement)
            taken.append(1000 * (time.perf_counter() - began))
            assert result.error is None, (statement, result.error)
        p95 = statistics.quantiles(taken, n=20)[-1]
        print(
            f"{name}: {len(taken)} statements, mean {statistics.mean(taken):.2f} ms, median "
            f"{statistics.median(taken):.2f}, p95 {p95:.2f}, longest {max(taken):.2f}"
        )


def attack() -> None:
    """Print how long the caller of each attack waits, and what it is told."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "long.sqlite"
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("CREATE TABLE long(id integer primary key, text text)")
            rows = [(number, f"{'a' * 79}药" * 1000) for number in range(200)]
            connection.executemany("INSERT INTO long VALUES (?, ?)", rows)
        sandbox = Sandbox(database)
        sandbox.run("SELECT 1")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for name, statement in ATTACKS.items():
            began = time.perf_counter()
            result = sandbox.run(statement)
            told = result.error or f"{len(result.rows)} rows"
            print(f"{time.perf_counter() - began:5.2f} s  {name}: {told[:70]}")
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"the caller grew by {grown / 1000:.1f} MB; of the processes that were ended the largest")
    print(f"had {largest / 1000:.0f} MB")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("cost", "attacks"))
    parser.add_argument("--db", type=Path, help="a SQLite file; the sample without it")
    parser.add_argument("--data", type=Path, help="its questions, as JSON lines")
    given = parser.parse_args()
    if given.what == "attacks":
        attack()
        return
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "questions.jsonl"
        write_sample_questions(sample)
        questions = read_questions(given.data or sample)
    cost(given.db or sample_database(), [question.sql for question in questions])


if __name__ == "__main__":
    main()
