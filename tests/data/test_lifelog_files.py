"""Life logs in files: nothing is lost, and what is wrong is named with its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memograd.data.lifelog import LifelogSettings, generate_lifelogs, read_lifelogs, write_lifelogs
from memograd.errors import BadInput

SMALL = LifelogSettings(sessions=3, statements_per_session=6)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    chinese = replace(SMALL, language="zh")
    logs = [*generate_lifelogs(3, 0, SMALL), *generate_lifelogs(2, 0, chinese)]
    first = logs[0]
    turn = replace(first.turns[0], text="odd \u2028 line\nbreak", time=None, caption="a photo")
    asked = first.probes[0]
    chosen = replace(asked, question=replace(asked.question, choices=("a", "b")))
    plain = replace(first.statements[0], gold=None)
    logs[0] = replace(
        first,
        turns=(turn, *first.turns[1:]),
        statements=(plain, *first.statements[1:]),
        probes=(chosen, *first.probes[1:]),
    )
    write_lifelogs(logs, tmp_path / "logs.jsonl")
    assert read_lifelogs(tmp_path / "logs.jsonl") == logs


def _swap(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        for step in path[:-1]:
            record = record[step]
        record[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (_swap("language", to="fr"), "language 'fr'"),
        (_swap("speakers", to=["Ann"]), "1 speakers"),
        (_swap("turns", 0, "text", to=7), "turn 0 is int"),
        (_swap("statements", 0, "told_at", to="noon"), "'told_at' 'noon'"),
        (_swap("statements", 0, "gold", "kind", to="KEEP"), "gold operation 'KEEP'"),
        (_swap("statements", 0, "turn_id", to="D9:9"), "'D9:9', which is missing"),
        (_swap("probes", 0, "needed", to=["s99"]), "'s99', which is no statement"),
        (_swap("probes", 0, "needed", to="s1"), "'needed' in .* is str"),
        (_swap("probes", to=None), "'probes' in .* is NoneType"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    change: Callable[[dict[str, Any]], None], complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "logs.jsonl"
    write_lifelogs(generate_lifelogs(2, 0, SMALL), path)
    lines = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[1])
    change(record)
    path.write_text(f"{lines[0]}\n{json.dumps(record)}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=complaint) as caught:
        read_lifelogs(path)
    assert "logs.jsonl:2" in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "logs.jsonl"
    with pytest.raises(BadInput, match="There is no file"):
        read_lifelogs(path)
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(BadInput, match="holds no life log"):
        read_lifelogs(path)
    path.write_text('{"id": ', encoding="utf-8")
    with pytest.raises(BadInput, match=r"logs\.jsonl:1: not valid JSON"):
        read_lifelogs(path)
    path.write_bytes("日".encode("gb18030"))
    with pytest.raises(BadInput, match="not UTF-8"):
        read_lifelogs(path)
    with pytest.raises(BadInput, match="cannot be written"):
        write_lifelogs(generate_lifelogs(1, 0, SMALL), tmp_path / "no" / "logs.jsonl")
    log = generate_lifelogs(1, 0, SMALL)[0]
    write_lifelogs([log, log], path)
    with pytest.raises(BadInput, match=r"logs\.jsonl:2 has the id"):
        read_lifelogs(path)
