"""Other readings of a gold statement: what somebody may ask instead who has only the question.

- **By name.** `WHERE id = 7` is known to nobody who reads a question about "X". Where several rows
  are called X, a statement by name finds all of them: `by_name` gives that statement.
- **What was found, not where it was searched.** Of "which drugs have an indication that says X",
  the answer is the drugs' names or ids; the searched column may be left out: `found_columns`.

Both hold only where the question's evidence says which columns it asks about; without it a gold
statement means what it says. Invariant: a reading is about the gold statement's own table and
conditions; it never lets in rows that another name or another search would find.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp

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
