"""The rewards on attempts of every kind; above all, on agents that want something for nothing."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.rewards.user_code import needed_columns
from memograd.tasks.sql.other_contents import earns
from memograd.tasks.sql.questions import write_call
from memograd.tasks.sql.rewards import (
    covered,
    evidence,
    execution,
    valid_sql,
)
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sandbox import run_cached
from memograd.tasks.sql.tool import TOOL, read_attempt

DATABASE = str(sample_database())
QUOTE = "活动性出血患者禁用。"
ROW = {
    "database": [DATABASE],
    "gold_sql": ["SELECT contraindications FROM drugs_info WHERE med_name = '华法林'"],
    "columns": [["contraindications"]],
    "evidence": [[QUOTE]],
    "question": ["华法林有哪些禁忌？"],
}
RIGHT = ROW["gold_sql"][0]
ROW_COUNT = "SELECT count(med_name) FROM drugs_info"
OTHER = "SELECT dosage FROM drugs_info WHERE med_name = '华法林'"


def conversation(*said: str) -> list[dict[str, str]]:
    """What the assistant says, with a result of the tool after every call."""
    messages = []
    for text in said:
        messages.append({"role": "assistant", "content": text})
        if "<tool_call>" in text:
            messages.append({"role": "tool", "name": TOOL, "content": "..."})
    return messages


def scores(*said: str) -> tuple[float, float, float]:
    completions = [conversation(*said)]
    found: dict[str, Any] = {}
    for function in (execution, evidence, valid_sql):
        columns = {name: ROW[name] for name in needed_columns(function)}
        (found[function.__name__],) = function(completions, **columns)  # type: ignore[operator]
    return found["execution"], found["evidence"], found["valid_sql"]


def test_a_whole_attempt() -> None:
    assert scores(write_call(RIGHT), f"华法林：{QUOTE}") == (1.0, 1.0, 1.0)
    row, half, valid = scores(write_call(RIGHT), "活动性出血的人不能用。")
    assert (row, valid) == (1.0, 1.0)
    assert 0.3 < half < 1.0
    assert scores(write_call(OTHER), "活动性出血患者禁用。") == (0.0, 1.0, 1.0)
    # It found the right rows and went on to others.
    assert scores(write_call(RIGHT), write_call(OTHER), "不知道")[0] == 0.0
    # A failed statement is passed over, and costs validity.
    wrong = write_call("SELECT gone FROM drugs_info")
    assert scores(write_call(RIGHT), wrong, QUOTE) == (1.0, 1.0, 0.5)


@pytest.mark.parametrize(
    "said",
    [
        ("",),
        ("。",),
        ("我不知道。",),
        (QUOTE,),  # the answer without asking
        ("华法林有哪些禁忌？",),
        (write_call(RIGHT),),  # no answer
        (write_call(RIGHT), ""),
        (write_call(RIGHT), "  \n。。。"),
        (write_call(RIGHT), "<think>" + QUOTE),
        (write_call(RIGHT), "<think>" + QUOTE + "</think>"),
        (write_call("SELECT 1"), "我不知道。"),
        (write_call("SELECT NULL"), QUOTE),
        (write_call("SELECT * FROM drugs_info WHERE 0"), QUOTE),
        (write_call("SELECT company_name FROM drugs_info"), QUOTE),
        (write_call("SELECT gone"), QUOTE),
        (write_call("DROP TABLE drugs_info"), QUOTE),
        ('<tool_call>\n{"name": "other", "arguments": {"sql": "SELECT 1"}}\n</tool_call>', QUOTE),
        ("<tool_call>\nSELECT\n</tool_call>", QUOTE),
        (write_call(RIGHT).replace('"sql"', '"query"'), QUOTE),
        (
            f"<tool_call>\n{json.dumps({'name': TOOL, 'arguments': {'sql': 7}})}\n</tool_call>",
            QUOTE,
        ),
        (write_call(RIGHT).replace("</tool_call>", ""), QUOTE),
        ("<think>" + write_call(RIGHT) + "</think>", QUOTE),
    ],
)
def test_nothing_for_nothing(said: tuple[str, ...]) -> None:
    assert scores(*said) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("guess", ["SELECT 135", "VALUES (135)", "SELECT '135' AS 数量"])
def test_a_number_that_was_guessed_is_no_result(guess: str) -> None:
    row = {"database": [DATABASE], "columns": [None]}
    row["gold_sql"] = ["SELECT count(*) FROM drugs_info"]
    counted = conversation(write_call(ROW_COUNT), "共135种")
    assert execution([counted], **row) == [1.0]  # type: ignore[arg-type]
    guessed = conversation(write_call(guess), "共135种")
    assert execution([guessed], **row) == [0.0]  # type: ignore[arg-type]


COUNT = "SELECT count(*) FROM drugs_info"


@pytest.mark.parametrize(
    "guess",
    [
        "SELECT 135 + 0 * id FROM drugs_info LIMIT 1",
        "SELECT 135 + id - id FROM drugs_info LIMIT 1",
        "SELECT iif(id > 0, 135, 4) FROM drugs_info LIMIT 1",
        "SELECT CASE WHEN count(*) > 100 THEN 135 ELSE 0 END FROM drugs_info",
        "SELECT 134 + EXISTS(SELECT 1 FROM drugs_info)",
        "SELECT min(135, id) FROM drugs_info LIMIT 1",
        "SELECT id - 886 FROM drugs_info WHERE id = 1021",
        "SELECT 135 + 0 * rowid FROM main.drugs_info LIMIT 1",
        "/* how many */ SELECT k FROM (SELECT 135 + sign(id) - 1 AS k FROM drugs_info) LIMIT 1",
        "WITH a AS (SELECT * FROM drugs_info) SELECT 135 + 0 * id FROM a LIMIT 1",
        "SELECT 135 + 0 * id FROM disease LIMIT 1",
    ],
)
def test_a_number_that_is_the_same_whatever_the_table_holds_is_no_result(guess: str) -> None:
    result = run_cached(DATABASE, guess)
    assert result.rows == ((135,),)
    row = {"database": [DATABASE], "columns": [None], "gold_sql": [COUNT]}
    guessed = conversation(write_call(guess), "共135种")
    assert execution([guessed], **row) == [0.0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "said",
    [
        COUNT,
        ROW_COUNT,
        "SELECT sum(1) FROM drugs_info AS d",
        "SELECT count(*) + 0 AS 数量 FROM main.drugs_info",
        "WITH a AS (SELECT id FROM drugs_info) SELECT count(id) FROM a",
        "SELECT max(n) FROM (SELECT id, row_number() OVER () n FROM drugs_info)",
        "WITH drugs_info AS (SELECT id FROM main.drugs_info) SELECT count(id) FROM drugs_info",
    ],
)
def test_a_number_may_be_computed_in_any_way(said: str) -> None:
    row = {"database": [DATABASE], "columns": [None], "gold_sql": [COUNT]}
    assert execution([conversation(write_call(said), "共135种")], **row) == [1.0]  # type: ignore[arg-type]


def test_words_known_by_heart_are_no_result_in_whatever_dress() -> None:
    """A guess beside other columns, or in a condition of its own, is not what the table says."""
    (told,) = run_cached(DATABASE, RIGHT).rows[0]
    for shown in (f"'{told}' || substr(id, 1, 0)", f"iif(id > 0, '{told}', med_name), *"):
        guess = write_call(f"SELECT {shown} FROM drugs_info LIMIT 1")
        assert scores(guess, "不知道")[0] == 0.0
    for shown in ("trim(contraindications)", "upper(contraindications), id"):
        asked = write_call(f"SELECT {shown} FROM drugs_info WHERE med_name LIKE '华法林'")
        assert scores(asked, "不知道")[0] == 1.0


def test_a_call_that_would_say_the_same_whatever_the_table_holds_is_not_valid() -> None:
    same = write_call("SELECT 3 + 0 * id FROM drugs_info LIMIT 1")
    assert scores(same, QUOTE) == (0.0, 0.0, 0.0)
    assert scores(write_call("SELECT 3 + id FROM drugs_info LIMIT 1"), QUOTE)[2] == 1.0
    assert scores(write_call("SELECT count(*) FROM drugs_info WHERE id = 7"), QUOTE)[2] == 1.0


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("SELECT contraindications FROM d WHERE med_name = '{name}'", True),
        ("SELECT DISTINCT contraindications p FROM d WHERE med_name LIKE '{name}'", True),
        ("SELECT med_name, contraindications FROM d WHERE med_name = '{name}' AND "
         "contraindications LIKE '%过敏%' AND contraindications <> ''", True),
        ("SELECT contraindications FROM d WHERE contraindications = (SELECT "
         "contraindications FROM d WHERE med_name = '{name}') AND med_name = '{name}'", True),
        ("SELECT contraindications FROM d WHERE contraindications = '{told}' LIMIT 1",
         False),
        ("SELECT med_name, contraindications FROM d WHERE contraindications IN "
         "('{told}') ORDER BY id DESC LIMIT 1", False),
        ("SELECT contraindications FROM d WHERE med_name <> '{name}' AND "
         "contraindications = '{told}' LIMIT 1", False),
        ("SELECT contraindications FROM d WHERE id = {other}", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("columns", [("contraindications",), None])
def test_what_was_guessed_or_stands_in_another_row_as_well_is_no_result(
    said: str, right: bool, columns: tuple[str, ...] | None
) -> None:
    """The table confirms whatever guess is common in it, as "not for the allergic" is."""
    common = (
        "SELECT contraindications, min(id), max(id) FROM drugs_info "
        "GROUP BY 1 HAVING count(*) > 1 AND contraindications LIKE '%过敏%' LIMIT 1"
    )
    told, gold, other = run_cached(DATABASE, common).rows[0]
    name = run_cached(DATABASE, f"SELECT med_name FROM drugs_info WHERE id = {gold}").rows[0][0]
    sql = said.format(told=told, name=name, other=other).replace("FROM d ", "FROM drugs_info ")
    result = run_cached(DATABASE, sql)
    assert any(told in row for row in result.rows)
    gold_sql = f"SELECT contraindications FROM drugs_info WHERE id = {gold}"
    if "med_name, " in sql and columns is None:
        right = False  # a column more than was asked for
    assert earns(DATABASE, sql, result, gold_sql, columns) is right


def test_any_row_of_the_same_name_that_says_the_same_will_do(tmp_path: Path) -> None:
    place = str(tmp_path / "same.sqlite")
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("CREATE TABLE drugs(id integer, med_name text, dosage text)")
        rows = [(1, "甲", "每日一次"), (2, "甲", "每日一次"), (3, "乙", "每日一次")]
        connection.executemany("INSERT INTO drugs VALUES (?, ?, ?)", rows)
    gold = "SELECT dosage FROM drugs WHERE id = 1"
    for condition, right in (("med_name = '甲' ORDER BY id DESC LIMIT 1", True), ("id = 3", False)):
        sql = f"SELECT dosage FROM drugs WHERE {condition}"
        result = run_cached(place, sql)
        assert earns(place, sql, result, gold, ("dosage",)) is right, sql


@pytest.mark.parametrize(
    ("said", "valid"),
    [
        ("SELECT 1 FROM drugs_info WHERE med_name = '华法林'", 1.0),
        ("SELECT '有' FROM drugs_info WHERE med_name = '华法林' AND dosage LIKE '%口服%'", 1.0),
        ("SELECT CASE WHEN dosage LIKE '%口服%' THEN '是' ELSE '否' END FROM drugs_info "
         "WHERE med_name = '华法林'", 1.0),
        ("SELECT 1 FROM drugs_info WHERE med_name = '没有'", 0.0),
        ("SELECT '有' FROM drugs_info", 0.0),
        ("SELECT '有' FROM drugs_info WHERE id > 0 LIMIT 1", 0.0),
        ("SELECT iif(id > 0, 3, 4) FROM drugs_info", 0.0),
    ],
)  # fmt: skip
def test_to_ask_whether_there_is_such_a_row_is_a_valid_call(said: str, valid: float) -> None:
    assert scores(write_call(said), QUOTE)[2] == valid


def test_what_is_right_where_the_gold_finds_nothing_else_is_right() -> None:
    """No contents are others for a count of nothing: equal statements are equal."""
    none = "SELECT coalesce(sum(id), 0) FROM drugs_info WHERE med_name = '没有'"
    row = {"database": [DATABASE], "columns": [None], "gold_sql": [none]}
    assert execution([conversation(write_call(none), "0")], **row) == [1.0]  # type: ignore[arg-type]
    counted = "SELECT count(*) FROM drugs_info WHERE med_name = '没有'"
    row["gold_sql"] = [counted]
    assert execution([conversation(write_call(counted), "0")], **row) == [1.0]  # type: ignore[arg-type]
    guess = conversation(write_call("SELECT 0 * id FROM drugs_info LIMIT 1"), "0")
    assert execution([guess], **row) == [0.0]  # type: ignore[arg-type]


def test_an_attempt_that_was_stopped_after_a_result_has_no_answer() -> None:
    messages = conversation("先查一下", write_call(RIGHT))
    assert read_attempt(messages, DATABASE).answer == ""
    assert read_attempt(messages[:-1], DATABASE).answer == ""
    assert read_attempt("答案", DATABASE).answer == "答案"


def test_repeating_the_question_covers_nothing() -> None:
    question = "阿司匹林的不良反应是胃部不适吗？"
    assert covered(question, ["胃部不适"], question) == 0.0
    assert covered("胃部不适、出血", ["胃部不适、出血"], question) == 1.0


@pytest.mark.parametrize(
    ("answer", "quotes", "share"),
    [
        ("每次 7.5 毫克", ["<p>每次７.５毫克</p>"], 1.0),
        ("take Aspirin daily", ["Aspirin <b>daily</b>"], 1.0),
        ("ab", ["甲乙丙"], 0.0),
        ("甲乙丙丁", ["甲乙丙丁戊己庚"], 0.5),
        ("甲乙丙", ["甲乙丙丁戊己庚"], 2 / 6 / 4),
        ("10 mg a day", ["10mg，day"], 1.0),
        ("甲乙丙", ["甲乙丙", "丁戊己"], 0.5),
        ("anything", [], 0.0),
        ("anything", ["。"], 0.0),
    ],
)
def test_how_much_of_a_quote_is_covered(answer: str, quotes: list[str], share: float) -> None:
    assert covered(answer, quotes, "") == pytest.approx(share)


LONG = (
    "成人每次口服一片，每日三次，饭后半小时用温水送服；儿童用量减半，肝肾功能不全的病人须在医生"
    "指导下调整，连续服用不得超过七天。"
)
WRITTEN = (
    "大人一天吃三回，每回一片，饭后半小时用温水送服；孩子减半。肝肾不好的人要由医生来调整，"
    "最多连着吃七天。"
)


@pytest.mark.parametrize(
    "pasted",
    [
        LONG,
        f"根据查询结果，用法用量如下：\n{LONG}\n请遵医嘱。",
        "\n".join(f"- {LONG[start : start + 9]}" for start in range(0, len(LONG), 9)),
        "，而且还要".join(LONG[start : start + 10] for start in range(0, len(LONG), 10)),
        LONG + "请遵医嘱用药。" * 40,
        "；".join(reversed(LONG.split("；"))),
    ],
    ids=["row", "with words around", "as a list", "with fillers", "with padding", "turned round"],
)
def test_a_pasted_row_earns_less_than_a_written_answer(pasted: str) -> None:
    written = covered(WRITTEN, [LONG], "怎么吃？")
    assert covered(pasted, [LONG], "怎么吃？") < written
    assert covered(f"{WRITTEN}\n{pasted}", [LONG], "怎么吃？") < 0.5


LONGER = (
    f"{LONG}常见恶心呕吐、腹泻便秘、头晕乏力，偶见皮疹瘙痒，停药以后多可自行消失；与抗凝药合用时"
    "出血的危险增加，应当定期检查凝血时间；孕妇及哺乳期妇女禁用，老年人从小剂量开始。"
)
LETTERS = "".join(letter for letter in LONGER if letter.isalnum())
FILLERS = "了的在和也就都把被给"


def _cut(length: int, step: int | None = None) -> list[str]:
    return [LETTERS[start : start + length] for start in range(0, len(LETTERS), step or length)]


def _among(pieces: list[str], word: Callable[[int], str]) -> str:
    return "".join(piece + word(number) for number, piece in enumerate(pieces))


@pytest.mark.parametrize(
    "gamed",
    [
        _among(_cut(3), lambda number: FILLERS[number % 10]),
        _among(_cut(3, 2), lambda number: FILLERS[number % 10]),
        _among(_cut(2, 1), lambda number: FILLERS[number % 10]),
        "、".join(random.Random(0).sample(_cut(3), len(_cut(3)))),
        _among(_cut(22), lambda number: "请您一定要遵照医生的话按时服药有不舒服就去医院看看"),
        _among(_cut(22), lambda number: "".join(chr(0x5000 + 24 * number + n) for n in range(24))),
        _among(_cut(8), lambda number: "".join(chr(0x5000 + 9 * number + n) for n in range(9))),
    ],
    ids=["crumbs", "overlapping", "pairs", "shuffled", "one sentence", "other words", "short"],
)
def test_a_row_in_crumbs_or_with_words_between_is_pasted_too(gamed: str) -> None:
    """Crumbs earned up to 0.97, and stretches with a sentence after each 0.94."""
    assert covered(LONGER, [LONGER], "怎么吃？") < 0.2
    assert covered(gamed, [LONGER], "怎么吃？") < 0.4


def test_a_short_fact_may_be_said_in_the_rows_words() -> None:
    assert covered("每次一片，每日三次。", ["每次一片，每日三次"], "") == 1.0
    assert covered("孕妇禁用", ["孕妇禁用", "孕妇禁用。"], "") == 1.0


def test_other_columns_that_are_said_as_well_cost() -> None:
    others = ["本品为白色药片", "遮光密封保存", "有效期三年", "某某制药有限公司", "可见皮疹头晕"]
    asked, plain = "孕妇禁用", covered("孕妇禁用", ["孕妇禁用"], "", others)
    everything = covered("，".join([asked, *others]), [asked], "", others)
    assert plain == 1.0
    assert everything < 0.5


def test_an_answer_without_end_costs() -> None:
    words = "".join(chr(0x4E00 + number) for number in range(3_000))
    assert covered("孕妇禁用。" + words, ["孕妇禁用"], "") < 0.5


@given(st.text(), st.lists(st.text(), max_size=3), st.text(), st.lists(st.text(), max_size=2))
def test_evidence_is_a_share_whatever_is_said(
    answer: str, quotes: list[str], question: str, rows: list[str]
) -> None:
    assert 0.0 <= covered(answer, quotes, question, rows) <= 1.0


@pytest.mark.parametrize("text", ["的" * 20_000, "ab " * 20_000, "药品" * 10_000])
def test_the_cost_grows_with_the_text_alone(text: str) -> None:
    assert covered(text, [text], "") < 0.05


def test_finding_much_beside_does_not_hide_what_is_pasted() -> None:
    """What was read first filled the room, and rows pasted after it counted as own words."""
    every = "SELECT * FROM drugs_info WHERE med_name = '华法林'"
    row = "".join(str(cell or "") for cell in run_cached(DATABASE, every).rows[0])
    many = [
        f"SELECT printf('%90000d', id), printf('%90000d', id + {n}) FROM drugs_info LIMIT 5"
        for n in range(3)
    ]
    alone = scores(write_call(every), row)
    hidden = scores(*map(write_call, [*many, every]), row)
    assert hidden[1] == pytest.approx(alone[1])
    assert scores(write_call(RIGHT), QUOTE)[1] > 1.5 * alone[1]
