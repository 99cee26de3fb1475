"""The database as the agent is told of it: tables and columns, in Chinese where we know them.

Invariant: every table and column of the database is named once, in its own spelling.
"""

from __future__ import annotations

from collections.abc import Iterable

from memograd.tasks.sql.sandbox import Table

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
