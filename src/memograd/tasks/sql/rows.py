"""Questions as rows for training: the prompt in Chinese, and the columns that rewards read.

    prompt     system: what to do and the schema; user: the question
    columns    database, database_sha256, gold_sql, columns, evidence, question, answer, kind

Invariant: every gold statement was run and found something before a row is made of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from memograd.errors import BadInput
from memograd.rollout.types import Message
from memograd.tasks.sql.attempt import TOOL
from memograd.tasks.sql.compare import gold_of
from memograd.tasks.sql.questions import SqlQuestion
from memograd.tasks.sql.sandbox import Sandbox
from memograd.tasks.sql.schema import describe_schema
from memograd.tasks.text.rows import TextRow


@dataclass(frozen=True)
class LeftOut:
    """A question that cannot be scored, and why."""

    id: str
    reason: str


def system_prompt(sandbox: Sandbox) -> str:
    """What the agent is told before the question."""
    return (
        f"你是医学数据库助手。先用工具{TOOL}执行一条SQLite的SELECT语句查询数据库，"
        "再根据查到的内容用中文回答；查不到时换一种写法再查。\n数据库的表：\n"
        f"{describe_schema(sandbox.tables)}"
    )


def make_rows(
    questions: Sequence[SqlQuestion], sandbox: Sandbox
) -> tuple[list[TextRow], list[LeftOut]]:
    """The questions as rows, and those left out because their gold statement finds nothing.

    Raises:
        BadInput: not one question can be scored with this database.
    """
    told = Message(role="system", content=system_prompt(sandbox))
    database = str(sandbox.database)
    sha256 = hashlib.sha256(sandbox.database.read_bytes()).hexdigest()
    rows: list[TextRow] = []
    left_out: list[LeftOut] = []
    for question in questions:
        try:
            gold_of(database, question.sql, question.columns)
        except BadInput as error:
            left_out.append(LeftOut(question.id, str(error)))
            continue
        asked = Message(role="user", content=question.text)
        columns = {
            "id": question.id,
            "database": database,
            "database_sha256": sha256,
            "gold_sql": question.sql,
            "columns": list(question.columns) if question.columns else None,
            "evidence": [one.quote for one in question.evidence],
            "question": question.text,
            "answer": question.answer,
            "kind": question.kind,
        }
        rows.append(TextRow(question.id, (told, asked), columns, question.place))
    if questions and not rows:
        raise BadInput(
            f"None of {len(questions)} questions can be asked of {database}; the first: "
            f"{left_out[0].reason}"
        )
    return rows, left_out
