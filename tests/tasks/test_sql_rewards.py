"""The rewards on attempts of every kind; above all, on agents that want something for nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.rewards import parse_rewards
from memograd.rewards.signature import needed_columns
from memograd.tasks.sql.attempt import TOOL, read_attempt
from memograd.tasks.sql.rewards import (
    covered,
    evidence,
    execution,
    valid_sql,
)
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.settings import DEFAULT_REWARDS
from memograd.tasks.sql.trajectories import write_call

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
        ("甲乙", ["甲乙丙"], 0.5),
        ("甲乙丙", ["甲乙丙", "丁戊己"], 0.5),
        ("anything", [], 0.0),
        ("anything", ["。"], 0.0),
    ],
)
def test_how_much_of_a_quote_is_covered(answer: str, quotes: list[str], share: float) -> None:
    assert covered(answer, quotes, "") == pytest.approx(share)


@given(st.text(), st.lists(st.text(), max_size=3), st.text())
def test_coverage_is_a_share_and_grows_with_the_answer(
    answer: str, quotes: list[str], question: str
) -> None:
    share = covered(answer, quotes, question)
    assert 0.0 <= share <= 1.0
    assert covered(f"{answer}\n{' '.join(quotes)}", quotes, question) >= share


def test_the_default_specification_names_these_rewards() -> None:
    rewards = parse_rewards(DEFAULT_REWARDS)
    assert [(one.name, one.weight) for one in rewards] == [
        ("execution", 1.0), ("evidence", 0.5), ("valid_sql", 0.1),
    ]  # fmt: skip
    assert all(one.reads_messages for one in rewards)
    assert [one.function for one in rewards] == [execution, evidence, valid_sql]
