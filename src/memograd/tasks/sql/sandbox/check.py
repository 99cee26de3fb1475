"""Whether a text is one query that may be run at all, as sqlglot reads it.

sqlglot tries some readings one after another and, for names of types used as functions
(`date(date(date(...`), tries twice as often with every bracket: 80 characters take it hours. So its
steps are counted, and a text that needs too many is refused.

Invariant: a text is refused or read after at most `_PARSER_STEPS` steps of the parser, and whether
it is refused depends on the text alone.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.parser import Parser

_PARSER_STEPS = 50_000
"""Steps from word to word; a tenth of a second. Ordinary statements take a few hundred."""
_DEEPEST = 40
"""Brackets within brackets; deeper ones exhaust parsers, and nobody writes them."""
TOO_DEEP = "the statement is nested too deeply"


class Refusal(Exception):
    """Why a statement is not run, in words."""


def read_query(sql: str) -> exp.Expression:
    """The one query that the text is.

    Raises:
        Refusal: it is none, is several, writes, recurs, or is too intricate to be read.
    """
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

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
    from sqlglot import exp
    from sqlglot.dialects.sqlite import SQLite

    dialect = SQLite()
    found = _counting_parser()(dialect=dialect).parse(dialect.tokenize(sql), sql)
    return [one for one in found if isinstance(one, exp.Expression)]


@cache
def _counting_parser() -> type[Parser]:
    from sqlglot.dialects.sqlite import SQLite

    class CountingParser(SQLite.Parser):  # type: ignore[misc, valid-type]
        """sqlglot's parser of SQLite, which gives up after a number of steps."""

        steps = 0

        def _advance(self, times: int = 1) -> None:
            self.steps += 1
            if self.steps > _PARSER_STEPS:
                raise Refusal("the statement is too intricate to be read; write it more simply")
            super()._advance(times)

    return CountingParser


def _no_fallback_note(record: logging.LogRecord) -> bool:
    """Without sqlglot's note that it reads a statement as a mere command: the model hears of it."""
    return "Falling back to parsing as a 'Command'" not in record.getMessage()
