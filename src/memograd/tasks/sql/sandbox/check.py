"""Whether a text is one query that may be run at all, as sqlglot reads it, and what it grows to.

sqlglot tries some readings one after another and, for names of types used as functions
(`date(date(date(...`), tries twice as often with every bracket: 80 characters take it hours. So its
steps are counted, and a text that needs too many is refused (`read_query`).

SQLite puts the body of a CTE wherever its name stands, and the expression of a column wherever the
column is asked for, before it runs anything. Thirty levels, each naming the one below twice, are a
thousand characters and a billion parts; no count of steps stops it there. `query_parts` finds the
same number by adding up, each body once.

SQLite also copies what is asked of a union into every arm of it: a SELECT over three unions of ten
arms is a thousand SELECTs, with all its columns and conditions. So what a SELECT says itself counts
once for each choice of arms. And it looks for an order of the tables that are joined, with tables
of subqueries among them, which takes as long as the square of their number, and longer where the
rows are to be sorted, grouped or distinct by many terms: that counts as parts.

Invariants: a text is refused or read after at most `_PARSER_STEPS` steps of the parser, and whether
it is refused depends on the text alone; `query_parts` is at least the number of tables and of
expressions that SQLite makes of the text, as far as sqlglot reads the text as SQLite does (the
heap's limit stands behind it), and takes time in the length of the text and of the views.
"""

from __future__ import annotations

import logging
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from sqlglot import exp
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError

_PARSER_STEPS = 50_000
"""Steps from word to word; a tenth of a second. Ordinary statements take a few hundred."""
_DEEPEST = 40
"""Brackets within brackets; deeper ones exhaust parsers, and nobody writes them."""
TOO_DEEP = "the statement is nested too deeply"

MOST_TABLES = 64
"""Joined in one SELECT, which is SQLite's own bound; those of subqueries and views in its FROM
included, which SQLite joins with them; not where these have GROUP BY, DISTINCT or LIMIT, because it
never does then."""

_TERMS = 8
"""To be sorted by so many takes as long as all else about an order of the tables."""


class Refusal(Exception):
    """Why a statement is not run, in words."""


def read_query(sql: str) -> exp.Expression:
    """The one query that the text is.

    Raises:
        Refusal: it is none, is several, writes, recurs, or is too intricate to be read.
    """
    logging.getLogger("sqlglot").addFilter(_no_fallback_note)
    if "\0" in sql:
        raise Refusal("the statement holds a character that is not allowed")
    depth = deepest = 0
    for character in sql:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        raise Refusal("the brackets are nested too deeply")
    # What is no query at all is refused by its first word, in words that help.
    first = sql.lstrip().split(None, 1)[:1]
    if first and first[0].isalpha() and first[0].upper() not in ("SELECT", "WITH", "VALUES"):
        raise Refusal(f"only SELECT is allowed, not {first[0].upper()[:20]}")
    try:
        found = _parse(sql)
    except RecursionError:
        raise Refusal(TOO_DEEP) from None
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{"description": "it cannot be read"}]
        said = details[0].get("description") or "it cannot be read"
        raise Refusal(f"this is not valid SQL: {said}") from None
    found = [one for one in found if not isinstance(one, exp.Semicolon)]
    if len(found) != 1:
        raise Refusal(f"exactly one SELECT is allowed, and these are {len(found)} statements")
    (statement,) = found
    if not isinstance(statement, exp.Query | exp.Values):
        raise Refusal(f"only SELECT is allowed, not {statement.key.upper()}")
    if statement.find(exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Drop, exp.Command):
        raise Refusal("only SELECT is allowed, within WITH too")
    if any(part.args.get("recursive") for part in statement.find_all(exp.With)):
        raise Refusal("recursive queries are not allowed")
    return statement


def _parse(sql: str) -> list[exp.Expression]:
    dialect = SQLite()
    found = _CountingParser(dialect=dialect).parse(dialect.tokenize(sql), sql)
    return [one for one in found if isinstance(one, exp.Expression)]


class _CountingParser(SQLite.Parser):  # type: ignore[misc, valid-type]
    """sqlglot's parser of SQLite, which gives up after a number of steps."""

    steps = 0

    def _advance(self, times: int = 1) -> None:
        self.steps += 1
        if self.steps > _PARSER_STEPS:
            raise Refusal("the statement is too intricate to be read; write it more simply")
        super()._advance(times)


def _no_fallback_note(record: logging.LogRecord) -> bool:
    """Without sqlglot's note that it reads a statement as a mere command: the model hears of it."""
    return "Falling back to parsing as a 'Command'" not in record.getMessage()


_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_WRITTEN = re.compile(r"[^\W\d]\w*")
"""A name that somebody gave. SQLite makes others: `k:1` for a second `k`, the text of an expression
for one without a name."""


def folded(name: str) -> str:
    """A name as SQLite compares it: capitals of ASCII alone are as good as small letters."""
    return name.translate(_SMALL)


