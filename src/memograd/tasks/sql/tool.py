"""The one tool of the SQL agent, and what an agent did with it, read out of its conversation.

The environment (`SqlEnvironment`) is written as TRL's `environment_factory` takes it. What the tool
answers is compact: the columns, then a row a line, cells separated by ` | `, long cells and long
results cut with a note.

An `Attempt` is the statements in order and the final answer. A statement counts if the tool was
called with it and let it run. The final answer is the last message, if it is the assistant's and
calls no tool; thoughts are no part of it.

Invariants: `query_database_by_sql` never raises for a text as its argument; reading a conversation
runs nothing but its own statements, in the sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memograd.rollout.tool_calls import ToolCall, parse_tool_calls
from memograd.tasks.sql.compare import gold_of
from memograd.tasks.sql.other_contents import earns, tells
from memograd.tasks.sql.sandbox import Result, Value, open_sandbox, run_cached

TOOL = "query_database_by_sql"
"""The tool's name, that of the seed project's agent."""


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
        """Begin an attempt at a row of `memograd.tasks.sql.questions`."""
        self._sandbox = open_sandbox(database)
        self._gold = gold_sql, None if columns is None else tuple(columns)
        gold_of(database, *self._gold)  # raises what is wrong with it
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
        database = str(self._sandbox.database)
        return float(self._last is not None and earns(database, *self._last, *self._gold))


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


@dataclass(frozen=True)
class Attempt:
    """`calls`: statements in order, None for a call that named none; `answer`: what was said last,
    empty if nothing was; `database`: that of the statements."""

    calls: tuple[str | None, ...]
    results: tuple[Result | None, ...]
    answer: str
    database: str

    @property
    def ran(self) -> list[tuple[str, Result]]:
        """Statements that ran without an error, with what they gave."""
        return [
            (sql, result)
            for sql, result in zip(self.calls, self.results, strict=True)
            if sql is not None and result is not None and result.error is None
        ]

    @property
    def found(self) -> list[bool]:
        """Of the statements that ran, whether each found something out about the tables."""
        return [tells(self.database, sql) for sql, _ in self.ran]


def read_attempt(messages: Sequence[Mapping[str, str]] | str, database: str) -> Attempt:
    """The attempt in a completion, as reward functions get it; its statements are run again."""
    if isinstance(messages, str):
        messages = [{"role": "assistant", "content": messages}]
    calls: list[str | None] = []
    answer = ""
    for message in messages:
        if message["role"] != "assistant":
            continue
        called = parse_tool_calls(message["content"])
        calls += [_statement(call) for call in called]
        answer = "" if called else _without_thoughts(message["content"])
    if messages and messages[-1]["role"] != "assistant":
        answer = ""
    results = tuple(None if sql is None else run_cached(database, sql) for sql in calls)
    return Attempt(tuple(calls), results, answer, database)


def _statement(call: object) -> str | None:
    if not isinstance(call, ToolCall) or call.name != TOOL:
        return None
    sql = call.arguments.get("sql")
    return sql if isinstance(sql, str) and set(call.arguments) == {"sql"} else None


def _without_thoughts(text: str) -> str:
    """What is said after the last thought; nothing if that has no letter and no digit."""
    said = text.rpartition("</think>")[2].partition("<think>")[0].strip()
    return said if any(character.isalnum() for character in said) else ""
