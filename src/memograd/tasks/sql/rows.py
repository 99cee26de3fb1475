"""Questions as rows: to train on by reward, or to learn from as gold attempts.

    prompt     system: what to do and the schema; user: the question
    columns    database, database_sha256, gold_sql, columns, evidence, question, answer, kind

The schema names every table and column once, in its own spelling, in Chinese beside it where we
know them. A gold attempt (`memograd sft`) is the question, a call, its rows and the answer. Its
statement is the gold one as somebody writes it who knows names (`statement_by_name`); the row has
`messages` and `tools` as TRL's data sets have them, and calls stand in the assistant's text between
`<tool_call>` tags, where an episode's stand too.

Invariants: every gold statement was run and found something before a row is made of it; every gold
attempt has execution reward 1.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memograd.errors import BadInput
from memograd.rollout.environment import describe_tools
from memograd.rollout.types import Message
from memograd.tasks.sql.compare import gold_of, matches
from memograd.tasks.sql.questions import SqlQuestion, statement_by_name
from memograd.tasks.sql.sandbox import Sandbox, Table
from memograd.tasks.sql.tool import TOOL, SqlEnvironment, show_result
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


_TABLES = {"drugs_info": "药品", "disease": "疾病"}
_COLUMNS = {
    "id": "编号",
    "med_name": "药品名称",
    "component": "成份",
    "form": "剂型",
    "dosage": "用法用量",
    "indication": "适应症",
    "adverse_reactions": "不良反应",
    "contraindications": "禁忌",
    "precautions": "注意事项",
    "company_name": "生产企业",
    "mechanism_action": "作用机制",
    "drug_interactions": "药物相互作用",
    "disease_name": "疾病名称",
    "overview": "概述",
    "clinical_manif": "临床表现",
    "complication": "并发症",
    "epidemiology": "流行病学",
    "examination": "检查",
    "treatment": "治疗",
    "cause": "病因",
    "diagnosis": "诊断",
    "differ_diag": "鉴别诊断",
    "prevention": "预防",
    "prognosis": "预后",
}


def describe_schema(tables: Iterable[Table]) -> str:
    """A line for every table: its name, what it is of, its columns with their meaning or type."""
    return "\n".join(_line(table) for table in tables)


def _line(table: Table) -> str:
    meaning = _TABLES.get(table.name)
    title = f"{table.name}（{meaning}）" if meaning else table.name
    columns = (
        f"{name} {_COLUMNS[name]}" if meaning and name in _COLUMNS else f"{name} {kind}".strip()
        for name, kind in table.columns
    )
    return f"{title}：{'，'.join(columns)}"
