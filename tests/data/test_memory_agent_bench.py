"""MemoryAgentBench's files, and the chunks that its contexts are cut into."""

from __future__ import annotations

import logging
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from memograd.data import (
    Question,
    load_memory_agent_bench,
    load_memory_agent_bench_with_report,
)
from memograd.data.memory_agent_bench import text_chunks
from memograd.errors import BadInput
from memograd.memory.language import estimate_tokens

CONTEXT = "\n".join(f"{n}. Person {n} lives in city {n}. 第{n}个人喜欢喝茶。" for n in range(200))
SCHEMA = pyarrow.schema(
    [
        ("context", pyarrow.string()),
        ("questions", pyarrow.list_(pyarrow.string())),
        ("answers", pyarrow.list_(pyarrow.list_(pyarrow.string()))),
        (
            "metadata",
            pyarrow.struct(
                [
                    ("demo", pyarrow.string()),
                    ("qa_pair_ids", pyarrow.list_(pyarrow.string())),
                    ("question_dates", pyarrow.list_(pyarrow.string())),
                    ("question_ids", pyarrow.list_(pyarrow.string())),
                    ("question_types", pyarrow.list_(pyarrow.string())),
                    ("source", pyarrow.string()),
                ]
            ),
        ),
    ]
)


def _metadata(**changes: Any) -> dict[str, Any]:
    return {
        "demo": "",
        "qa_pair_ids": ["lme_no0", "lme_no1", "lme_no2"],
        "question_dates": ["2023/05/30 (Tue) 23:40", "", "yesterday"],
        "question_ids": ["aa", "bb_abs", "cc"],
        "question_types": ["multi-session", "", "knowledge-update"],
        "source": "longmemeval_s*",
    } | changes


def _row(**changes: Any) -> dict[str, Any]:
    return {
        "context": CONTEXT,
        "questions": [" Where does 7 live? ", "谁不喝茶？", "Who?"],
        "answers": [["city 7", "City Seven", "city 7"], ["没有人"], ["Person 3"]],
        "metadata": _metadata(),
    } | changes


def _file(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "Accurate_Retrieval-00000-of-00001.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=SCHEMA), path)
    return path


def test_a_row_becomes_a_case(tmp_path: Path) -> None:
    path = _file(tmp_path, _row())
    (case,), report = load_memory_agent_bench_with_report(path, chunk_tokens=500)
    name = "Accurate_Retrieval/0"
    assert (case.id, case.source) == (name, "longmemeval_s*")
    assert len(case.chunks) > 5
    assert "".join(case.chunks) == CONTEXT
    assert max(map(estimate_tokens, case.chunks)) <= 500
    assert all(chunk.endswith("\n") for chunk in case.chunks[:-1])
    assert case.questions == (
        Question(
            f"{name}/q0",
            "Where does 7 live?",
            "city 7",
            "multi-session",
            (),
            asked_at=datetime(2023, 5, 30, 23, 40),
            accepted=("City Seven",),
        ),
        Question(f"{name}/q1", "谁不喝茶？", "没有人", "longmemeval_s*", (), adversarial=True),
        Question(f"{name}/q2", "Who?", "Person 3", "knowledge-update", ()),
    )
    assert report.undated == [(f"{name}/q2", "yesterday")]
    assert report.unasked == report.dropped == []


def test_sources_without_types_and_dates(tmp_path: Path) -> None:
    bare = _metadata(question_dates=None, question_types=[], question_ids=None, source="eventqa")
    (case,) = load_memory_agent_bench(_file(tmp_path, _row(metadata=bare)))
    assert [question.category for question in case.questions] == ["eventqa"] * 3
    assert not any(question.adversarial or question.asked_at for question in case.questions)
    assert case.chunks == load_memory_agent_bench(_file(tmp_path, _row()))[0].chunks


def test_what_cannot_be_asked_is_dropped_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    partly = _row(answers=[[], ["没有人"], ["  "]])
    nothing = _row(questions=["", " ", ""])
    path = _file(tmp_path, nothing, partly)
    (case,), report = load_memory_agent_bench_with_report(path)
    assert [question.id for question in case.questions] == ["Accurate_Retrieval/1/q1"]
    assert len(report.unasked) == 5
    assert report.dropped == ["Accurate_Retrieval/0"]
    with caplog.at_level(logging.WARNING):
        load_memory_agent_bench(path)
    assert "dropped 5 questions" in caplog.text
    assert "dropped 1 cases" in caplog.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"answers": [["a"]]}, ["row 0", "3 questions and 1 answers"]),
        ({"metadata": None}, ["'metadata'", "NoneType"]),
        ({"metadata": _metadata(source=None)}, ["'source'", "NoneType"]),
        ({"metadata": _metadata(question_types=["a"])}, ["'question_types'", "1 entries for 3"]),
        ({"context": None}, ["'context'", "NoneType"]),
        ({"context": " \n"}, ["Accurate_Retrieval/0", "no chunk"]),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    tmp_path: Path, changes: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(BadInput) as caught:
        load_memory_agent_bench(_file(tmp_path, _row(**changes)))
    for word in words:
        assert word in str(caught.value)


PIECES = st.sampled_from(
    ["word ", "Yes. ", "\n", "我搬家了。", "好！", "x" * 70, "  ", "\u2028", "字" * 40]
)


@given(st.lists(PIECES | st.text(max_size=9), max_size=60).map("".join), st.integers(16, 80))
def test_joined_they_are_the_text_and_none_is_too_long(text: str, tokens: int) -> None:
    chunks = text_chunks(text, tokens)
    assert "".join(chunks) == text
    assert all(chunk and estimate_tokens(chunk) <= tokens for chunk in chunks)


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("a" * 30 + "\n" + "b" * 30, ["a" * 30 + "\n", "b" * 30]),
        ("He came. " * 6, ["He came. " * 5, "He came. "]),
        ("我搬到了上海。" * 4, ["我搬到了上海。" * 2, "我搬到了上海。" * 2]),
        ("ab cd " * 9, ["ab cd " * 8, "ab cd "]),
        ("x" * 50, ["x" * 48, "xx"]),
        ("short", ["short"]),
        ("", []),
    ],
)
def test_it_is_cut_at_the_best_place(text: str, chunks: list[str]) -> None:
    assert text_chunks(text, 16) == chunks


def test_too_small_a_chunk_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 16"):
        text_chunks("text", 15)
