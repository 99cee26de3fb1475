"""Whether what a statement shows comes out of the tables: it is asked again over other contents.

`SELECT 3 + 0 * id FROM drugs` names a column, and so does `SELECT iif(id > 0, 3, 4) FROM drugs`;
both say what their writer knew or guessed. No list of such spellings is complete. So the tables are
given other contents, by a WITH before the statement:

    WITH drugs AS (SELECT id + 1000003 AS id, ... FROM main.drugs)  SELECT 3 + 0 * id FROM drugs

- the shown columns changed: texts get a sign at both ends, numbers become larger;
- the same, without those that a statement has conditions on, which might find nothing then;
- the first and the second half of the rows;
- the columns that the question asks about changed, in every row to something of its own.

`shows_contents` asks a statement alone, `tells` the same of whether anything is found. `follows`
asks whether it goes along with its gold statement: where that finds something else, what was right
is right no longer; a number that was asked for has to be that of the half; and where every row says
something of its own, what is found has to be of the gold rows. So neither a text that was guessed
and that the table only had to confirm (`SELECT dosage FROM drugs WHERE dosage = 'not known'`) nor
another row that happens to say the same is right.

Invariants: a statement is refused only for what it gave where it ran. Contents are functions of the
database and the statements alone, and nothing is written. A gold statement follows itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from memograd.errors import BadInput
from memograd.tasks.sql.compare import (
    Gold,
    found_something,
    gold_of,
    gold_over,
    gold_rows,
    is_found,
    matches,
    normal_value,
    shows_a_table,
)
from memograd.tasks.sql.sandbox import Result, open_sandbox, run_cached

if TYPE_CHECKING:
    from sqlglot import exp

_SIGN = "¤"
_LARGER = 1_000_003
_ROWID = "rowid"
_BEGINNING = re.compile(r"\s*(SELECT|WITH|VALUES)\b", re.IGNORECASE)
_WITH = re.compile(r"\s*WITH\b", re.IGNORECASE)

Contents = Mapping[str, str]
"""For each table, the SELECT that gives its other contents."""


@lru_cache(maxsize=4096)
def shows_contents(database: str, sql: str) -> bool:
    """Whether a statement shows a row that is new over other contents.

    One that shows columns and aggregates as they are does, and so does one that cannot be asked
    over any.
    """
    if _is_plain(database, sql):
        return True
    known, ran = _rows(run_cached(database, sql)), False
    for contents in (*_changed(database, (sql,)), *_halves(database, (sql,))):
        there = run_cached(database, _over(sql, contents))
        if there.error is None:
            ran = True
            if _rows(there) - known:
                return True
    return not ran


def earns(
    database: str, sql: str, result: Result, gold_sql: str, columns: Sequence[str] | None
) -> bool:
    """Whether a statement that ran found the gold result in the tables.

    Raises:
        BadInput: as `gold_of`.
    """
    asked = None if columns is None else tuple(columns)
    right = found_something(database, sql, result) and matches(
        result, gold_of(database, gold_sql, asked)
    )
    return right and follows(database, sql, gold_sql, asked)


@lru_cache(maxsize=4096)
def tells(database: str, sql: str) -> bool:
    """Whether what a statement that ran shows, be it a word of its own, hangs on the tables.

    `SELECT 'yes' FROM drugs WHERE name = 'X'` finds out whether there is one; without its condition
    it finds out nothing.
    """
    result = run_cached(database, sql)
    if not any(normal_value(value) is not None for row in result.rows for value in row):
        return False
    if shows_a_table(database, sql) and shows_contents(database, sql):
        return True
    known = _rows(result)
    others = (*_changed(database, (sql,)), *_halves(database, (sql,)))
    there = (run_cached(database, _over(sql, contents)) for contents in others)
    return any(one.error is None and _rows(one) != known for one in there)


@lru_cache(maxsize=4096)
def follows(database: str, sql: str, gold_sql: str, columns: tuple[str, ...] | None) -> bool:
    """Whether a statement that gives the gold result goes along where the gold result is another.

    Raises:
        BadInput: as `gold_of`.
    """
    gold = gold_of(database, gold_sql, columns)
    if not _of_its_rows(database, sql, gold_sql, columns):
        return False
    numbers = columns is None and len(gold.rows) == 1
    numbers = numbers and not any(isinstance(cell, str) for cell in gold.rows[0])
    own, others = _tables(database, sql), _tables(database, gold_sql)
    both, asked = (sql, gold_sql), False
    for half, contents in (
        *((False, one) for one in _changed(database, both)),
        *((True, one) for one in _halves(database, both)),
    ):
        if half and not numbers and asked:
            break  # its cells have changed along: no half would say more
        if half and (gold.pool != gold.rows or (own - others and _is_plain(database, sql))):
            break  # other rows may be right there; or other tables hold the same
        try:
            rows, _ = gold_rows(database, _over(gold_sql, contents), columns)
        except BadInput:  # it finds nothing there, or cannot be asked
            continue
        if rows == gold.rows:
            continue
        there = run_cached(database, _over(sql, contents))
        if there.error is not None:
            continue
        asked = True
        same_number = not (half and numbers and own == others) or matches(
            there, Gold(rows, rows, gold.ordered, exact_columns=True)
        )
        if matches(there, gold) or not same_number:
            return False
    return asked or shows_contents(database, sql) or not shows_contents(database, gold_sql)


def _of_its_rows(database: str, sql: str, gold_sql: str, columns: tuple[str, ...] | None) -> bool:
    """Whether a statement finds the gold rows where no two rows say the same of what is asked.

    Changed is what the statement has no condition on, for that tells its rows; all that is asked
    where there is nothing else, which a guess does not survive. Where rows share a name, any of
    them will do. Also true where the gold statement searches what is asked, and where either cannot
    be asked over such contents.
    """
    gold = gold_of(database, gold_sql, columns)
    asked = {name.lower() for _, name in gold.asked} - _named(gold_sql, in_conditions=True)
    changed = frozenset(asked - _named(sql, in_conditions=True) or asked)
    if not changed:
        return True
    contents = _contents(database, (sql, gold_sql), changed, each_its_own=True)
    there = run_cached(database, _over(sql, contents))
    try:
        expected = gold_over(database, gold_sql, columns, lambda one: _over(one, contents))
    except BadInput:  # it finds nothing there, or cannot be asked
        return True
    some = [replace(one, more_rows=False) for one in expected.readings]
    return there.error is not None or any(matches(there, one) for one in (expected, *some))


def _rows(result: Result) -> set[tuple[object, ...]]:
    return {tuple(normal_value(value) for value in row) for row in result.rows}


@lru_cache(maxsize=1024)
def _parsed(sql: str) -> exp.Expr:
    from sqlglot import parse_one

    return parse_one(sql, dialect="sqlite")


@lru_cache(maxsize=1024)
def _is_plain(database: str, sql: str) -> bool:
    """Whether every SELECT that shows something shows columns and aggregates of columns, as they
    are."""
    from sqlglot import exp

    names = {name.lower() for one in open_sandbox(database).tables for name, _ in one.columns}

    def plain(shown: exp.Expression | None) -> bool:
        if isinstance(shown, exp.Column):
            return is_found(shown, {*names, _ROWID})
        return shown is None or isinstance(shown, exp.Star)

    return all(
        plain(shown.this if isinstance(shown, exp.AggFunc) else shown)
        for select in _parsed(sql).find_all(exp.Select)
        if select.find_ancestor(exp.Where, exp.Having, exp.Join) is None
        for shown in (one.unalias() for one in select.expressions)
    )


def _named(sql: str, *, in_conditions: bool) -> set[str]:
    """The columns that a statement names in its conditions, or elsewhere, in small letters."""
    from sqlglot import exp

    return {
        column.name.lower()
        for column in _parsed(sql).find_all(exp.Column)
        if (column.find_ancestor(exp.Where, exp.Having, exp.Join) is not None) is in_conditions
    }


def _tables(database: str, sql: str) -> frozenset[str]:
    """The database's tables that the statement names, in small letters."""
    from sqlglot import exp

    named = {table.name.lower() for table in _parsed(sql).find_all(exp.Table)}
    known = {table.name.lower() for table in open_sandbox(database).tables}
    return frozenset(named & known)


