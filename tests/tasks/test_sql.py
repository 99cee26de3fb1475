"""The SQL agent from end to end: trained, resumed, measured again, warm-started, and bad input.

A random byte model writes no SQL, so what it says is read as one of a few statements, or as an
answer; everything else is real. Real chat templates: `tests/tasks/test_sql_trajectories.py`.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.command_line import run
from tests.tasks.conftest import TEMPLATE

from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.policy.language_model import LanguageModel
from memograd.rollout import environment
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.tool_calls import ToolCall
from memograd.tasks.agent.recipe import AgentJob
from memograd.tasks.registry import train
from memograd.tasks.sql import recipe as sql
from memograd.tasks.sql import tool as attempt
from memograd.tasks.sql.measure import MEASURES
from memograd.tasks.sql.recipe import questions, settled
from memograd.tasks.sql.settings import SqlConfig, SqlTrainConfig
from memograd.warm_start.rows import read_sft_rows
from memograd.warm_start.tokens import IGNORED, sft_sequences

STATEMENTS = (
    "SELECT contraindications FROM drugs_info WHERE med_name = '华法林'",
    "SELECT med_name FROM drugs_info LIMIT 3",
    "SELECT gone FROM disease",
    "SELECT * FROM disease WHERE 0",
)


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are calls or answers, by their letters; most bytes end them."""

    def calls(text: str) -> list[ToolCall]:
        number = sum(map(ord, text))
        statement = STATEMENTS[number // 2 % len(STATEMENTS)]
        return [] if number % 2 else [ToolCall(attempt.TOOL, {"sql": statement})]

    monkeypatch.setattr(LanguageModel, "end_ids", property(lambda self: frozenset(range(60, 258))))
    for module in (environment, attempt):
        monkeypatch.setattr(module, "parse_tool_calls", calls)


def config(out: Path, model: str, **given: Any) -> SqlTrainConfig:
    settings: dict[str, Any] = {
        "model": model, "device": "cpu", "lora": {"r": 2}, "out": str(out), "steps": 2,
        "prompts_per_step": 2, "num_generations": 4, "max_completion_length": 6, "save_steps": 1,
        "episodes": {"max_turns": 3}, "sql": {"max_eval": 2},
    }  # fmt: skip
    return SqlTrainConfig(**{**settings, **given})


@pytest.mark.usefixtures("talkative")
def test_ci_fast_from_the_command_line_and_measured_again(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    code, out, err = run(
        capsys,
        *("train", "sql", "--ci-fast", "--model", model, "device=cpu", "lora.r=2"),
        *(f"out={path}", "max_completion_length=6"),
    )
    assert code == 0, err
    for reward in (
        "execution (built in), weight 1",
        "evidence (built in), weight 0.5",
        "valid_sql",
    ):
        assert f"reward {reward}" in out
    assert "on 168 questions about medical-sample-" in out
    assert "2 held out, at most 4 turns each" in out
    assert RunFolder.open(path).task == "sql"
    (row,) = RunFolder.open(path).read_metrics()
    assert set(row["rewards"]) == {"execution", "evidence", "valid_sql"}
    measured = json.loads((path / "sql.json").read_text())
    assert [one["measure"] for one in measured["measures"]] == list(MEASURES)
    assert {one["n"] for one in measured["measures"]} == {2}
    assert set(measured["seconds_per_question"]) == {"before", "after"}
    page = (path / "evaluation.md").read_text()
    assert "| execution accuracy (n=2) |" in page
    assert "| seconds a question |" in page
    trained_on = {name for name, _ in json.loads((path / "data.json").read_text())["scenarios"]}
    answers = [json.loads(line) for line in (path / "answers.jsonl").read_text().splitlines()]
    assert not trained_on & {answer["id"] for answer in answers}

    code, _, err = run(capsys, "evaluate", "--run", str(path))
    assert code == 0, err
    again = json.loads((path / "sql.json").read_text())
    assert again["measures"] == measured["measures"]

    (tmp_path / "more.jsonl").write_text(
        json.dumps({"question": "几种药？", "sql": "SELECT count(*) FROM drugs_info"})
    )
    code, _, err = run(
        capsys, "evaluate", "--run", str(path), "--data", str(tmp_path / "more.jsonl")
    )
    assert code == 0, err
    more = json.loads((path / "evaluation-more" / "sql.json").read_text())
    assert {one["n"] for one in more["measures"]} == {1}


@pytest.mark.slow  # the life of a run and agents' rows are resumed in test_agent.py
@pytest.mark.usefixtures("talkative")
def test_resumed_it_equals_the_run_that_never_stopped(tmp_path: Path, model: str) -> None:
    whole = train(config(tmp_path / "whole", model))
    train(config(tmp_path / "cut", model, steps=1))
    train(SqlTrainConfig(resume=tmp_path / "cut", steps=2))
    name = "final/adapter_model.safetensors"
    assert (tmp_path / "cut" / name).read_bytes() == (whole / name).read_bytes()
    rows = [
        [
            {k: v for k, v in row.items() if k != "seconds"}
            for row in RunFolder.open(one).read_metrics()
        ]
        for one in (tmp_path / "cut", whole)
    ]
    assert rows[0] == rows[1]
    assert any(row["rewards"]["valid_sql"] for row in rows[0])


@pytest.mark.slow
@pytest.mark.usefixtures("talkative")
def test_a_warm_start_is_measured_apart_from_what_came_before_and_after(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run's end is the second one's warm start, question by question."""
    adapters: dict[str, str | None] = {}
    play = AgentJob.play

    def watched(job: AgentJob, config: Any, label: str) -> Any:
        layer = next(m for m in job.policy.model.modules() if hasattr(m, "lora_A"))
        adapters[label] = None if layer.disable_adapters else layer.active_adapter[0]
        return play(job, config, label)

    monkeypatch.setattr(AgentJob, "play", watched)
    settings: dict[str, Any] = {"learning_rate": 0.3, "warmup_steps": 0, "sql": {"max_eval": 6}}
    first = train(config(tmp_path / "first", model, **settings))
    second = train(config(tmp_path / "second", model, adapter=str(first), **settings))
    began, ended = (json.loads((run / "sql.json").read_text()) for run in (first, second))
    assert list(began["scores"]) == ["before", "after"]
    assert ended["scores"]["warm start"] == began["scores"]["after"]
    assert ended["scores"]["before"] == began["scores"]["before"]
    assert adapters == {"untrained": None, "trained": "default", "warm start": "reference"}
    assert ended["questions"] == began["questions"]
    for one in ended["measures"]:
        gain = one["after"][0] - one["warm_start"][0]
        assert one["gain"][0] == pytest.approx(gain)
    assert set(ended["seconds_per_question"]) == {"before", "warm start", "after"}
    assert "| SQL | before | warm start | after | after - warm start |" in (
        second / "evaluation.md"
    ).read_text("utf-8")

    code, shown, err = run(capsys, "evaluate", "--run", str(second))
    assert code == 0, err
    assert "after - warm start" in shown
    assert json.loads((second / "sql.json").read_text())["scores"] == ended["scores"]


def test_what_the_task_chooses_and_what_is_given() -> None:
    chosen = settled(SqlTrainConfig())
    assert chosen.episodes.environment == "memograd.tasks.sql.tool:SqlEnvironment"
    assert (chosen.episodes.max_turns, chosen.max_completion_length) == (4, 160)
    assert chosen.rewards.startswith("memograd.tasks.sql.rewards:execution:1,")
    given = settled(
        SqlTrainConfig(rewards="length", max_completion_length=9, episodes={"max_turns": 2})  # type: ignore[arg-type]
    )
    assert (given.rewards, given.max_completion_length) == ("length", 9)
    assert given.episodes.max_turns == 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sql": {"database": "other.sqlite"}}, r"no questions about .*other\.sqlite; give some"),
        ({"sql": {"database": "gone.sqlite"}, "data": "asked.jsonl"}, "no database .*gone"),
        ({"data": "gone.jsonl"}, r"There is no file .*gone\.jsonl"),
        ({"data": "asked.jsonl"}, "None of 4 questions can be asked"),
        ({"text": {"eval_data": "same.jsonl"}, "data": "same.jsonl"}, "has the gold statement of"),
        ({"text": {"eval_data": "asks.jsonl"}, "data": "same.jsonl"}, "has the evidence of"),
        ({"rewards": "no_such_reward"}, 'There is no reward "no_such_reward"'),
    ],
)
def test_bad_input_is_one_sentence_and_no_run(
    tmp_path: Path, model: str, given: dict[str, Any], sentence: str, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("other.sqlite")) as connection:
        connection.execute("CREATE TABLE t(x)")
    unanswerable = [{"question": f"{n}?", "sql": f"SELECT x{n} FROM t"} for n in range(5)]
    Path("asked.jsonl").write_text("\n".join(map(json.dumps, unanswerable)))
    passage = {"source_table": "disease", "row_id": 1, "field": "id", "quote": "1"}
    said = {"question": "?", "sql": "SELECT id FROM disease", "evidence": [passage]}
    Path("same.jsonl").write_text(json.dumps(said))
    Path("asks.jsonl").write_text(json.dumps({**said, "sql": "SELECT max(id) FROM disease"}))
    with pytest.raises(BadInput, match=sentence):
        train(config(tmp_path / "run", model, **given))
    assert not (tmp_path / "run").exists()


def test_what_is_shared_with_held_out_questions_is_listed_and_can_be_left_out(
    tmp_path: Path,
) -> None:
    def asked(number: int, row_id: int) -> str:
        quote = {"source_table": "disease", "row_id": row_id, "field": "name", "quote": "1"}
        sql = f"SELECT name FROM disease WHERE id = {row_id} -- {number}"
        return json.dumps({"qid": str(number), "question": "?", "sql": sql, "evidence": [quote]})

    known, held_out = tmp_path / "known.jsonl", tmp_path / "held_out.jsonl"
    known.write_text("\n".join(asked(number, number % 3) for number in range(6)))
    held_out.write_text("\n".join(asked(number, number % 2) for number in range(6, 8)))
    given = SqlTrainConfig(data=known, text={"eval_data": held_out})  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"4 questions .* --apart-from") as refused:
        questions(given)
    for line, other in ((1, 1), (2, 2), (4, 1), (5, 2)):
        assert f"{known}:{line} has the evidence of {held_out}:{other}" in str(refused.value)
    train_on, measured = questions(given.model_copy(update={"sql": SqlConfig(apart_from=held_out)}))
    assert ([one.id for one in train_on], len(measured)) == (["2", "5"], 2)
    with pytest.raises(BadInput, match="nothing is left to train on"):
        questions(given.model_copy(update={"sql": SqlConfig(apart_from=known)}))


@pytest.mark.slow
def test_warm_start_rows_are_learnt_as_episodes_would_say_them(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.jsonl"
    code, shown, err = run(capsys, "sql", "warm-start-rows", "--out", str(out))
    assert code == 0, err
    assert "84 gold attempts at 168 training questions, 100 held out; 0 left out" in shown
    rows = read_sft_rows(out)
    _, held_out = questions(SqlTrainConfig())
    ids = {json.loads(line)["id"] for line in out.read_text().splitlines()}
    assert len(ids) == 84
    assert not ids & {question.id for question in held_out}
    policy = LanguageModel.load(model, device="cpu", lora=SqlTrainConfig().lora)
    chat = ChatIds(policy.tokenizer, end_ids=policy.end_ids)
    row = rows.used[0]
    rows.used[1:] = []
    (sequence,), cut = sft_sequences(policy, rows, 4096)
    assert not cut
    opening = chat.first(row.messages[:2], row.tools).ids
    assert tuple(sequence.input_ids[: len(opening)]) == opening
    learnt = [token for token in sequence.labels if token != IGNORED]
    said = "".join(f"{row.messages[place]['content']}<|end|>" for place in (2, 4))
    assert policy.tokenizer.decode(learnt) == said

    code, _, err = run(capsys, "sql", "warm-start-rows", "--out", str(out))
    assert (code, "is there already" in err) == (2, True)


def test_sft_on_these_rows_begins_a_run(tmp_path: Path, model: str, capsys: Any) -> None:
    out = tmp_path / "rows.jsonl"
    run(capsys, "sql", "warm-start-rows", "--out", str(out), "--share", "0.05")
    code, _, err = run(
        capsys,
        *("sft", "--data", str(out), "--out", str(tmp_path / "sft"), f"model={model}"),
        *("device=cpu", "lora.r=2", "steps=1", "batch_size=2", "max_length=4000"),
    )
    assert code == 0, err
    assert TEMPLATE in (tmp_path / "sft" / "final" / "chat_template.jinja").read_text()


@pytest.mark.slow
def test_the_sample_can_be_written_and_asked_like_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown, err = run(capsys, "sql", "sample", "--out", str(tmp_path / "medical"))
    assert code == 0, err
    folder = tmp_path / "medical"
    assert f"database   {folder / 'medical.sqlite'}\n" in shown
    arguments = ["--db", str(folder / "medical.sqlite"), "--data", str(folder / "questions.jsonl")]
    code, shown, err = run(
        capsys, "sql", "warm-start-rows", "--out", str(tmp_path / "rows.jsonl"), *arguments
    )
    assert (code, "84 gold attempts" in shown) == (0, True), err
    assert run(capsys, "sql", "sample", "--out", str(folder))[0] == 2
    code, _, err = run(capsys, "sql", "sample", "--out", str(folder / "questions.jsonl"))
    assert (code, "questions.jsonl is a file)" in err, len(err.splitlines())) == (2, True, 1)
    code, _, err = run(capsys, "sql", "warm-start-rows", "--out", "x", "--share", "0")
    assert (code, "--share must lie above 0" in err) == (2, True)


@pytest.mark.slow
def test_ci_fast_with_the_packaged_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(
        capsys, "train", "sql", "--ci-fast", "device=cpu", f"out={tmp_path / 'run'}"
    )
    assert code == 0, err
    assert "the built-in one with the same turn marks" in out
    (row,) = RunFolder.open(tmp_path / "run").read_metrics()
    assert row["sampler_gap"] < 1e-3


def test_warm_start_rows_go_wherever_they_can(tmp_path: Path) -> None:
    out = tmp_path / "新 文件夹" / "rows.jsonl"
    sql.warm_start_rows(SqlTrainConfig(), out, 0.1)
    assert out.read_text(encoding="utf-8").count("query_database_by_sql") > 0
    with pytest.raises(BadInput, match="cannot be written"):
        sql.warm_start_rows(SqlTrainConfig(), out / "rows.jsonl", 0.1)