ViewOf = Callable[[str], exp.Expression | None]
"""The query of a view, by its `folded` name; None if there is no such view."""


@dataclass(frozen=True)
class _Shape:
    """A table or query: its `parts`, those of each named column, and those of every other one.

    `arms`: the SELECTs of a union that it is; `tables`: those that whoever joins it joins.
    """

    parts: int = 1
    columns: dict[str, int] = field(default_factory=dict)
    other: int = 1
    arms: int = 1
    tables: int = 1

    def column(self, name: str) -> int:
        unnamed = self.other if _WRITTEN.fullmatch(name) else self.widest
        return self.columns.get(name, unnamed)

    @property
    def widest(self) -> int:
        return max(self.other, *self.columns.values(), 1)


@dataclass
class _Scope:
    """What names mean at one place; what is not found here is looked up further out."""

    outer: _Scope | None = None
    ctes: dict[str, exp.CTE] = field(default_factory=dict)
    sources: dict[str, _Shape] = field(default_factory=dict)
    aliases: dict[str, int] = field(default_factory=dict)

    def outwards(self) -> Iterator[_Scope]:
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


def query_parts(query: exp.Expression, view_of: ViewOf) -> int:
    """How many parts the query has, written out.

    Raises:
        Refusal: a CTE is made of itself.
    """
    return _Sizes(view_of).query(query, _Scope()).parts


