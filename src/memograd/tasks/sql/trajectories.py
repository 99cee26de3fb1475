"""Gold attempts as chat rows to learn from (`memograd sft`): question, call, rows, answer.

The statement is the gold one as somebody writes it who knows names (`statement_by_name`), and it
must give the gold result. The row has `messages` and `tools` as TRL's data sets have them; calls
stand in the assistant's text between `<tool_call>` tags, where an episode's stand too.

Invariant: every gold attempt has execution reward 1.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memograd.rollout.environment import describe_tools
from memograd.tasks.sql.attempt import TOOL
from memograd.tasks.sql.compare import gold_of, matches
from memograd.tasks.sql.questions import SqlQuestion, statement_by_name
from memograd.tasks.sql.rows import LeftOut, make_rows
from memograd.tasks.sql.sandbox import Sandbox
from memograd.tasks.sql.tool import SqlEnvironment, show_result


def gold_attempts(
    questions: Sequence[SqlQuestion], sandbox: Sandbox
) -> tuple[list[dict[str, Any]], list[LeftOut]]:
    """One chat row a question; left out are those whose gold nobody can reach by names, and those
    without an answer."""
    tools = [dict(schema) for schema in describe_tools(SqlEnvironment())]
    rows, left_out = make_rows(questions, sandbox)
    by_id = {question.id: question for question in questions}
    database = str(sandbox.database)
    chats = []
    for row in rows:
        question = by_id[row.id]
        statement = statement_by_name(question)
        result = sandbox.run(statement)
        if not matches(result, gold_of(database, question.sql, question.columns)):
            left_out.append(LeftOut(row.id, "several rows have the name that the question uses"))
        elif not question.answer.strip():
            left_out.append(LeftOut(row.id, "it has no answer"))
        else:
            said = [
                {"role": "assistant", "content": write_call(statement)},
                {"role": "tool", "name": TOOL, "content": show_result(result)},
                {"role": "assistant", "content": question.answer.strip()},
            ]
            chats.append({"id": row.id, "messages": [*row.prompt, *said], "tools": tools})
    return chats, left_out


def write_call(statement: str) -> str:
    """The call of the tool with this statement, as chat templates write calls."""
    call = {"name": TOOL, "arguments": {"sql": statement}}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"
