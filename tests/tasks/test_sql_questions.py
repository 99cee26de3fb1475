"""Reading questions, splits that leak nothing, and which questions become rows."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.quick import quick

from memograd.errors import BadInput
from memograd.tasks.sql.questions import (
    Evidence,
    SqlQuestion,
    describe_schema,
    first_by_hash,
    make_rows,
    read_questions,
    split_questions,
    statement_by_name,
    system_prompt,
)
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sandbox import Sandbox

LINE = {
    "qid": "q1",
    "task_type": "drug_field",
    "question": "华法林有哪些禁忌？",
    "sql": ["\n  SELECT contraindications\n FROM drugs_info WHERE id = 7\n"],
    "evidence": [
        {"source_table": "drugs_info", "row_id": 7, "field": "contraindications", "quote": "出血。"}
    ],
    "meta": {"entity": {"drug_name": "华法林", "drug_id": 7}},
    "ground_truth": "活动性出血者禁用。",
}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n", encoding="utf-8")
    return path


def asked(number: int, *rows: int, sql: str | None = None) -> SqlQuestion:
    evidence = tuple(Evidence("drugs_info", str(row), "dosage", "x") for row in rows)
    return SqlQuestion(f"q{number}", "?", sql or f"SELECT {number}", evidence, "a")


def test_a_line_becomes_a_question(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", LINE)
    (question,) = read_questions(path)
    assert question.sql == "SELECT contraindications FROM drugs_info WHERE id = 7"
    assert question.columns == ("contraindications",)
    assert question.names == {"7": "华法林"}
    assert (question.answer, question.kind, question.split) == (
        "活动性出血者禁用。", "drug_field", None,
    )  # fmt: skip
    packed = tmp_path / "q.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_questions(packed)[0].text == question.text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"question": " "}, 'q.jsonl:1: "question" must be a text'),
        ({"sql": []}, '"sql" must be a text'),
        ({"sql": ["SELECT 1", "SELECT 2"]}, '"sql" must be a text'),
        ({"ground_truth": 3}, '"ground_truth" must be a text'),
        ({"evidence": [{"quote": "x"}]}, "needs source_table, row_id, field and quote"),
        ({"split": "dev"}, "must be train or test, not 'dev'"),
    ],
)
def test_a_line_that_is_no_question(tmp_path: Path, change: Any, sentence: str) -> None:
    path = write(tmp_path / "q.jsonl", {**LINE, **change})
    with pytest.raises(BadInput, match=sentence):
        read_questions(path)


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT  a\nFROM t", "SELECT a FROM t"),
        ("SELECT a -- names\nFROM t", "SELECT a -- names\nFROM t"),
        (
            "SELECT a FROM t\n WHERE b =  'two  spaces\n'",
            "SELECT a FROM t WHERE b = 'two  spaces\n'",
        ),
        ("SELECT 'it''s  so',  1", "SELECT 'it''s  so', 1"),
    ],
)
def test_a_gold_statement_keeps_its_meaning(tmp_path: Path, sql: str, read: str) -> None:
    [question] = read_questions(write(tmp_path / "q.jsonl", {**LINE, "sql": sql}))
    assert question.sql == read


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"a":' * 5_000, json.dumps({**LINE, "question": "\ud83d"})]
)
def test_hostile_lines_are_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(json.dumps(LINE) + "\n" + line + "\n")
    with pytest.raises(BadInput, match=r"q.jsonl:2: not valid JSON"):
        read_questions(file)


def test_a_damaged_archive_is_said_to_be_one(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl.gz"
    file.write_bytes(gzip.compress(b"{}")[:10] + b"\x07" * 20)
    with pytest.raises(BadInput, match="cut off"):
        read_questions(file)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no file"):
        read_questions(tmp_path / "gone.jsonl")
    (tmp_path / "bad.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(BadInput, match="cannot be unpacked"):
        read_questions(tmp_path / "bad.jsonl.gz")
    with pytest.raises(BadInput, match="holds no question"):
        read_questions(write(tmp_path / "empty.jsonl"))
    with pytest.raises(BadInput, match="not valid JSON"):
        (tmp_path / "text.jsonl").write_text("hello")
        read_questions(tmp_path / "text.jsonl")
    with pytest.raises(BadInput, match="the id q1 is that of"):
        read_questions(write(tmp_path / "twice.jsonl", LINE, LINE))
    with pytest.raises(BadInput, match="has no split, but other"):
        read_questions(
            write(tmp_path / "some.jsonl", {**LINE, "split": "test"}, {**LINE, "qid": 2})
        )


@pytest.mark.parametrize("seed", range(5))
def test_no_evidence_row_is_on_both_sides(seed: int) -> None:
    drawn = random.Random(seed)
    questions = [asked(n, *drawn.sample(range(80), drawn.randint(1, 3))) for n in range(60)]
    train, held_out = split_questions(questions, 0.2)
    assert sorted(train + held_out, key=questions.index) == questions
    assert len(held_out) >= 12
    rows = [{one.row_id for q in side for one in q.evidence} for side in (train, held_out)]
    assert not rows[0] & rows[1]
    mixed = questions.copy()
    drawn.shuffle(mixed)
    assert {q.id for q in split_questions(mixed, 0.2)[1]} == {q.id for q in held_out}


def test_the_same_statement_is_not_on_both_sides() -> None:
    questions = [asked(n, sql=f"SELECT {n // 2}") for n in range(20)]
    for side in split_questions(questions, 0.3):
        assert all(sum(other.sql == q.sql for other in side) == 2 for q in side)


def test_what_the_file_says_wins_and_nothing_to_train_on_is_refused() -> None:
    named = [
        SqlQuestion(f"q{n}", "?", "SELECT 1", (), "a", split="test" if n == 2 else "train")
        for n in range(4)
    ]
    assert [q.id for q in split_questions(named, 0.5)[1]] == ["q2"]
    assert split_questions(named, 0.0) == (named, [])
    with pytest.raises(BadInput, match="leaves none to train on"):
        split_questions([asked(1, 5), asked(2, 5)], 0.5)


def test_some_by_hash_are_the_same_in_any_order() -> None:
    questions = [asked(n) for n in range(30)]
    chosen = first_by_hash(questions, 10)
    assert len(chosen) == 10
    assert set(first_by_hash(questions[::-1], 10)) == set(chosen)
    assert first_by_hash(questions, 99) == questions


@pytest.mark.parametrize(
    ("sql", "names", "written"),
    [
        ("SELECT dosage FROM drugs_info WHERE id = 7", {"7": "O'x"},
         "SELECT dosage FROM drugs_info WHERE med_name = 'O''x'"),
        ("SELECT id, treatment FROM disease WHERE id IN (1, 2) LIMIT 3", {"1": "癌", "2": "炎"},
         "SELECT id, treatment FROM disease WHERE disease_name IN ('癌', '炎') LIMIT 3"),
        ("SELECT 1 FROM disease WHERE id IN (1, 2)", {"1": "癌"}, None),
        ("SELECT 1 FROM disease WHERE id = 1", None, None),
        ("SELECT 1 FROM disease WHERE treatment LIKE '%x%'", {"1": "癌"}, None),
    ],
)  # fmt: skip
def test_gold_statements_by_name(sql: str, names: Any, written: str | None) -> None:
    question = SqlQuestion("q", "?", sql, (), "a", names=names)
    assert statement_by_name(question) == (written or sql)


def test_the_seed_s_own_questions_split_without_leaks(shared_data: Path) -> None:
    questions = read_questions(shared_data / "medical_sql" / "questions_dev.jsonl.gz")
    assert len(questions) == 666
    train, held_out = split_questions(questions, 0.2)
    rows = [
        {(one.table, one.row_id) for q in side for one in q.evidence} for side in (train, held_out)
    ]
    assert (len(train), len(held_out)) == (531, 135)
    assert not rows[0] & rows[1]


def test_every_table_and_column_is_named_once() -> None:
    sandbox = Sandbox(sample_database())
    lines = describe_schema(sandbox.tables).splitlines()
    assert len(lines) == len(sandbox.tables) == 2
    for line, table in zip(lines, sandbox.tables, strict=True):
        title, _, columns = line.partition("：")
        assert title.startswith(f"{table.name}（")
        named = [part.split(" ")[0] for part in columns.split("，")]
        assert named == [name for name, _ in table.columns]
        assert all(len(part.split(" ")) == 2 for part in columns.split("，"))
    assert "contraindications 禁忌" in system_prompt(sandbox)


def test_tables_that_we_do_not_know_have_their_types(tmp_path: Path) -> None:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE orders(id INTEGER, price REAL, note)")
    assert describe_schema(Sandbox(path).tables) == "orders：id integer，price real，note"


def test_questions_that_find_nothing_are_left_out_with_the_reason() -> None:
    sandbox = Sandbox(sample_database())
    good = SqlQuestion("good", "?", "SELECT id FROM disease WHERE id = 1", (), "一")
    empty = SqlQuestion("empty", "?", "SELECT id FROM disease WHERE id = 0", (), "无")
    broken = SqlQuestion("broken", "?", "SELECT id FROM diseases", (), "无")
    rows, left_out = make_rows([empty, good, broken], sandbox)
    (row,) = rows
    assert [message["role"] for message in row.prompt] == ["system", "user"]  # type: ignore[index]
    assert row.columns["gold_sql"] == good.sql
    assert row.columns["columns"] is None
    assert len(row.columns["database_sha256"]) == 64
    assert [(one.id, one.reason.rpartition(" finds nothing")[1]) for one in left_out] == [
        ("empty", " finds nothing"), ("broken", ""),
    ]  # fmt: skip
    with pytest.raises(BadInput, match="None of 1 questions can be asked"):
        make_rows([empty], sandbox)


@pytest.mark.parametrize(("every", "count"), quick([(6, 111), (1, 666)], (0,)))
def test_the_seed_s_questions_can_all_be_asked(shared_data: Path, every: int, count: int) -> None:
    folder = shared_data / "medical_sql"
    questions = read_questions(folder / "questions_dev.jsonl.gz")[::every]
    rows, left_out = make_rows(questions, Sandbox(folder / "medical.sqlite"))
    assert (len(rows), left_out) == (count, [])


@pytest.mark.slow
def test_public_databases_of_other_kinds_work_too(shared_data: Path, tmp_path: Path) -> None:
    """Eleven databases of every day: the sandbox opens them, and their schemas can be shown."""
    for script in sorted((shared_data / "defog" / "sqlite_sql").glob("*.sql")):
        path = tmp_path / f"{script.stem}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script.read_text("utf-8"))
        sandbox = Sandbox(path)
        for table in sandbox.tables:
            assert sandbox.run(f'SELECT * FROM "{table.name}" LIMIT 2').error is None
