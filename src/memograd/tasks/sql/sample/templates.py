"""Questions about the sample database, made of templates: gold SQL, evidence and answer included.

Training and test questions have different templates *and* different drugs and diseases: what is
measured is whether the agent reads a schema, not whether it remembers a statement.

Invariant: no statement shape (names and numbers taken out) and no evidence row is on both sides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from memograd.data.record_files import as_lines
from memograd.tasks.sql.sample.build import diseases, drugs

_PER_TEMPLATE = 16
_LIMIT = 4

Record = dict[str, Any]
_Thing = dict[str, Any]

# Column, and the ways in which people ask for it.
_TRAIN_FIELDS = {
    "contraindications": ("{}有哪些禁忌？", "什么人不能用{}？"),
    "dosage": ("{}怎么用？", "{}的用法用量是什么？"),
    "indication": ("{}可以治什么病？", "{}的适应症有哪些？"),
    "adverse_reactions": ("{}有什么不良反应？", "用{}可能有哪些副作用？"),
    "component": ("{}的成份是什么？", "{}含有什么成份？"),
    "form": ("{}是什么剂型？", "{}有哪种剂型？"),
    "overview": ("{}是什么病？", "请概述{}。"),
    "clinical_manif": ("{}有哪些症状？", "得了{}会有什么表现？"),
    "treatment": ("{}怎么治疗？", "{}常用哪些治疗？"),
}
_TEST_FIELDS = {
    "precautions": ("使用{}要注意什么？", "{}有哪些注意事项？"),
    "mechanism_action": ("{}的作用机制是什么？", "{}是怎样起作用的？"),
    "drug_interactions": ("{}和哪些药物有相互作用？", "{}与其他药一起用要注意什么？"),
    "diagnosis": ("{}怎么诊断？", "怎样确诊{}？"),
}


def sample_questions() -> list[Record]:
    """All questions, as lines of a questions file; the same ones every time."""
    records: list[Record] = []
    for split, fields in (("train", _TRAIN_FIELDS), ("test", _TEST_FIELDS)):
        for field, wordings in fields.items():
            records += _field_questions(split, field, wordings)
    for make in (
        *(_compare_drugs, _diseases_with_symptom),
        *(_compare_diseases, _drugs_for_disease, _disease_by_code),
    ):
        records += make()
    return records


def write_sample_questions(path: Path) -> None:
    """Write the questions as JSONL."""
    path.write_text(as_lines(sample_questions()), encoding="utf-8")


def _field_questions(split: str, field: str, wordings: Sequence[str]) -> Iterator[Record]:
    for thing in _chosen(_table_of(field), split, field):
        name = _name(thing)
        table, column = _place(thing)
        yield _record(
            split,
            f"field_{field}",
            wordings[_number(name + field) % len(wordings)].format(name),
            f"SELECT {field} FROM {table} WHERE {column} = '{name}'",
            [(thing, field)],
            f"{name}：{thing[field]}",
        )


def _compare_drugs() -> Iterator[Record]:
    found = _chosen(drugs(), "train", "compare")
    for first, second in zip(found[::2], found[1::2], strict=False):
        a, b = _name(first), _name(second)
        yield _record(
            "train",
            "compare_drugs",
            f"{a}和{b}的禁忌有什么不同？",
            f"SELECT med_name, contraindications FROM drugs_info WHERE med_name IN ('{a}', '{b}')",
            [(first, "contraindications"), (second, "contraindications")],
            f"{a}：{first['contraindications']}{b}：{second['contraindications']}",
        )


def _compare_diseases() -> Iterator[Record]:
    found = _chosen(diseases(), "test", "compare")
    for first, second in zip(found[::2], found[1::2], strict=False):
        a, b = _name(first), _name(second)
        yield _record(
            "test",
            "compare_diseases",
            f"对比{a}和{b}的症状。",
            "SELECT disease_name, clinical_manif FROM disease "
            f"WHERE disease_name = '{a}' OR disease_name = '{b}'",
            [(first, "clinical_manif"), (second, "clinical_manif")],
            f"{a}：{first['clinical_manif']}{b}：{second['clinical_manif']}",
        )


def _diseases_with_symptom() -> Iterator[Record]:
    """Only of diseases on the training side, so that no evidence row is on both."""
    by_symptom: dict[str, list[_Thing]] = {}
    everyone = diseases()
    for disease in everyone:
        for symptom in disease["clinical_manif"].removeprefix("常见症状有")[:-1].split("、"):
            by_symptom.setdefault(symptom, []).append(disease)
    rare = []
    for symptom, having in by_symptom.items():
        matching = [one for one in everyone if symptom in one["clinical_manif"]]
        if 1 < len(having) <= _LIMIT and matching == having and all(map(_trains, having)):
            rare.append((symptom, having))
    for symptom, having in sorted(rare, key=lambda one: _number(one[0]))[:_PER_TEMPLATE]:
        yield _record(
            "train",
            "search_symptom",
            f"哪些疾病有{symptom}的症状？",
            f"SELECT disease_name FROM disease WHERE clinical_manif LIKE '%{symptom}%'",
            [(one, "disease_name") for one in having],
            f"有{symptom}症状的疾病：{'、'.join(map(_name, having))}。",
        )


def _drugs_for_disease() -> Iterator[Record]:
    everyone = drugs()
    found = []
    for disease in diseases():
        name = _name(disease)
        having = [one for one in everyone if name in one["indication"]]
        if 0 < len(having) <= _LIMIT and not any(map(_trains, having)):
            found.append((name, having))
    for name, having in sorted(found, key=lambda one: _number(one[0]))[:_PER_TEMPLATE]:
        yield _record(
            "test",
            "search_indication",
            f"哪些药品可以用于{name}？",
            f"SELECT med_name FROM drugs_info WHERE indication LIKE '%{name}%'",
            [(one, "med_name") for one in having],
            f"可以用于{name}的药品：{'、'.join(map(_name, having))}。",
        )


def _disease_by_code() -> Iterator[Record]:
    everyone = diseases()
    for disease in _chosen(everyone, "test", "code"):
        code = disease["overview"].partition("编码为")[2].partition("，")[0]
        having = [one for one in everyone if f"{code}，" in one["overview"]]
        if any(map(_trains, having)):
            continue
        yield _record(
            "test",
            "disease_by_code",
            f"ICD-10编码{code}是哪种疾病？",
            f"SELECT disease_name FROM disease WHERE overview LIKE '%{code}，%'",
            [(one, "disease_name") for one in having],
            f"ICD-10编码{code}是{'、'.join(map(_name, having))}。",
        )


def _record(
    split: str,
    kind: str,
    question: str,
    sql: str,
    evidence: Sequence[tuple[_Thing, str]],
    answer: str,
) -> Record:
    quoted = [
        {
            "source_table": _place(thing)[0],
            "row_id": thing["id"],
            "field": field,
            "quote": thing[field],
        }
        for thing, field in evidence
    ]
    number = hashlib.sha256(f"{kind} {question}".encode()).hexdigest()[:8]
    return {
        "qid": f"{kind}-{number}",
        "task_type": kind,
        "split": split,
        "question": question,
        "sql": [sql],
        "evidence": quoted,
        "ground_truth": answer,
    }


def _chosen(things: Sequence[_Thing], split: str, salt: str) -> list[_Thing]:
    """As many as a template has questions, of those on this side, by hash."""
    side = [thing for thing in things if _trains(thing) == (split == "train")]
    return sorted(side, key=lambda thing: _number(_name(thing) + salt))[:_PER_TEMPLATE]


def _trains(thing: _Thing) -> bool:
    """Two thirds of drugs and diseases are for training questions."""
    return _number(_name(thing)) % 3 != 0


def _table_of(field: str) -> list[_Thing]:
    tables: tuple[Callable[[], list[_Thing]], ...] = (drugs, diseases)
    return next(rows for make in tables if field in (rows := make())[0])


def _place(thing: _Thing) -> tuple[str, str]:
    return ("drugs_info", "med_name") if "med_name" in thing else ("disease", "disease_name")


def _name(thing: _Thing) -> str:
    return str(thing[_place(thing)[1]])


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)
