"""The database and the questions that come with memograd."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memograd.tasks.sql.questions import make_rows, read_questions, split_questions
from memograd.tasks.sql.rewards import QUOTABLE, covered, runs_of
from memograd.tasks.sql.sample import build
from memograd.tasks.sql.sample.build import TABLES, sample_database, write_sample
from memograd.tasks.sql.sample.templates import sample_questions, write_sample_questions
from memograd.tasks.sql.sandbox import Sandbox

FOLDER = Path(build.__file__).parent


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}


def test_it_is_small_and_says_where_it_is_from() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < 150_000
    assert "MIT License" in (FOLDER / "LICENSE-faker-healthcare").read_text("utf-8")


def test_it_is_written_once_and_always_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMOGRAD_CACHE", str(tmp_path / "cache"))
    path = sample_database()
    assert path.parent == tmp_path / "cache"
    made = path.stat().st_mtime_ns
    assert sample_database() == path
    assert path.stat().st_mtime_ns == made
    assert list(path.parent.iterdir()) == [path]
    write_sample(tmp_path / "again.sqlite")
    assert rows_of(tmp_path / "again.sqlite") == rows_of(path)


def test_it_has_the_seed_s_tables_and_columns(shared_data: Path) -> None:
    seed = Sandbox(shared_data / "medical_sql" / "medical.sqlite").tables
    assert Sandbox(sample_database()).tables == seed


def test_every_drug_and_disease_says_what_questions_ask() -> None:
    found = rows_of(sample_database())
    assert {table: len(rows) for table, rows in found.items()} == {
        "drugs_info": 135,
        "disease": 158,
    }
    for table, rows in found.items():
        names = [row[1] for row in rows]
        assert len(set(names)) == len(names)
        filled = {"drugs_info": (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11), "disease": (0, 1, 2, 3, 7, 9)}
        assert all(row[column] for row in rows for column in filled[table])
    assert all(re.search(r"ICD-10编码为[A-Z]\d", str(row[2])) for row in found["disease"])
    aspirin = next(row for row in found["drugs_info"] if row[1] == "阿司匹林")
    assert aspirin[4] == "口服，每次75毫克或300毫克，每日一次。"


def shape(sql: str) -> str:
    return re.sub(r"'[^']*'|\d+", "?", sql)


def test_training_and_test_questions_have_nothing_in_common(tmp_path: Path) -> None:
    write_sample_questions(tmp_path / "sample.jsonl")
    questions = read_questions(tmp_path / "sample.jsonl")
    train, test = split_questions(questions, 0.1)
    assert (len(train), len(test)) == (168, 100)
    assert not {shape(q.sql) for q in train} & {shape(q.sql) for q in test}
    assert not {q.text for q in train} & {q.text for q in test}
    rows = [{(e.table, e.row_id) for q in side for e in q.evidence} for side in (train, test)]
    assert not rows[0] & rows[1]


def test_every_question_can_be_answered_and_its_answer_says_the_evidence(tmp_path: Path) -> None:
    write_sample_questions(tmp_path / "sample.jsonl")
    questions = read_questions(tmp_path / "sample.jsonl")
    rows, left_out = make_rows(questions, Sandbox(sample_database()))
    assert (len(rows), left_out) == (len(questions), [])
    for question in questions:
        quotes = [one.quote for one in question.evidence]
        units = sum(map(len, runs_of(question.answer)))
        if units <= QUOTABLE:
            assert covered(question.answer, quotes, question.text) == 1.0, question
        assert all(quote in question.answer for quote in quotes)


def test_the_questions_are_the_same_every_time() -> None:
    assert sample_questions() == sample_questions()
