"""What execution match forgives, and what it does not."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.tasks.sql import compare
from memograd.tasks.sql.compare import Gold, gold_of, matches, normal_value
from memograd.tasks.sql.sandbox import Result, run_cached


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("compare") / "medical.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE drugs_info(id integer, med_name text, dosage text, n real)"
        )
        rows = [
            (1, "阿司匹林", "每日一次", 1.0),
            (2, "华法林", None, 2.5),
            (3, "华法林", "遵医嘱", 2.5),
            (4, "地高辛", "", None),
            (5, "氨氯地平", "每日一次", 0.1 + 0.2),
        ]
        connection.executemany("INSERT INTO drugs_info VALUES (?, ?, ?, ?)", rows)
    return str(path)


def judge(database: str, gold: str, said: str, *columns: str) -> bool:
    return matches(run_cached(database, said), gold_of(database, gold, columns or None))


FROM = "FROM drugs_info"


@pytest.mark.parametrize(
    ("gold", "said", "columns"),
    [
        (f"SELECT id {FROM}", f"SELECT id {FROM} ORDER BY id DESC", ()),
        (f"SELECT id, med_name {FROM}", f"SELECT med_name AS x, id AS y {FROM}", ()),
        (f"SELECT id, dosage {FROM} WHERE id=1", f"SELECT * {FROM} WHERE id=1", ("dosage",)),
        (f"SELECT dosage {FROM} WHERE id=1", "SELECT '每日一次'", ()),
        (f"SELECT dosage {FROM} WHERE id=3", f"SELECT dosage {FROM} WHERE med_name='华法林'", ()),
        (f"SELECT id {FROM} WHERE id=2", "SELECT ' 2.0 '", ()),
        (f"SELECT n {FROM} WHERE id=5", "SELECT 0.3", ()),
        (f"SELECT id {FROM} WHERE id=1", f"SELECT count(*) {FROM} WHERE id=1", ()),
        (f"SELECT id {FROM} WHERE n > 1 LIMIT 1", f"SELECT id {FROM} WHERE id=3", ()),
        (f"SELECT id {FROM} ORDER BY id", f"SELECT id {FROM} ORDER BY id", ()),
    ],
)
def test_forgiven(database: str, gold: str, said: str, columns: tuple[str, ...]) -> None:
    assert judge(database, gold, said, *columns)


@pytest.mark.parametrize(
    ("gold", "said", "columns"),
    [
        (f"SELECT id {FROM} ORDER BY id", f"SELECT id {FROM} ORDER BY id DESC", ()),
        (f"SELECT id {FROM} WHERE id<3", f"SELECT id {FROM} WHERE id<2", ()),
        (f"SELECT id {FROM} WHERE id<3", f"SELECT id {FROM} WHERE id<4", ()),
        (f"SELECT id {FROM} WHERE id<3", "SELECT 1 UNION ALL SELECT 1", ()),
        (f"SELECT med_name {FROM} WHERE id=1", f"SELECT * {FROM} WHERE id=1", ()),
        (f"SELECT id, dosage {FROM} WHERE id=1", f"SELECT id {FROM} WHERE id=1", ("dosage",)),
        (f"SELECT id {FROM} WHERE n > 1 LIMIT 1", f"SELECT id {FROM} WHERE n > 1", ()),
        (f"SELECT id {FROM} WHERE n > 1 LIMIT 1", f"SELECT id {FROM} WHERE id=1", ()),
        (f"SELECT id {FROM} WHERE id=1", f"SELECT id {FROM} WHERE id=99", ()),
        (f"SELECT id {FROM} WHERE id=1", f"SELECT dosage {FROM} WHERE id=4", ()),
        (f"SELECT id {FROM} WHERE id=1", f"SELECT gone {FROM}", ()),
        (f"SELECT n {FROM} WHERE id=5", "SELECT 0.30001", ()),
        # The right values, but in wrong pairs.
        (
            f"SELECT id, med_name {FROM} WHERE id IN (1, 4)",
            "SELECT 1, '地高辛' UNION ALL SELECT 4, '阿司匹林'",
            (),
        ),
    ],
)
def test_not_forgiven(database: str, gold: str, said: str, columns: tuple[str, ...]) -> None:
    assert not judge(database, gold, said, *columns)


BY_ID = f"SELECT id, med_name, dosage {FROM} WHERE id = 3"
SEARCH = f"SELECT id, med_name, dosage {FROM} WHERE dosage LIKE '%一次%' LIMIT 1"


@pytest.mark.parametrize(
    ("gold", "said", "right"),
    [
        (BY_ID, f"SELECT dosage {FROM} WHERE med_name = '华法林'", True),
        (f"SELECT n {FROM} WHERE id = 3", f"SELECT n {FROM} WHERE med_name = '华法林'", True),
        (f"SELECT n {FROM} WHERE id = 3", f"SELECT n {FROM} WHERE med_name = '阿司匹林'", False),
        (f"SELECT n {FROM} WHERE id = 3", f"SELECT n {FROM}", False),
        (f"SELECT n {FROM} WHERE id IN (1, 2)", f"SELECT n {FROM} WHERE id < 4", True),
        (f"SELECT n {FROM} WHERE id IN (1, 2)", f"SELECT n {FROM} WHERE id > 1", False),
        (SEARCH, f"SELECT med_name {FROM} WHERE dosage LIKE '%一次' LIMIT 1", True),
        (SEARCH, f"SELECT id {FROM} WHERE id = 5", True),
        (SEARCH, f"SELECT id {FROM} WHERE id IN (1, 5)", False),
        (SEARCH, f"SELECT med_name {FROM} WHERE id = 4", False),
    ],
)
def test_other_readings_of_a_gold_statement(
    database: str, gold: str, said: str, right: bool
) -> None:
    asked = "n" if gold.startswith("SELECT n") else "dosage"
    assert judge(database, gold, said, asked) is right
    # A question that does not say what it asks about means what its statement says.
    assert not (right and judge(database, gold, said)) or "id IN (1, 2)" in gold


@pytest.mark.parametrize(
    ("gold", "columns", "sentence"),
    [
        (f"SELECT gone {FROM}", None, "fails in .*no such column"),
        (f"SELECT id {FROM} WHERE id=99", None, "finds nothing"),
        (f"SELECT dosage {FROM} WHERE id=2", None, "finds nothing"),
        (f"SELECT id, dosage {FROM} WHERE id=2", ("dosage",), "finds nothing"),
        (f"SELECT id {FROM}", ("dosage",), "has no column dosage"),
        (f"SELECT a.id {FROM} a, drugs_info b, drugs_info c, drugs_info d", None, "more rows"),
    ],
)
def test_gold_that_cannot_be_matched_is_refused(
    database: str, gold: str, columns: tuple[str, ...] | None, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        gold_of(database, gold, columns)


@pytest.mark.parametrize(
    ("value", "normal"),
    [
        (None, None), ("", None), (" \n", None), ("２５ mg", "25 mg"), ("a\n b", "a b"),
        ("3", 3.0), (3, 3.0), ("3e2", 300.0), (b"\x01", "x'01'"), (1 / 3, 0.333333),
        (float("inf"), "inf"), (10**18, 1e18), ("1.2.3", "1.2.3"),
        (1234566.9999999998, 1234567), ("１２３４５６７", 1234567),
        (-0.0, 0), ("9" * 50, int(1e50)),
    ],
)  # fmt: skip
def test_values_are_normalised(value: object, normal: object) -> None:
    assert normal_value(value) == normal  # type: ignore[arg-type]


@given(st.integers(-(10**18), 10**18), st.integers(-(10**18), 10**18))
@example(6901234567892, 6901234000000)  # bar codes, which begin alike
@example(13800138000, 13800138001)
def test_whole_numbers_are_equal_only_digit_by_digit(first: int, second: int) -> None:
    assert (normal_value(first) == normal_value(second)) == (first == second)
    assert (normal_value(str(first)) == normal_value(second)) == (first == second)


cells = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from(["a", "药", "b"]))


@st.composite
def tables(draw: Callable[..., object]) -> list[tuple[object, ...]]:
    width = draw(st.integers(1, 3))
    return draw(  # type: ignore[return-value]
        st.lists(st.tuples(*[cells] * width), min_size=1, max_size=5)  # type: ignore[arg-type]
    )


@given(tables(), st.randoms(use_true_random=False))
def test_order_of_rows_and_columns_does_not_matter(
    table: list[tuple[object, ...]], drawn: random.Random
) -> None:
    names = tuple(f"c{column}" for column in range(len(table[0])))
    rows = tuple(tuple(map(normal_value, row)) for row in table)  # type: ignore[arg-type]
    kept = tuple(row for row in rows if any(cell is not None for cell in row))
    if not kept:
        return
    gold = Gold(kept, kept, ordered=False, exact_columns=True)
    order = list(range(len(names)))
    drawn.shuffle(order)
    mixed = [tuple(row[column] for column in order) for row in table]
    drawn.shuffle(mixed)
    result = Result(names, tuple(mixed))  # type: ignore[arg-type]
    assert matches(result, gold)
    # One value that occurs nowhere else in it breaks the match.
    broken = [list(row) for row in mixed]
    broken[drawn.randrange(len(broken))][drawn.randrange(len(order))] = "another"
    changed = tuple(tuple(row) for row in broken)
    assert not matches(Result(names, changed), gold)  # type: ignore[arg-type]
    assert not matches(Result(names, result.rows, cut=True), gold)
    assert not matches(Result(error="x"), gold)


def test_many_columns_that_nearly_fit_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """27 columns for three: 17,550 ways to choose, of which a bounded number is tried."""
    rows = ((1.0, 2.0, 3.0), (2.0, 3.0, 4.0))
    pool = (*rows, *((number,) * 3 for number in (1.0, 2.0, 3.0)))
    free = Gold(rows, pool, ordered=False, exact_columns=False)
    tried = []
    monkeypatch.setattr(compare, "_same", lambda *judged: tried.append(judged))
    columns = [pair for pair in product((1, 2, 3), repeat=2) for _ in range(3)]
    wide = Result(tuple(map(str, columns)), tuple(zip(*columns, strict=True)))
    assert not matches(wide, free)
    assert len(tried) == compare._TRIES


@pytest.mark.parametrize(
    ("statement", "shows"),
    [
        (f"SELECT med_name {FROM}", True),
        (f"SELECT count(*) {FROM}", True),
        (f"SELECT EXISTS(SELECT 1 {FROM} WHERE id = 1)", True),
        (f"SELECT (SELECT max(id) {FROM})", True),
        (f"WITH a AS (SELECT * {FROM}) SELECT count(*) FROM a", True),
        (f"WITH drugs_info AS (SELECT id FROM main.drugs_info) SELECT id {FROM}", True),
        ("SELECT a.id FROM (drugs_info a JOIN drugs_info b ON a.id = b.id)", True),
        (f'SELECT "MED_NAME" {FROM}', True),
        (f'SELECT "药" FROM (SELECT med_name AS "药" {FROM})', True),
        (f'SELECT "丙" FROM (SELECT "乙" "丙" FROM (SELECT id "乙" {FROM}))', True),
        (f'WITH a("药") AS (SELECT med_name {FROM}) SELECT "药" FROM a', True),
        (f'SELECT d."med_name" {FROM} d', True),
        (f"SELECT max(id) {FROM}", True),
        ("SELECT '每日一次'", False),
        (f"SELECT '每日一次' {FROM}", False),
        (f'SELECT "每日一次" {FROM}', False),
        (f'SELECT "每日一次" AS "每日一次" {FROM}', False),
        (f'SELECT "b" AS "a", "a" AS "b" {FROM}', False),
        (f'SELECT k FROM (SELECT "每日一次" AS k {FROM}) a', False),
        (f"SELECT max('每日一次') {FROM}", False),
        (f'SELECT min("每日一次") {FROM}', False),
        (f"SELECT '每日一次' {FROM} WHERE id = 1 AND med_name IS NOT NULL", False),
        ("WITH a AS (SELECT '每日一次' k) SELECT k FROM a", False),
        (f"SELECT k FROM (SELECT '每日一次' k {FROM})", False),
        ("SELECT column1 FROM (VALUES ('每日一次'))", False),
        ("SELECT value FROM json_each('[1]')", False),
        (f"SELECT value FROM json_each('[1]'), (SELECT 1 {FROM})", False),
        (f"SELECT '每日一次' UNION SELECT '每日一次' {FROM}", False),
    ],
)
def test_a_statement_that_shows_only_its_own_words_finds_nothing(
    database: str, statement: str, shows: bool
) -> None:
    result = run_cached(database, statement)
    assert result.rows
    assert compare.found_something(database, statement, result) is shows


GUESSED = "SELECT dosage FROM drugs_info WHERE id = 3"


@pytest.mark.parametrize(
    ("said", "right"),
    [
        (f"SELECT * {FROM} WHERE id = 3", True),
        (f"SELECT dosage, dosage, '另外', 7 {FROM} WHERE id = 3", True),
        ("SELECT a.dosage, b.dosage FROM drugs_info a, drugs_info b WHERE a.id=3 AND b.id=1",
         False),
        ("SELECT b.dosage x, a.dosage y FROM drugs_info a, drugs_info b WHERE a.id=3 AND b.id=1",
         False),
        (f"SELECT max(CASE id WHEN 1 THEN dosage END), max(CASE id WHEN 3 THEN dosage END) {FROM}",
         False),
        (f"SELECT p, q FROM (SELECT dosage p {FROM} WHERE id=1), (SELECT dosage q {FROM} "
         "WHERE id=3)", False),
        (f"SELECT dosage, (SELECT group_concat(dosage) {FROM}) {FROM} WHERE id=3", True),
        (f"SELECT dosage, med_name, (SELECT '华法林') {FROM} WHERE id=3", True),
    ],
)  # fmt: skip
def test_a_statement_may_not_guess_in_columns(database: str, said: str, right: bool) -> None:
    """The last has all in one cell, where it is the answer that has to choose."""
    assert judge(database, GUESSED, said, "dosage") is right
