"""Whether a result is the gold result: execution match, and what it is indulgent about.

Indulgent:
- Values: text is compared in Unicode's NFKC form with white space collapsed; a text that is a
  number equals that number; whole numbers are equal digit by digit, others to six significant
  digits (to the whole number, from a million on); NULL equals empty text.
- Rows that hold nothing but missing values in the compared columns say nothing and are left out.
- Rows may come in any order, unless the gold statement ends with ORDER BY.
- Columns may come in any order and have any name. Where the question says which columns it asks
  about, these suffice and there may be others; else there must be as many as in the gold result.
- A gold LIMIT without ORDER BY leaves open which rows: that many of all that qualify are right.
- Where the question says which columns it asks about, two other readings are right, as somebody
  may ask who has only the question:
  - by name (`by_name`): `WHERE id = 7` is known to nobody who reads a question about "X". Where
    several rows are called X, a statement by name finds all of them, those of the gold among them.
  - what was found, not where it was searched (`found_columns`): of "which drugs have an indication
    that says X", the answer is the drugs' names or ids; the searched column may be left out.

Strict: every other difference; a result that was cut; and nothing matches an empty gold result,
so that a statement which finds nothing never earns anything. Nor does one that shows nothing of a
table, such as `SELECT 3` or `SELECT "3"`, with or without `FROM drugs` (`found_something`), nor
what would be said whatever the table holds (`memograd.tasks.sql.other_contents`). Nor one that
guesses in columns: beside the right column none may hold what the asked column says of other rows.

Invariants: a match does not depend on row order (unless asked for), column order or column names;
every changed value breaks it. A reading is about the gold statement's own table and conditions; it
never lets in rows that another name or another search would find. Imports sqlglot when a gold
statement is read.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from memograd.errors import BadInput
from memograd.tasks.sql.sandbox import Result, Value, open_sandbox, run_cached

if TYPE_CHECKING:
    from sqlglot import exp


_TRIES = 5_000
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d{1,40}")
_MILLION = 1e6

Cell = str | int | float | None
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Gold:
    """What a statement has to find.

    `rows` [n][c] are normalised and hold the `c` columns that are asked about. `pool`: where the
    gold statement left open which rows, all that qualify; else the same rows. `exact_columns`:
    no others may be there. `more_rows`: beside all of `rows`, others of the pool may be there.
    `readings`: what is right as well. `asked`: table and column of each gold column, in which
    `database`, where the gold statement shows plain columns of one table.
    """

    rows: tuple[Row, ...]
    pool: tuple[Row, ...]
    ordered: bool
    exact_columns: bool
    more_rows: bool = False
    readings: tuple[Gold, ...] = ()
    database: str = ""
    asked: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=4096)
def gold_of(database: str, sql: str, columns: tuple[str, ...] | None) -> Gold:
    """The gold result of a question, from its gold statement.

    `columns`: names of those that the question asks about, None if it does not say.

    Raises:
        BadInput: the statement fails, finds nothing, finds more than the sandbox returns, or does
            not have these columns.
    """
    return gold_over(database, sql, columns, str)


def gold_over(
    database: str, sql: str, columns: tuple[str, ...] | None, over: Callable[[str], str]
) -> Gold:
    """The same where each statement is run as `over` makes it, so over other contents.

    Raises:
        BadInput: as `gold_of`.
    """
    rows, chosen = gold_rows(database, over(sql), columns)
    ordered, unlimited = _read(sql)
    pool = rows
    if unlimited is not None:
        everything = run_cached(database, over(unlimited))
        if everything.error is None and not everything.cut:
            pool = tuple(_said(_project(_normal(everything), chosen)))
    readings: tuple[Gold, ...] = ()
    if columns is not None and not ordered:
        readings = tuple(_readings(database, sql, columns, rows, over))
    return Gold(
        rows,
        pool,
        ordered,
        exact_columns=columns is None,
        readings=readings,
        database=database,
        asked=_asked(sql, columns),
    )


def gold_rows(
    database: str, sql: str, columns: tuple[str, ...] | None
) -> tuple[tuple[Row, ...], list[int]]:
    """The rows of a gold statement, normalised, in the columns that are asked about; and these.

    Raises:
        BadInput: as `gold_of`.
    """
    result = run_cached(database, sql)
    if result.error is not None:
        raise BadInput(f"The gold statement {sql!r} fails in {database}: {result.error}.")
    if result.cut:
        raise BadInput(f"The gold statement {sql!r} finds more rows than a result may have.")
    names = [name.lower() for name in result.columns]
    chosen = list(range(len(names)))
    if columns is not None:
        missing = [name for name in columns if name.lower() not in names]
        if missing:
            raise BadInput(f"The gold statement {sql!r} has no column {missing[0]}.")
        chosen = [names.index(name.lower()) for name in columns]
    rows = tuple(_said(_project(_normal(result), chosen)))
    if not rows:
        raise BadInput(f"The gold statement {sql!r} finds nothing in {database}.")
    return rows, chosen


def _asked(sql: str, columns: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    from sqlglot import exp

    statement = _simple_select(sql)
    table = None if statement is None else statement.find(exp.Table)
    if statement is None or table is None:
        return ()
    source = {shown.alias_or_name.lower(): shown for shown in statement.expressions}
    found = [source.get(name.lower()) for name in (source if columns is None else columns)]
    return tuple((table.name, one.unalias().name) for one in found if one is not None)


def _readings(
    database: str,
    sql: str,
    columns: Sequence[str],
    rows: tuple[Row, ...],
    over: Callable[[str], str],
) -> Iterator[Gold]:
    """What is right beside the gold rows; the module says why."""
    tables = {
        table.name: [name for name, _ in table.columns] for table in open_sandbox(database).tables
    }
    named = by_name(sql, tables)
    if named is not None:
        called = run_cached(database, over(named))
        if called.error is None and not called.cut:
            names = [name.lower() for name in called.columns]
            chosen = [names.index(name.lower()) for name in columns]
            pool = tuple(_said(_project(_normal(called), chosen)))
            yield Gold(
                rows,
                pool,
                False,
                exact_columns=False,
                more_rows=True,
                database=database,
                asked=_asked(sql, columns),
            )
    result = run_cached(database, over(sql))
    titles = [title.lower() for title in result.columns]
    for name in found_columns(sql, columns):
        if any(_said(_project(_normal(result), [titles.index(name.lower())]))):
            yield gold_over(database, sql, (name,), over)


def matches(result: Result, gold: Gold) -> bool:
    """Whether `result` is what `gold` asks for, in one of its readings."""
    return any(_matches(result, one) for one in (gold, *gold.readings))


def _matches(result: Result, gold: Gold) -> bool:
    width = len(gold.rows[0])
    if result.error is not None or result.cut or len(result.columns) < width:
        return False
    if gold.exact_columns and len(result.columns) != width:
        return False
    rows = _normal(result)
    return any(
        _same(list(_said(_project(rows, chosen))), gold) and not _guesses(result, chosen, gold)
        for chosen in _choices(rows, gold)
    )


def _guesses(result: Result, chosen: Sequence[int], gold: Gold) -> bool:
    """Whether a column beside those `chosen` holds what an asked column says of other rows.

    Texts only, which no other column of the table has: a number, or "not known", may stand in
    several.
    """
    beside = [place for place in range(len(result.columns)) if place not in chosen]
    for (table, column), place in zip(gold.asked, chosen, strict=False):
        said = {normal_value(row[place]) for row in result.rows}
        for other in beside:
            texts = (row[other] for row in result.rows if isinstance(row[other], str))
            another = next((text for text in texts if normal_value(text) not in said), None)
            if isinstance(another, str) and _is_said_by(gold.database, table, column, another):
                return True
    return False


_LOOKED_AT = 500


@lru_cache(maxsize=4096)
def _is_said_by(database: str, table: str, column: str, text: str) -> bool:
    """Whether this column of the table, and no other, has the text, as its beginning tells."""
    columns = next(
        (one.columns for one in open_sandbox(database).tables if one.name.lower() == table.lower()),
        (),
    )
    others = [name for name, _ in columns if name.lower() != column.lower()]
    said = _rows_with(database, table, [column], text[:_LOOKED_AT])
    return said and not (others and _rows_with(database, table, others, text[:_LOOKED_AT]))


def _rows_with(database: str, table: str, columns: Sequence[str], beginning: str) -> bool:
    from sqlglot import exp

    begins = [
        exp.func("substr", exp.column(name, quoted=True), "1", str(_LOOKED_AT)) for name in columns
    ]
    found = exp.Literal.string(beginning).isin(*begins)
    asked = exp.select("1").from_(exp.table_(exp.to_identifier(table, quoted=True))).where(found)
    result = run_cached(database, asked.limit(1).sql(dialect="sqlite"))
    assert result.error is None, result.error
    return bool(result.rows)


def normal_value(value: Value) -> Cell:
    """A cell in the form in which cells are compared."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        text = " ".join(unicodedata.normalize("NFKC", value).split())
        if not _NUMBER.fullmatch(text):
            return text or None
        value = int(text) if _WHOLE.fullmatch(text) else float(text)
    if isinstance(value, int):
        return value
    if not math.isfinite(value):
        return str(value)
    return round(value) if abs(value) >= _MILLION else float(f"{value:.6g}")


