"""Questions about a database, with gold SQL, evidence and an answer: read, split, made rows of.

One JSON object a line (`.gz` too), as the seed project writes them:

    {"qid": "...", "question": "...", "sql": ["SELECT ..."], "ground_truth": "...",
     "evidence": [{"source_table": "disease", "row_id": 4, "field": "treatment", "quote": "..."}],
     "meta": {"entity": {...}}, "split": "train"}

`split` ("train" or "test", optional) says where a question belongs. Where no question has it, the
split keeps near-duplicates together: questions that share an evidence row, directly or through
others, are on the same side, chosen by hash. A row is what is trained on by reward:

    prompt     system: what to do and the schema; user: the question
    columns    database, database_sha256, gold_sql, columns, evidence, question, answer, kind

The schema names every table and column once, in its own spelling, in Chinese beside it where we
know them. A gold attempt (`memograd sft`) is the question, a call, its rows and the answer. Its
statement is the gold one as somebody writes it who knows names (`statement_by_name`); the row has
`messages` and `tools` as TRL's data sets have them, and calls stand in the assistant's text between
`<tool_call>` tags, where an episode's stand too.

Invariants: no evidence row of a held-out question is evidence of a training question, whatever the
order of the file; every gold statement was run and found something before a row is made of it;
every gold attempt has execution reward 1.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memograd.data.record_files import json_lines
from memograd.errors import BadInput
from memograd.rollout.environment import describe_tools
from memograd.rollout.types import Message
from memograd.tasks.sql.compare import gold_of, matches
from memograd.tasks.sql.sandbox import Sandbox, Table
from memograd.tasks.sql.tool import TOOL, SqlEnvironment, show_result
from memograd.tasks.text.rows import TextRow

SPLITS = ("train", "test")
_BY_ID = re.compile(r"\bid\s*(?:=\s*(\d+)|IN\s*\(([\d,\s]+)\))", re.IGNORECASE)

_SPACE = re.compile(r"""('[^']*'|"[^"]*")|\s+""")


@dataclass(frozen=True)
class Evidence:
    """A passage that the answer rests on: `quote` stands in column `field` of row `row_id`."""

    table: str
    row_id: str
    field: str
    quote: str


@dataclass(frozen=True)
class SqlQuestion:
    """One question. `names`: row ids that the gold SQL uses, and the names behind them that the
    question uses. `split`: "train", "test", or None where the file does not say."""

    id: str
    text: str
    sql: str
    evidence: tuple[Evidence, ...]
    answer: str
    kind: str = ""
    names: Mapping[str, str] | None = None
    split: str | None = None
    place: str = ""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that the question asks about: those of its evidence, if it has any."""
        return tuple(dict.fromkeys(one.field for one in self.evidence)) or None


def read_questions(path: Path) -> list[SqlQuestion]:
    """All questions of a file, in order.

    Raises:
        BadInput: the file cannot be read, has no question, or a line is not one; or only some
            questions have a split.
    """
    questions: list[SqlQuestion] = []
    places: dict[str, str] = {}
    for number, found in json_lines(path, "questions"):
        place = f"{path}:{number}"
        if not isinstance(found, dict):
            raise BadInput(f'{place} is not an object such as {{"question": ..., "sql": ...}}.')
        question = _question(found, place, f"{path.stem}:{number}")
        if question.id in places:
            raise BadInput(f"{place}: the id {question.id} is that of {places[question.id]}.")
        places[question.id] = place
        questions.append(question)
    if not questions:
        raise BadInput(f"{path} holds no question.")
    without = [question for question in questions if question.split is None]
    if without and len(without) < len(questions):
        raise BadInput(f"{without[0].place} has no split, but other questions have one.")
    return questions


def split_questions(
    questions: Sequence[SqlQuestion], fraction: float
) -> tuple[list[SqlQuestion], list[SqlQuestion]]:
    """Questions to train on and questions held out, each in the order given.

    `fraction` is the least share that is held out where the questions do not say it themselves; 0
    holds nothing out.

    Raises:
        BadInput: nothing would be left to train on.
    """
    if any(question.split for question in questions):
        held_out = {question.id for question in questions if question.split == "test"}
        held_out = held_out if fraction else set()
    else:
        held_out = _hashed_share(_related(questions), fraction * len(questions))
    train = [question for question in questions if question.id not in held_out]
    if not train:
        raise BadInput(
            f"Holding out {fraction:g} of {len(questions)} questions leaves none to train on "
            "(those that share evidence stay together); lower text.eval_fraction, or give more."
        )
    return train, [question for question in questions if question.id in held_out]


def first_by_hash(questions: Sequence[SqlQuestion], count: int) -> list[SqlQuestion]:
    """`count` of the questions, or all: the same ones in any order of the file."""
    ids = sorted((question.id for question in questions), key=_hash)[:count]
    return [question for question in questions if question.id in set(ids)]


def _related(questions: Sequence[SqlQuestion]) -> list[list[str]]:
    """Ids of the questions, those that share an evidence row or their statement together."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for question in questions:
        own = find(f"question {question.id}")
        rows = [f"row {one.table} {one.row_id}" for one in question.evidence]
        for other in (*rows, f"sql {' '.join(question.sql.split())}"):
            leader[find(other)] = own
    groups: dict[str, list[str]] = {}
    for question in questions:
        groups.setdefault(find(f"question {question.id}"), []).append(question.id)
    return list(groups.values())


