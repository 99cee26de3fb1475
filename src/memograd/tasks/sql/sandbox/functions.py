"""Functions of SQLite that a statement may call, and those of them that need a guard of our own.

- The time of day and the machine's zone: a result that holds them is another one tomorrow.
- Dates with a list of changes, and `trim` with a list of characters, which it compares each with
  each: much work within one step of SQLite, so they count as many.
- `printf`, `format`, `hex` and `quote` write long values in one step; what they write counts too.
- `like`, `glob`, `instr` and `replace` compare a text with a pattern at every place of it, within
  one step. For short patterns in cells of the database that is soon done, and SQLite does it
  alone. Elsewhere the comparisons count as steps.

Invariant: where a guard lets a call through, its value is SQLite's own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NoReturn

from sqlglot import exp

from memograd.tasks.sql.sandbox.result import Value

FUNCTIONS = frozenset(
    (
        *("abs", "avg", "ceil", "ceiling", "coalesce", "count", "date", "datetime", "floor"),
        *("glob", "group_concat", "ifnull", "iif", "instr", "julianday", "length", "like"),
        *("lower", "ltrim", "max", "min", "nullif", "replace", "round", "sign", "strftime"),
        *("rtrim", "substr", "substring", "sum", "time", "total", "trim", "typeof", "unixepoch"),
        *("char", "format", "hex", "printf", "quote", "string_agg", "unicode", "upper"),
        *("cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value"),
        *("ntile", "percent_rank", "rank", "row_number"),
        *("exp", "ln", "log", "log10", "log2", "mod", "pi", "pow", "power", "sqrt", "trunc"),
        *("->", "->>", "json", "json_array", "json_array_length", "json_extract", "json_object"),
        *("json_group_array", "json_group_object", "json_quote", "json_type", "json_valid"),
    )
)
"""Nothing random; what they make is no longer than a value may be."""
JSON_TABLES = frozenset(("json_each", "json_tree"))
"""Functions that give a table; what they read is their argument."""

PATTERN_BYTES = 200
"""Of a pattern of LIKE or GLOB, at most."""
_TRIMMED = 200
"""Characters that `trim` takes away, at most."""
_TIME_AT = {name: 0 for name in ("date", "time", "datetime", "julianday", "unixepoch")}
_TIME_AT["strftime"] = 1
"""Which argument is the time; without it, SQLite takes the present one."""
_PRESENT = {"now", "subsec", "subsecond"}
_ZONES = {"localtime", "utc"}
_COMPARISONS_A_STEP = 32
"""Comparing a character with a wildcard or a class takes SQLite a third of a step, at most."""
_STEPS_A_CALL = 20
"""Of a function of ours, besides."""
_BYTES_A_STEP = 1_000
"""Comparing bytes with bytes is quicker."""
_READ_A_STEP = 16
"""Characters of a text that are taken to a function of ours, looked through once and brought back:
a sixth of a millisecond for 80,000, and half of one where `replace` changes them all."""
_CHARACTERS_OF_TIME_A_STEP = 1
"""Of formats and changes of dates."""
_SHORT_DATE = 100
"""Characters of a call whose date is kept."""
_SIMPLE_PATTERN = 64
"""Characters of a pattern that SQLite may search for on its own."""
_FEW = 16
"""Patterns of a statement that SQLite may search for on its own."""
_MAY_GROW = (
    *("||", "concat", "glob", "instr", "replace", "string_agg"),
    *("char", "format", "hex", "json", "printf", "quote"),
)


def searches_briefly(sql: str, query: exp.Expression) -> bool:
    """Whether the searches of the statement are few, for short texts, in no text that it made.

    Decided by words as well as by what was parsed, so that no spelling hides a search.
    """
    text = sql.lower()
    searches = text.count("like")
    simple = sum(_is_simple(one.expression) for one in query.find_all(exp.Like))
    return searches == simple <= _FEW and not any(word in text for word in _MAY_GROW)


def _is_simple(pattern: exp.Expression) -> bool:
    text = pattern.name
    if not isinstance(pattern, exp.Literal) or len(text) > _SIMPLE_PATTERN:
        return False
    return text.count("%") <= 2


class Guards:
    """Our own functions in place of SQLite's, on one connection.

    `refuse` takes why a call is refused, and raises; so does `count`, where the steps that it is
    given are too many. Exceptions of a function lose their words on the way through SQLite.
    """

    def __init__(
        self, refuse: Callable[[str], NoReturn], count: Callable[[int], None], value_bytes: int
    ) -> None:
        self._refuse = refuse
        self._count = count
        self._scratch = sqlite3.connect(":memory:", isolation_level=None)
        self._scratch.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, value_bytes)
        self._scratch.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES)
        # Rows share their dates, and asking for one takes as long as a hundred steps.
        self._known_date = lru_cache(maxsize=1_000, typed=True)(self._date)

    def close(self) -> None:
        """Leave SQLite's own functions, which were asked for most values."""
        self._scratch.close()

    def dates_trims_and_writers(self, connection: sqlite3.Connection) -> None:
        """Refuse the time of day, the zone of the machine, and long lists to trim away; count what
        is written."""
        for name in _TIME_AT:
            timed = partial(self._timed, name)
            connection.create_function(name, -1, timed, deterministic=True)
        for name, strip in (("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
            trimmed = partial(self._trimmed, strip)
            connection.create_function(name, 2, trimmed, deterministic=True)
        for name, arguments in (("format", -1), ("printf", -1), ("hex", 1), ("quote", 1)):
            written = partial(self._written, name)
            connection.create_function(name, arguments, written, deterministic=True)

    def searches(self, connection: sqlite3.Connection) -> None:
        """Count the comparisons of every search in a text as steps."""
        for name, arguments, per_step in (
            ("like", 2, _COMPARISONS_A_STEP),
            ("like", 3, _COMPARISONS_A_STEP),
            ("glob", 2, _COMPARISONS_A_STEP),
            ("instr", 2, _BYTES_A_STEP),
            ("replace", 3, _BYTES_A_STEP),
        ):
            searched = partial(self._searched, name, per_step)
            connection.create_function(name, arguments, searched, deterministic=True)

    def _timed(self, name: str, *given: Value) -> Value:
        characters = sum(map(_length, given))
        self._count(_STEPS_A_CALL + characters // _CHARACTERS_OF_TIME_A_STEP)
        ask = self._known_date if characters <= _SHORT_DATE else self._date
        return ask(name, *given)

    def _date(self, name: str, *given: Value) -> Value:
        said = {_as_read(value) for value in given if isinstance(value, str | bytes)}
        if len(given) <= _TIME_AT[name] or _PRESENT & said:
            self._refuse(f"{name} of the present time is not allowed; name a date")
        if _ZONES & said:
            self._refuse(f"{name} in the time zone of the machine is not allowed")
        return self._ask(name, *given)

    def _written(self, name: str, *given: Value) -> Value:
        self._count(_STEPS_A_CALL + sum(map(_length, given)) // _READ_A_STEP)
        written = self._ask(name, *given)
        self._count(_length(written) // _READ_A_STEP)
        return written

    def _searched(self, name: str, per_step: int, *given: Value) -> Value:
        read = _length(given[0]) // _READ_A_STEP
        self._count(_STEPS_A_CALL + read + _length(given[0]) * _length(given[1]) // per_step)
        return self._ask(name, *given)

    def _trimmed(self, strip: Callable[[str, str], str], value: Value, some: Value) -> str | None:
        """SQLite's own `trim(value, some)`, which is Python's, for a short list of characters."""
        if value is None or some is None:
            return None
        characters = self._as_text(some)
        if len(characters) > _TRIMMED:
            self._refuse(f"trim takes away at most {_TRIMMED} different characters")
        compared = _length(value) * _length(characters)
        self._count(_STEPS_A_CALL + compared // _COMPARISONS_A_STEP)
        return strip(self._as_text(value), characters)

    def _as_text(self, value: str | int | float | bytes) -> str:
        """The value as SQLite casts it to text."""
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, float):  # each version writes the last of 15 digits in its own way
            [(text,)] = self._scratch.execute("SELECT CAST(? AS TEXT)", (value,))
            return str(text)
        return str(value)

    def _ask(self, name: str, *given: Value) -> Value:
        """What SQLite's own function says."""
        try:
            asked = f"SELECT {name}({', '.join('?' * len(given))})"
            [(value,)] = self._scratch.execute(asked, given)
        except sqlite3.Error as error:
            self._refuse(str(error))
        assert value is None or isinstance(value, str | int | float | bytes)
        return value


def _as_read(value: str | bytes) -> str:
    """What SQLite's functions of dates take the value for: bytes are text, and NUL ends it."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text.partition("\0")[0].strip().lower()


def _length(value: Value) -> int:
    return len(value) + 1 if isinstance(value, str | bytes) else 20
