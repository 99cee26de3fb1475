"""Questions about a database, with gold SQL, evidence and an answer, and how they are split.

One JSON object a line (`.gz` too), as the seed project writes them:

    {"qid": "...", "question": "...", "sql": ["SELECT ..."], "ground_truth": "...",
     "evidence": [{"source_table": "disease", "row_id": 4, "field": "treatment", "quote": "..."}],
     "meta": {"entity": {...}}, "split": "train"}

`split` ("train" or "test", optional) says where a question belongs. Where no question has it, the
split keeps near-duplicates together: questions that share an evidence row, directly or through
others, are on the same side, chosen by hash.

Invariant: no evidence row of a held-out question is evidence of a training question, whatever the
order of the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memograd.data.record_files import json_lines
from memograd.errors import BadInput

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