def _hashed_share(groups: Sequence[Sequence[str]], wanted: float) -> set[str]:
    """Whole groups in the order of their hash, until they have as many members as are wanted."""
    chosen: set[str] = set()
    for group in sorted(groups, key=lambda group: _hash(min(group))):
        if len(chosen) >= wanted:
            break
        chosen.update(group)
    return chosen


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _question(found: Mapping[str, Any], place: str, default_id: str) -> SqlQuestion:
    statements = found.get("sql")
    sql = statements[0] if isinstance(statements, list) and len(statements) == 1 else statements
    answer = found.get("ground_truth", found.get("answer", ""))
    evidence = found.get("evidence") or []
    split = found.get("split")
    for name, value in (("question", found.get("question")), ("sql", sql)):
        if not isinstance(value, str) or not value.strip():
            raise BadInput(f'{place}: "{name}" must be a text (one statement, for sql).')
    if not isinstance(answer, str) or not isinstance(evidence, list):
        raise BadInput(f'{place}: "ground_truth" must be a text and "evidence" a list.')
    if split not in (None, *SPLITS):
        raise BadInput(f'{place}: "split" must be train or test, not {split!r}.')
    meta = found.get("meta")
    return SqlQuestion(
        id=str(found.get("qid", found.get("id", default_id))),
        text=str(found["question"]),
        sql=_on_one_line(str(sql)),
        evidence=tuple(_evidence(one, place) for one in evidence),
        answer=answer,
        kind=str(found.get("task_type", "")),
        names=_names(meta.get("entity") if isinstance(meta, dict) else None),
        split=split,
        place=place,
    )


def _on_one_line(sql: str) -> str:
    """The statement without line breaks; what stands in quotes, and comments, are left alone."""
    if "--" in sql:
        return sql.strip()
    return _SPACE.sub(lambda match: match[1] or " ", sql).strip()


def _evidence(found: Any, place: str) -> Evidence:
    try:
        return Evidence(*(str(found[key]) for key in ("source_table", "row_id", "field", "quote")))
    except (KeyError, TypeError):
        raise BadInput(
            f"{place}: a piece of evidence needs source_table, row_id, field and quote."
        ) from None


def _names(entity: Any) -> Mapping[str, str] | None:
    """Row id -> name, from pairs such as drug_id and drug_name, drug_id_a and drug_name_a."""
    if not isinstance(entity, dict):
        return None
    return {
        str(value): str(entity[key.replace("_id", "_name")])
        for key, value in entity.items()
        if "_id" in key and key.replace("_id", "_name") in entity
    }


def statement_by_name(question: SqlQuestion) -> str:
    """The gold statement as somebody can write it who knows names, not row ids.

    `id = 7` becomes `med_name = '...'` (or `disease_name`), where the question says whose id it is;
    other statements stay as they are.
    """
    match = _BY_ID.search(question.sql)
    if match is None or not question.names:
        return question.sql
    ids = [one.strip() for one in (match[1] or match[2]).split(",")]
    if any(one not in question.names for one in ids):
        return question.sql
    column = "med_name" if "drugs_info" in question.sql else "disease_name"
    names = ["'" + question.names[one].replace("'", "''") + "'" for one in ids]
    named = f"{column} = {names[0]}" if len(names) == 1 else f"{column} IN ({', '.join(names)})"
    return question.sql[: match.start()] + named + question.sql[match.end() :]


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