def _changed(database: str, statements: Sequence[str]) -> Iterator[Contents]:
    """Contents in which what the statements show is something else."""
    from sqlglot import exp

    shown: set[str] = set()
    searched: set[str] = set()
    for sql in statements:
        shown |= _named(sql, in_conditions=False)
        searched |= _named(sql, in_conditions=True)
        parsed = _parsed(sql)
        if any(one.find_ancestor(exp.Count) is None for one in parsed.find_all(exp.Star)):
            tables = _tables(database, sql)
            shown |= {
                name.lower()
                for table in open_sandbox(database).tables
                for name, _ in table.columns
                if table.name.lower() in tables
            }
    for changed in {frozenset(shown): None, frozenset(shown - searched): None}:
        if changed:
            yield _contents(database, statements, changed)


def _halves(database: str, statements: Sequence[str]) -> Iterator[Contents]:
    """Contents that are half of the rows."""
    for side in ("<=", ">"):
        yield _contents(database, statements, frozenset(), side)


def _contents(
    database: str,
    statements: Sequence[str],
    changed: frozenset[str],
    side: str = "",
    *,
    each_its_own: bool = False,
) -> Contents:
    """For the tables of the statements, their rows (those on one `side` of the middle) with other
    values in the columns `changed`, the same in no two rows if `each_its_own`."""
    used = frozenset[str]().union(*(_tables(database, sql) for sql in statements))
    with_rowid = any(_ROWID in sql.lower() for sql in statements)
    contents = {}
    for table in open_sandbox(database).tables:
        if table.name.lower() not in used:
            continue
        names = [name for name, _ in table.columns]
        if with_rowid and _ROWID not in map(str.lower, names):
            names.append(_ROWID)
        source = f"main.{_quoted(table.name)}"
        values = [
            f"{_other(_quoted(name), each_its_own) if name.lower() in changed else _quoted(name)}"
            f" {_quoted(name)}"
            for name in names
        ]
        half = f" WHERE rowid {side} (SELECT (min(rowid) + max(rowid)) / 2 FROM {source})"
        contents[table.name] = f"SELECT {', '.join(values)} FROM {source}{half if side else ''}"
    return contents


def _other(column: str, each_its_own: bool) -> str:
    """Another value than the column's, with the number of its row; what is missing stays so."""
    sign, more = ("|| rowid", f"+ {_LARGER} * rowid") if each_its_own else ("", "")
    return (
        f"CASE WHEN {column} IS NULL OR {column} = '' THEN {column} WHEN typeof({column}) = 'text' "
        f"THEN '{_SIGN}' || {column} || '{_SIGN}' {sign} ELSE {column} + {_LARGER} {more} END"
    )


def _over(sql: str, contents: Contents) -> str:
    """The statement with other contents in place of its tables; as it stands where `main.` or a
    comment does not hide its beginning or its tables."""
    from sqlglot import exp

    statement = _parsed(sql)
    qualified = any(table.text("db") for table in statement.find_all(exp.Table))
    if qualified or not _BEGINNING.match(sql):
        statement = statement.copy()
        for table in statement.find_all(exp.Table):
            table.set("db", None)
        sql = statement.sql(dialect="sqlite")
    made = ", ".join(f"{_quoted(table)} AS ({select})" for table, select in contents.items())
    own = _WITH.match(sql)
    return f"WITH {made}, {sql[own.end() :]}" if own else f"WITH {made} {sql}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
