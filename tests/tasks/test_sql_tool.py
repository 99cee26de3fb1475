"""The environment: its tool through real episodes, what it shows, and what it earns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.rollout.async_calls import run_together
from memograd.rollout.environment import EnvironmentTask, describe_tools
from memograd.rollout.types import Message, Scenario
from memograd.tasks.sql.questions import write_call
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sandbox import Result
from memograd.tasks.sql.tool import SqlEnvironment, show_result

GOLD = "SELECT contraindications FROM drugs_info WHERE med_name = '华法林'"


@pytest.fixture
def environment() -> SqlEnvironment:
    made = SqlEnvironment()
    made.reset(str(sample_database()), GOLD, ["contraindications"], answer="unused")
    return made


def test_there_is_one_tool_with_the_seed_s_name() -> None:
    (schema,) = describe_tools(SqlEnvironment())
    function = schema["function"]
    assert function["name"] == "query_database_by_sql"
    assert "SELECT" in function["description"]
    assert list(function["parameters"]["properties"]) == ["sql"]


def test_what_it_answers_and_earns(environment: SqlEnvironment) -> None:
    assert environment.get_reward() == 0.0
    assert environment.query_database_by_sql("DELETE FROM disease") == (
        "查询失败：only SELECT is allowed, not DELETE"
    )
    assert environment.query_database_by_sql(GOLD) == "contraindications\n活动性出血患者禁用。"
    assert environment.get_reward() == 1.0
    environment.query_database_by_sql("SELECT gone")
    environment.query_database_by_sql("SELECT '活动性出血患者禁用。'")
    assert environment.get_reward() == 0.0  # said, not found
    environment.query_database_by_sql(GOLD)
    environment.query_database_by_sql("SELECT gone")
    assert environment.get_reward() == 1.0  # the last statement that ran still counts
    assert "没有找到" in environment.query_database_by_sql("SELECT id FROM disease WHERE 0")
    assert environment.get_reward() == 0.0


@given(st.text())
def test_no_text_makes_it_raise(text: str) -> None:
    made = SqlEnvironment()
    made.reset(str(sample_database()), GOLD)
    assert isinstance(made.query_database_by_sql(text), str)
    assert isinstance(made.query_database_by_sql(f"SELECT {text}"), str)


def test_long_cells_and_long_results_are_cut_with_a_note() -> None:
    long = show_result(Result(("a", "b"), (("x" * 1000, None),)))
    assert long == f"a | b\n{'x' * 300}… | NULL"
    many = show_result(Result(("n",), tuple((number,) for number in range(30))))
    assert many.splitlines()[-1] == "（还有20行没有显示）"
    assert "更多" in show_result(Result(("n",), ((1,),), cut=True))
    wide = show_result(Result(("n",), tuple(("y" * 290,) for _ in range(9))))
    assert len(wide) < 1600
    assert wide.splitlines()[-1] == "（还有3行没有显示）"
    assert show_result(Result(("t", "b"), (("two\nlines", b"\x01"),))).splitlines()[1] == (
        "two lines | 01"
    )


def test_it_plays_as_an_episode() -> None:
    columns = {"database": str(sample_database()), "gold_sql": GOLD, "columns": None, "answer": "x"}
    asked = (Message(role="user", content="华法林有哪些禁忌？"),)
    task = EnvironmentTask(SqlEnvironment, chat_template="<tool_call>")
    right, wrong = task.episodes(Scenario("q", asked, columns), 2)

    def now(work):
        (result,) = run_together([work])
        return result

    for episode in (right, wrong):
        assert [message["content"] for message in episode.reset()] == ["华法林有哪些禁忌？"]
    step = now(right.step(write_call(GOLD)))
    assert step.observation[0]["content"].endswith("活动性出血患者禁用。")
    assert not step.failed_calls
    assert now(right.step("活动性出血的人。")).done
    assert (now(right.finish()), now(wrong.finish())) == (1.0, 0.0)
