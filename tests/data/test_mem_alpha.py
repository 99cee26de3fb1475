from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from memograd.data import ConstructionCase, Question, load_mem_alpha, load_mem_alpha_with_report
from memograd.errors import BadInput


def _row(**changes: Any) -> dict[str, Any]:
    """A row as the published files have it: JSON in text columns, and every trap."""
    return {
        "instance_id": 0,
        "prompt": "I will provide you with chunks.",
        "chunks": json.dumps(["[Dialogue] Ann moved to Oslo.", "  ", "她养了一只猫。"]),
        "questions_and_answers": json.dumps(
            [
                {"question": " Where does Ann live? ", "answer": "Oslo"},
                {"question": "她养了什么？", "answer": ["猫", "一只猫", "猫"]},
                {"question": "How many?", "answer": 1},
                {"question": "", "answer": "x"},
                {"question": "Nothing?", "answer": []},
                {"question": "Unknown?"},
            ]
        ),
        "data_source": "perltqa",
        "metadata": "{}",
        "num_chunks": 3,
        "num_questions": 6,
    } | changes


def _file(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "train.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_a_published_row_becomes_a_case(tmp_path: Path) -> None:
    (case,), report = load_mem_alpha_with_report(_file(tmp_path, [_row()]))
    assert case == ConstructionCase(
        id="train/0",
        source="perltqa",
        chunks=("[Dialogue] Ann moved to Oslo.", "她养了一只猫。"),
        questions=(
            Question("train/0/q0", "Where does Ann live?", "Oslo", "perltqa", ()),
            Question("train/0/q1", "她养了什么？", "猫", "perltqa", (), accepted=("一只猫",)),
            Question("train/0/q2", "How many?", "1", "perltqa", ()),
        ),
    )
    assert report.unasked == ["train/0/q3", "train/0/q4", "train/0/q5"]
    assert report.empty_chunks == [("train/0", 1)]
    assert report.dropped == []


def test_columns_that_are_lists_read_the_same(tmp_path: Path) -> None:
    listed = _row(
        chunks=["One.", "Two."], questions_and_answers=[{"question": "Q?", "answer": "A"}]
    )
    encoded = _row(
        chunks='["One.", "Two."]', questions_and_answers='[{"question": "Q?", "answer": "A"}]'
    )
    assert load_mem_alpha(_file(tmp_path, [listed])) == load_mem_alpha(_file(tmp_path, [encoded]))


def test_rows_with_nothing_to_read_or_ask_are_dropped_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [_row(chunks="[]"), _row(), _row(questions_and_answers="[]", instance_id=0)]
    path = _file(tmp_path, rows)
    cases, report = load_mem_alpha_with_report(path)
    assert [case.id for case in cases] == ["train/1"]
    assert report.dropped == ["train/0", "train/2"]
    with caplog.at_level(logging.WARNING):
        assert load_mem_alpha(path) == cases
    assert "dropped 2 cases" in caplog.text
    assert "dropped 6 questions" in caplog.text
    assert "dropped 2 empty chunks" in caplog.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"chunks": "[1]"}, ["row 0", "chunk 0", "int, not str"]),
        ({"chunks": '{"a": "b"}'}, ["'chunks'", "dict, not list"]),
        ({"chunks": "not JSON"}, ["'chunks'", "row 0", "not valid JSON"]),
        ({"questions_and_answers": '[{"answer": "x"}]'}, ["question 0", "no 'question'"]),
        ({"questions_and_answers": '[["q", "a"]]'}, ["question 0", "list, not dict"]),
        (
            {"questions_and_answers": '[{"question": "q", "answer": {"text": "a"}}]'},
            ["question 0", "'answer'"],
        ),
        ({"data_source": None}, ["'data_source'", "row 0", "NoneType"]),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    tmp_path: Path, changes: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(BadInput) as caught:
        load_mem_alpha(_file(tmp_path, [_row(**changes)]))
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no column 'data_source', 'chunks'"):
        load_mem_alpha(_file(tmp_path, [{"context": "x"}]))
