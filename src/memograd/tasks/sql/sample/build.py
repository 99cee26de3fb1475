"""From `facts.json` and `classes.json` to the sample database, in a cache, at first use.

Invariant: the same JSON files give the same rows, and the cached file appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from memograd.config.memory_settings import cache_folder
from memograd.errors import BadInput

_HERE = Path(__file__).parent
_SOURCES = ("facts.json", "classes.json", "build.py")

DRUG_COLUMNS = (
    *("id", "med_name", "component", "form", "dosage", "indication", "adverse_reactions"),
    *("contraindications", "precautions", "company_name", "mechanism_action", "drug_interactions"),
)
DISEASE_COLUMNS = (
    *("id", "disease_name", "overview", "clinical_manif", "complication", "epidemiology"),
    *("examination", "treatment", "cause", "diagnosis", "differ_diag", "prevention", "prognosis"),
)
TABLES = {"drugs_info": DRUG_COLUMNS, "disease": DISEASE_COLUMNS}

_ROUTES = {
    "oral": ("口服制剂", "口服"),
    "subcutaneous": ("皮下注射剂", "皮下注射"),
    "inhaled": ("吸入剂", "吸入"),
    "sublingual": ("舌下制剂", "舌下含服"),
    "intravenous": ("静脉注射剂", "静脉给药"),
    "ophthalmic": ("滴眼剂", "滴眼"),
}
_UNITS = {"mg": "毫克", "µg": "微克", "IU": "国际单位", "drop": "滴", "g": "克", "mL": "毫升"}
_FREQUENCIES = {
    "once_daily": "每日一次",
    "twice_daily": "每日两次",
    "three_times_daily": "每日三次",
    "four_times_daily": "每日四次",
    "at_night": "每晚一次",
    "as_required": "需要时使用",
    "once_weekly": "每周一次",
    "every_three_weeks": "每三周一次",
}


def sample_database() -> Path:
    """The sample database's file, written if it is not in the cache yet."""
    content = b"".join((_HERE / name).read_bytes() for name in _SOURCES)
    version = hashlib.sha256(content).hexdigest()[:12]
    path = cache_folder() / f"medical-sample-{version}.sqlite"
    if not path.is_file():
        write_sample(path)
    return path


def write_sample(path: Path) -> None:
    """Write the sample database into the new file `path`, and the folders above it; whole, or
    raising BadInput, not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / path.name
            _fill(made)
            os.replace(made, path)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"The database {path} cannot be written ({reason}): make room.") from error


def _fill(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, columns in TABLES.items():
            declared = ", ".join(f"{name} text" for name in columns[1:])
            connection.execute(f"CREATE TABLE {table}(id integer primary key, {declared})")
        for table, rows in (("drugs_info", drugs()), ("disease", diseases())):
            for row in rows:
                named = ", ".join(row)
                marks = ", ".join("?" * len(row))
                connection.execute(
                    f"INSERT INTO {table}({named}) VALUES ({marks})", list(row.values())
                )


def drugs() -> list[dict[str, Any]]:
    """The rows of `drugs_info`."""
    facts = _facts()
    uses: dict[str, list[str]] = {}
    for name, _icd, _department, _symptoms, medications in facts["diseases"]:
        for medication in medications:
            uses.setdefault(medication, []).append(name)
    return [_drug(1001 + index, row, uses, _class_of()) for index, row in enumerate(facts["drugs"])]


def diseases() -> list[dict[str, Any]]:
    """The rows of `disease`."""
    rows = _facts()["diseases"]
    return [_disease(1 + index, row, rows) for index, row in enumerate(rows)]


def _drug(
    number: int,
    row: list[Any],
    uses: Mapping[str, list[str]],
    classes: Mapping[str, list[Any]],
) -> dict[str, Any]:
    name, english, unit, doses, route, frequencies = row
    kind, _, mechanism, contraindications, adverse, precautions, interactions = classes[name]
    form, how = _ROUTES[route]
    dose = "或".join(f"{amount:g}{_UNITS[unit]}" for amount in doses)
    often = "或".join(_FREQUENCIES[frequency] for frequency in frequencies)
    return {
        "id": number,
        "med_name": name,
        "component": f"{name}（{english}），属于{kind}。",
        "form": form,
        "dosage": f"{how}，每次{dose}，{often}。",
        "indication": f"用于{'、'.join(uses[name])}。",
        "adverse_reactions": f"常见不良反应：{adverse}",
        "contraindications": contraindications,
        "precautions": precautions,
        "mechanism_action": mechanism,
        "drug_interactions": interactions,
    }


def _disease(number: int, row: list[Any], everyone: list[list[Any]]) -> dict[str, Any]:
    name, icd, department, symptoms, medications = row
    made = {
        "id": number,
        "disease_name": name,
        "overview": f"{name}，ICD-10编码为{icd}，由{department}诊治。",
        "clinical_manif": f"常见症状有{'、'.join(symptoms)}。",
        "treatment": f"常用的治疗有{'、'.join(medications)}。",
        "diagnosis": f"{department}医生根据{'、'.join(symptoms[:2])}等表现，结合检查作出诊断。",
    }
    alike = [
        (other[0], shared)
        for other in everyone
        if other[0] != name and len(shared := [one for one in symptoms if one in other[3]]) >= 3
    ]
    if alike:
        told = "；".join(f"{other}也有{'、'.join(shared)}" for other, shared in alike[:3])
        made["differ_diag"] = f"注意鉴别：{told}。"
    return made


def _facts() -> dict[str, list[list[Any]]]:
    found: dict[str, list[list[Any]]] = json.loads((_HERE / "facts.json").read_text("utf-8"))
    return found


def _class_of() -> dict[str, list[Any]]:
    classes: list[list[Any]] = json.loads((_HERE / "classes.json").read_text("utf-8"))
    return {name: entry for entry in classes for name in _members(entry)}


def _members(entry: list[Any]) -> Iterator[str]:
    yield from entry[1]
