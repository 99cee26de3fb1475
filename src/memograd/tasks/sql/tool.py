"""The environment of the SQL agent: one tool over the sandbox, as TRL's `environment_factory` takes
it.

What the tool answers is compact: the columns, then a row a line, cells separated by ` | `, long
cells and long results cut with a note. Invariant: `query_database_by_sql` never raises for a text
as its argument.
"""

from __future__ import annotations

from collections.abc import Sequence

from memograd.tasks.sql.compare import found_something, gold_of, matches
from memograd.tasks.sql.sandbox import Result, Value, open_sandbox

SHOWN_ROWS = 10
SHOWN_CHARACTERS = 300
SHOWN_IN_ALL = 1_500


class SqlEnvironment:
    """One attempt at one question: the tool, and whether the last statement found the gold rows."""

    def reset(
        self,
        database: str,
        gold_sql: str,
        columns: Sequence[str] | None = None,
        **row: object,
    ) -> None:
        """Begin an attempt at a row of `memograd.tasks.sql.rows`."""
        self._sandbox = open_sandbox(database)
        self._gold = gold_of(database, gold_sql, None if columns is None else tuple(columns))
        self._last: tuple[str, Result] | None = None

    def query_database_by_sql(self, sql: str) -> str:
        """在医学数据库里执行一条SELECT语句，返回查询结果。

        Args:
            sql: 一条SQLite的SELECT语句
        """
        result = self._sandbox.run(sql)
        if result.error is None:
            self._last = (sql, result)
        return show_result(result)

    def get_reward(self) -> float:
        """1 if the last statement that ran gives the gold result, else 0.

        An environment does not hear the final answer; `memograd.tasks.sql.rewards` do.
        """
        if self._last is None or not found_something(*self._last):
            return 0.0
        return float(matches(self._last[1], self._gold))


def show_result(result: Result) -> str:
    """What the agent reads of a result."""
    if result.error is not None:
        return f"查询失败：{result.error}"
    if not result.rows:
        return "查询成功，没有找到任何行。"
    lines = [" | ".join(result.columns)]
    room = SHOWN_IN_ALL - len(lines[0])
    for row in result.rows[:SHOWN_ROWS]:
        line = " | ".join(_cell(value) for value in row)
        if len(line) > room:
            lines.append(line[: max(room, 0)] + "…")
            break
        lines.append(line)
        room -= len(line)
    left = len(result.rows) - (len(lines) - 1)
    if left or result.cut:
        lines.append(f"（还有{'更多' if result.cut else left}行没有显示）")
    return "\n".join(lines)


def _cell(value: Value) -> str:
    if value is None:
        return "NULL"
    text = " ".join(value.hex().split() if isinstance(value, bytes) else str(value).split())
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