class _Sizes:
    def __init__(self, view_of: ViewOf) -> None:
        self._view_of = view_of
        self._known: dict[int | str, _Shape | None] = {}

    def query(self, node: exp.Expression, scope: _Scope) -> _Shape:
        """The shape of a SELECT, a set operation, VALUES, or one of them in brackets."""
        within = _Scope(scope)
        for child in _children(node):
            if isinstance(child, exp.With):
                within.ctes = {folded(one.alias): one for one in child.expressions}
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, within)
        if isinstance(node, exp.Select):
            return self._select(node, within)
        if isinstance(node, exp.Subquery):
            return self._bracketed(node, within)
        parts = 1 + sum(self.expression(child, within) for child in _children(node))
        return _Shape(parts, other=parts)

    def _bracketed(self, node: exp.Subquery, scope: _Scope) -> _Shape:
        inner = node.this
        if isinstance(inner, exp.Table):
            joined = self._sources([inner], scope)
            shape = _joined(joined, other=max(one.widest for one in joined))
        else:
            shape = self.query(inner, scope)
        rest = [child for child in _children(node) if child is not inner]
        more = 1 + sum(self.expression(child, scope) for child in rest)
        return replace(shape, parts=shape.parts + more)

    def _set_operation(self, node: exp.SetOperation, scope: _Scope) -> _Shape:
        arms = [self.query(arm, scope) for arm in (node.this, node.expression)]
        rest = [
            child
            for child in _children(node)
            if child is not node.this and child is not node.expression
        ]
        scope.aliases = arms[0].columns
        parts = 1 + sum(arm.parts for arm in arms)
        parts += sum(self.expression(child, scope) for child in rest)
        return _Shape(
            parts,
            other=max(arm.widest for arm in arms),
            arms=sum(arm.arms for arm in arms),
            tables=max(arm.tables for arm in arms),
        )

    def _select(self, node: exp.Select, scope: _Scope) -> _Shape:
        origins = [child for child in _children(node) if isinstance(child, exp.From | exp.Join)]
        joined = self._sources([origin.this for origin in origins], scope)
        parts = 1
        columns: dict[str, int] = {}
        other = 1
        for shown in node.expressions:
            if shown.is_star:
                for name, source in scope.sources.items():
                    if isinstance(shown, exp.Column) and folded(shown.table) != name:
                        continue
                    columns = _widest_of(columns, source.columns)
                    other = max(other, source.other)
                    parts += sum(source.columns.values())
            size = self.expression(shown, scope)
            parts += size
            if shown.alias_or_name:
                name = folded(shown.alias_or_name)
                columns[name] = max(columns.get(name, 1), size)
            else:
                other = max(other, size)
        scope.aliases = columns
        counted = {id(shown) for shown in node.expressions}
        for child in _children(node):
            if isinstance(child, exp.From | exp.Join):
                beside = [one for one in _children(child) if one is not child.this]
                parts += sum(self.expression(one, scope) for one in beside)
            elif id(child) not in counted:
                parts += self.expression(child, scope)
        shape = _joined(joined, columns, other)
        if shape.tables > MOST_TABLES:
            raise Refusal(
                f"a SELECT joins {shape.tables} tables; at most {MOST_TABLES} are allowed"
            )
        parts += shape.tables**2 * (1 + _sorting_terms(node, shape.tables) // _TERMS)
        # Such rows are made before anybody joins them, so they are one table there.
        apart = any(node.args.get(made) for made in ("group", "distinct", "limit"))
        tables = 1 if apart else shape.tables
        return replace(shape, parts=shape.parts + parts * shape.arms, tables=tables)

    def _sources(self, origins: list[exp.Expression], scope: _Scope) -> list[_Shape]:
        """The tables of a FROM, which get their names in the scope."""
        shapes: list[_Shape] = []
        for origin in origins:
            if isinstance(origin, exp.Table):
                shape = self._named(origin, scope)
            elif isinstance(origin, exp.Query):
                shape = self.query(origin, scope)
            else:
                size = self.expression(origin, scope)
                shape = _Shape(size, other=size)
            shapes.append(shape)
            called = folded(origin.alias_or_name) or f" {len(scope.sources)}"
            if called in scope.sources:  # two of one name: a column is of the one that has it
                other = scope.sources[called]
                columns = _widest_of(shape.columns, other.columns)
                shape = replace(shape, columns=columns, other=max(shape.other, other.other))
            scope.sources[called] = shape
            joins = [join for join in origin.args.get("joins") or () if isinstance(join, exp.Join)]
            if isinstance(origin, exp.Table):
                shapes += self._sources([join.this for join in joins], scope)
        return shapes

    def _named(self, table: exp.Table, scope: _Scope) -> _Shape:
        """What a name in FROM stands for: a CTE, a view, or a table."""
        if not isinstance(table.this, exp.Identifier):  # a function that gives a table
            size = 1 + sum(self.expression(child, scope) for child in _children(table))
            return _Shape(size, other=size)
        name = folded(table.name)
        for around in scope.outwards():
            if name in around.ctes and not table.db:
                return self._cte(around.ctes[name], around)
        if name in self._known:
            return self._finished(name)
        view = self._view_of(name)
        if view is None:
            return _Shape()
        self._known[name] = None
        shape = self.query(view, _Scope())
        self._known[name] = replace(shape, parts=1 + shape.parts, columns={}, other=shape.widest)
        return self._finished(name)

    def _cte(self, cte: exp.CTE, scope: _Scope) -> _Shape:
        if id(cte) not in self._known:
            self._known[id(cte)] = None
            shape = self.query(cte.this, scope)
            renamed = cte.args["alias"].args.get("columns")
            shape = replace(shape, parts=1 + shape.parts)
            self._known[id(cte)] = (
                replace(shape, columns={}, other=shape.widest) if renamed else shape
            )
        return self._finished(id(cte))

    def _finished(self, key: int | str) -> _Shape:
        shape = self._known[key]
        if shape is None:
            raise Refusal("recursive queries are not allowed")
        return shape

    def expression(self, node: exp.Expression, scope: _Scope) -> int:
        """The parts of anything that is no query."""
        if isinstance(node, exp.With):
            return 0  # counted wherever it is named
        if isinstance(node, exp.Query | exp.Values):
            return self.query(node, scope).parts
        if isinstance(node, exp.Table):
            return self._named(node, scope).parts
        if isinstance(node, exp.Column):
            return self._column(node, scope)
        parts = 1
        for child in _children(node):
            if isinstance(node, exp.In) and child is node.args.get("field"):
                parts += self._named(_table_of(child), scope).parts
            parts += self.expression(child, scope)
        return parts

    def _column(self, column: exp.Column, scope: _Scope) -> int:
        name, table = folded(column.name), folded(column.table)
        size = 1
        for around in scope.outwards():
            for called, source in around.sources.items():
                if not table or table == called:
                    size = max(size, source.column(name))
            if not table:
                size = max(size, around.aliases.get(name, 1))
        return size


def _table_of(field: exp.Expression) -> exp.Table:
    """What `x IN field` names: SQLite takes `t`, `'t'`, `main.t` and `t()` for a table."""
    while isinstance(field, exp.Dot):
        field = field.expression
    if not field.name:
        raise Refusal("IN takes values or a query in brackets, or the name of a table")
    return exp.Table(this=exp.to_identifier(field.name, quoted=True))


def _joined(
    sources: Sequence[_Shape], columns: dict[str, int] | None = None, other: int = 1
) -> _Shape:
    """What these tables make together: one choice of an arm of each, and all that they join."""
    return _Shape(
        sum(source.parts for source in sources),
        columns or {},
        other,
        arms=prod(source.arms for source in sources),
        tables=sum(source.tables for source in sources),
    )


def _sorting_terms(select: exp.Select, tables: int) -> int:
    """What the rows are sorted, grouped and made distinct by; a star is two columns a table."""
    terms = [
        term
        for clause in ("group", "order")
        if (found := select.args.get(clause)) is not None
        for term in found.expressions
    ]
    if select.args.get("distinct"):
        terms += select.expressions
    return sum(2 * tables if term.is_star else 1 for term in terms)


def _widest_of(some: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    """The columns of both; where both have one, the name may mean either."""
    names: Iterable[str] = (*some, *others)
    return {name: max(some.get(name, 1), others.get(name, 1)) for name in names}


def _children(node: exp.Expression) -> Iterator[exp.Expression]:
    for child in node.iter_expressions():
        assert isinstance(child, exp.Expression)
        yield child