def found_something(database: str, sql: str, result: Result) -> bool:
    """Whether a statement that ran found something in a table."""
    says = any(normal_value(value) is not None for row in result.rows for value in row)
    return says and shows_a_table(database, sql)


@lru_cache(maxsize=1024)
def shows_a_table(database: str, sql: str) -> bool:
    """Whether some SELECT from a table shows a column of it or counts it, or asks if it has rows.

    A WITH, and a function that gives a table, hold what the statement itself says.
    """
    from sqlglot import exp, parse_one

    statement = parse_one(sql, dialect="sqlite")
    made = {one.alias.lower() for one in statement.find_all(exp.CTE)}
    names = _columns(database)
    return any(
        _shows(select, names) and any(_is_table(origin.this, made) for origin in _origins(select))
        for select in statement.find_all(exp.Select)
    )


def _columns(database: str) -> set[str]:
    """What a column of a table may be called, in small letters."""
    tables = open_sandbox(database).tables
    return {"rowid", *(name.lower() for one in tables for name, _ in one.columns)}


def _origins(select: exp.Select) -> Iterator[exp.Expression]:
    from sqlglot import exp

    return (one for one in select.iter_expressions() if isinstance(one, exp.From | exp.Join))


def _shows(select: exp.Select, names: Collection[str]) -> bool:
    from sqlglot import exp

    looked_for = isinstance(select.find_ancestor(exp.Exists, exp.In, exp.Select), exp.Exists)
    said = (exp.Column, exp.Star, exp.AggFunc)
    return looked_for or any(
        is_found(part, names) for shown in select.expressions for part in shown.find_all(*said)
    )


