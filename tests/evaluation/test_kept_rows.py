"""Verdicts are found again, by another process too; damage is said, a cut-off line is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memograd.errors import BadInput, MemogradError
from memograd.evaluation.judge import kept_verdicts

RIGHT = {"correct": True, "reason": "相同"}


def test_what_was_put_is_found_by_this_and_the_next(tmp_path: Path) -> None:
    path = tmp_path / "new" / "verdicts.jsonl"
    first, beside = kept_verdicts(path), kept_verdicts(path)
    assert first.get("k1") is None
    first.put("k1", RIGHT)
    beside.put("k2", {"correct": False, "reason": ""})
    assert first.get("k1") == RIGHT
    later = kept_verdicts(path)
    assert later.get("k1") == RIGHT
    assert later.get("k2") == {"correct": False, "reason": ""}
    assert "相同" in path.read_text(encoding="utf-8")


def test_a_line_that_a_crash_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    kept_verdicts(path).put("k1", RIGHT)
    with path.open("ab") as file:
        file.write(b'{"key": "k2", "correct": true, "rea')
    again = kept_verdicts(path)
    assert again.get("k2") is None
    again.put("k3", RIGHT)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["key"] for row in rows] == ["k1", "k3"]


@pytest.mark.parametrize(
    "line", ["nonsense", "[1]", '{"correct": true, "reason": ""}', '{"key": "k", "correct": 1}']
)
def test_damage_is_said_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "verdicts.jsonl"
    kept_verdicts(path).put("k1", RIGHT)
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"Line 2 of the judge's verdicts .* is damaged"):
        kept_verdicts(path)


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache = kept_verdicts(tmp_path / "file" / "verdicts.jsonl")
    with pytest.raises(MemogradError, match="cannot be kept in"):
        cache.put("k1", RIGHT)


def test_without_a_file_verdicts_live_as_long_as_the_cache() -> None:
    cache = kept_verdicts(None)
    cache.put("k1", RIGHT)
    assert cache.get("k1") == RIGHT
    assert kept_verdicts(None).get("k1") is None
