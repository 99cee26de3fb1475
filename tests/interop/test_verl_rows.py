"""Rows for verl, and the reward that verl would ask for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memograd.errors import BadInput
from memograd.interop.scoring import as_said
from memograd.interop.verl import compute_score, verl_rows, write_verl
from memograd.tasks.sql.questions import make_rows, read_questions
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sample.templates import write_sample_questions
from memograd.tasks.sql.sandbox import Sandbox
from memograd.tasks.text.rows import TextRow

ROWS = [
    TextRow("a", "1+1?", {"id": "a", "answer": "2"}, "f:1"),
    TextRow("b", ({"role": "user", "content": "药名?"},), {"id": "b", "answer": "二甲双胍"}, "f:2"),
]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_rows_come_back_and_are_scored(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    write_verl(verl_rows(ROWS, "mem0_f1"), path)
    if ending == "jsonl":
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    else:
        from pyarrow import parquet

        rows = parquet.read_table(path).to_pylist()
    assert [row["prompt"][0]["content"] for row in rows] == ["1+1?", "药名?"]
    for row in rows:
        truth = row["reward_model"]["ground_truth"]
        for said, worth in ((truth, 1.0), ("no", 0.0)):
            earned = compute_score(row["data_source"], said, truth, row["extra_info"])
            assert earned == worth


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    rows = verl_rows(ROWS, "mem0_f1")
    with pytest.raises(BadInput, match=r"must end in \.parquet or \.jsonl"):
        write_verl(rows, tmp_path / "rows.csv")
    write_verl(rows, tmp_path / "rows.jsonl")
    with pytest.raises(BadInput, match="is there already"):
        write_verl(rows, tmp_path / "rows.jsonl")
    with pytest.raises(BadInput, match="There is no reward"):
        verl_rows(ROWS, "no_such_reward")
    with pytest.raises(BadInput, match="get_reward"):
        verl_rows(ROWS, "environment")


def test_calls_beside_the_text_are_put_into_it() -> None:
    flat = {"role": "assistant", "tool_calls": [{"name": "ask", "arguments": '{"药": 7}'}]}
    nested = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"name": "ask", "arguments": {"药": 7}}}],
    }
    [one], [other] = as_said([flat]), as_said([nested])
    assert one == other
    assert one["content"] == '<tool_call>\n{"name": "ask", "arguments": {"药": 7}}\n</tool_call>'
    assert as_said([one]) == [one]


def test_questions_of_the_sql_agent_are_rows_too(tmp_path: Path) -> None:
    write_sample_questions(tmp_path / "sample.jsonl")
    questions = read_questions(tmp_path / "sample.jsonl")[:3]
    rows, _ = make_rows(questions, Sandbox(sample_database()))
    [first, *_] = verl_rows(rows, "memograd.tasks.sql.rewards:execution")
    assert compute_score("sql", "不知道", "", first["extra_info"]) == 0.0


@pytest.mark.parametrize(("trainer", "name"), [("verl", "rows.jsonl"), ("verifiers", "our_tasks")])
def test_the_command_writes_them(tmp_path: Path, trainer: str, name: str) -> None:
    from typer.testing import CliRunner

    from memograd.cli.app import app

    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps({"prompt": "1+1?", "answer": "2"}), encoding="utf-8")
    given = ["--data", str(data), "--rewards", "mem0_f1", "--out", str(tmp_path / name)]
    done = CliRunner().invoke(app, ["data", "export", trainer, *given])
    assert (done.exit_code, "1 rows in" in done.output) == (0, True), done.output
    assert (tmp_path / name).exists()
    assert isinstance(
        CliRunner().invoke(app, ["data", "export", trainer, *given]).exception, BadInput
    )