def is_found(part: exp.Expression, names: Collection[str]) -> bool:
    """Whether this column or aggregate is not of the statement's own words.

    SQLite takes a name in double quotes that no column has for a text (what a subquery calls so is
    shown there); the largest of one text is that text.
    """
    from sqlglot import exp

    if isinstance(part, exp.Column):
        own = part.this.args.get("quoted") and not part.table and part.name.lower() not in names
        return not own
    return not isinstance(part, exp.Min | exp.Max | exp.Avg)  # of a column: that is found itself


def _is_table(origin: exp.Expression, made: set[str]) -> bool:
    from sqlglot import exp

    if isinstance(origin, exp.Subquery | exp.Paren):  # FROM (a JOIN b)
        return _is_table(origin.this, made)
    named = isinstance(origin, exp.Table) and isinstance(origin.this, exp.Identifier)
    return named and (bool(origin.text("db")) or origin.name.lower() not in made)


def _normal(result: Result) -> list[Row]:
    return [tuple(normal_value(value) for value in row) for row in result.rows]


def _project(rows: Sequence[Row], chosen: Sequence[int]) -> list[Row]:
    return [tuple(row[column] for column in chosen) for row in rows]


def _said(rows: Sequence[Row]) -> Iterator[Row]:
    return (row for row in rows if any(value is not None for value in row))


def _same(rows: list[Row], gold: Gold) -> bool:
    if gold.ordered:
        return rows == list(gold.rows)
    if gold.more_rows:
        found = Counter(rows)
        return not Counter(gold.rows) - found and not found - Counter(gold.pool)
    if len(rows) != len(gold.rows):
        return False
    return not Counter(rows) - Counter(gold.pool)


