"""What an agent did, read out of its conversation: statements in order, and the final answer.

A statement counts if the tool was called with it and let it run. The final answer is the last
message, if it is the assistant's and calls no tool; thoughts are no part of it.

Invariant: reading a conversation runs nothing but its own statements, in the sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memograd.rollout.tool_calls import ToolCall, parse_tool_calls
from memograd.tasks.sql.sandbox import Result, run_cached

TOOL = "query_database_by_sql"
"""The tool's name, that of the seed project's agent."""


@dataclass(frozen=True)
class Attempt:
    """`calls`: statements in order, None for a call that named none; `answer`: what was said last,
    empty if nothing was."""

    calls: tuple[str | None, ...]
    results: tuple[Result | None, ...]
    answer: str

    @property
    def ran(self) -> list[tuple[str, Result]]:
        """Statements that ran without an error, with what they gave."""
        return [
            (sql, result)
            for sql, result in zip(self.calls, self.results, strict=True)
            if sql is not None and result is not None and result.error is None
        ]


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
    return Attempt(tuple(calls), results, answer)


def _statement(call: object) -> str | None:
    if not isinstance(call, ToolCall) or call.name != TOOL:
        return None
    sql = call.arguments.get("sql")
    return sql if isinstance(sql, str) and set(call.arguments) == {"sql"} else None


def _without_thoughts(text: str) -> str:
    """What is said after the last thought; nothing if that has no letter and no digit."""
    said = text.rpartition("</think>")[2].partition("<think>")[0].strip()
    return said if any(character.isalnum() for character in said) else ""