def _choices(rows: Sequence[Row], gold: Gold) -> Iterator[tuple[int, ...]]:
    """Columns of the result that may be the gold columns, in the gold's order, each used once.

    Columns of equal content stand for each other; a result made of many that nearly fit is given
    up after `_TRIES`.
    """
    if not rows:
        return
    wanted = len(gold.rows[0])
    copies: Counter[Row] = Counter()
    kept = []
    for column, content in enumerate(zip(*rows, strict=True)):
        copies[content] += 1
        if copies[content] <= wanted:
            kept.append((column, set(content)))
    fitting = []
    for gold_column in range(wanted):
        known = {row[gold_column] for row in gold.pool} | {None}
        fitting.append([column for column, content in kept if content <= known])
    yield from islice(_injections(fitting, ()), _TRIES)


def _injections(
    fitting: Sequence[Sequence[int]], taken: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    if len(taken) == len(fitting):
        yield taken
        return
    for column in fitting[len(taken)]:
        if column not in taken:
            yield from _injections(fitting, (*taken, column))


def _read(sql: str) -> tuple[bool, str | None]:
    """Whether the order of rows matters; and, if LIMIT leaves open which rows, all that qualify."""
    from sqlglot import exp, parse_one

    statement = parse_one(sql, dialect="sqlite")
    ordered = statement.args.get("order") is not None
    if ordered or not isinstance(statement, exp.Select) or statement.args.get("limit") is None:
        return ordered, None
    unlimited = statement.copy()
    unlimited.set("limit", None)
    unlimited.set("offset", None)
    return False, unlimited.sql(dialect="sqlite")


_NAME = re.compile(r"(?:.*_)?name", re.IGNORECASE)


def by_name(sql: str, columns_of: Mapping[str, Sequence[str]]) -> str | None:
    """The statement with row ids replaced by the names of these rows, None where it has no ids.

    `columns_of`: the columns of each table; a table's name is its first column called `name` or
    `..._name`.
    """
    from sqlglot import exp

    statement = _simple_select(sql)
    table = None if statement is None else statement.find(exp.Table)
    if statement is None or table is None:
        return None
    name = next((one for one in columns_of.get(table.name, ()) if _NAME.fullmatch(one)), None)
    chosen = [one for one in statement.find_all(exp.EQ, exp.In) if _by_id(one)]
    if name is None or len(chosen) != 1:
        return None
    named = exp.select(exp.column(name, quoted=True)).from_(table.copy()).where(chosen[0].copy())
    chosen[0].replace(exp.column(name, quoted=True).isin(query=named))
    return statement.sql(dialect="sqlite")


def found_columns(sql: str, columns: Sequence[str]) -> list[str]:
    """The columns of the gold result each of which says what was found, if `columns` are only
    searched in; none where some of `columns` is not searched by LIKE."""
    from sqlglot import exp

    statement = _simple_select(sql)
    if statement is None or statement.args.get("where") is None:
        return []
    searched = {
        column.name.lower()
        for like in statement.args["where"].find_all(exp.Like)
        for column in like.find_all(exp.Column)
    }
    if not {name.lower() for name in columns} <= searched:
        return []
    selected = [one.alias_or_name for one in statement.expressions]
    return [one for one in selected if one.lower() not in searched]


def _simple_select(sql: str) -> exp.Select | None:
    """The statement, if it is a SELECT of plain columns from one table."""
    from sqlglot import exp, parse_one

    statement = parse_one(sql, dialect="sqlite")
    if not isinstance(statement, exp.Select) or len(list(statement.find_all(exp.Table))) != 1:
        return None
    plain = all(isinstance(one, exp.Column) for one in statement.expressions)
    return statement if plain else None


def _by_id(condition: Any) -> bool:
    """Whether it is `id = 7` or `id IN (7, 8)`."""
    from sqlglot import exp

    column, values = condition.this, condition.args.get("expressions") or [condition.expression]
    return (
        isinstance(column, exp.Column)
        and column.name.lower() == "id"
        and all(isinstance(value, exp.Literal) for value in values)
    )
