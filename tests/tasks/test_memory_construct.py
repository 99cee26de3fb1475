"""memory-construct from end to end: through the command line, warmed up, stopped and resumed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memograd.cli import main
from memograd.config import load_settings
from memograd.data.lifelog import LifelogSettings, generate_lifelogs, write_lifelogs
from memograd.errors import BadInput, MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.batch import Draw
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.evaluate import evaluate
from memograd.tasks.memory_construct import drawing as memory_construct_drawing
from memograd.tasks.memory_construct import recipe as memory_construct
from memograd.tasks.memory_construct.recipe import cases, settled
from memograd.tasks.memory_construct.settings import ConstructTrainConfig
from memograd.tasks.registry import train


def given_settings(overrides: list[str]) -> ConstructTrainConfig:
    """Settings as typed on the command line."""
    return load_settings(ConstructTrainConfig, None, overrides)


@pytest.fixture(autouse=True)
def small_embedder(monkeypatch: pytest.MonkeyPatch, trigrams) -> None:
    monkeypatch.setattr(memory_construct, "load_embedder", lambda name: trigrams(64))


def config(out: Path, model: Path, **changes: Any) -> ConstructTrainConfig:
    return ConstructTrainConfig.model_validate(
        {
            "model": str(model),
            "device": "cpu",
            "lora": {"r": 4},
            "out": out,
            "steps": 4,
            "save_steps": 2,
            "prompts_per_step": 1,
            "num_generations": 4,
            "max_completion_length": 6,
            "temperature": 1.0,
            "learning_rate": 1e-2,
            "build": {"logs": 2, "eval_logs": 2, "chunks": 2, "first_chunks": 1, "grow_every": 2},
            **changes,
        }
    )


def numbers(run: Path) -> list[dict[str, Any]]:
    rows = RunFolder.open(run).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@pytest.mark.parametrize(
    "credit",
    [
        "local",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("trajectory", "mem_alpha_original")
        ),
    ],
)
def test_resumed_it_equals_the_run_that_never_stopped(
    credit: str,
    tmp_path: Path,
    tiny_model_folder: Path,
    warmed: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = {"logs": 2, "eval_logs": 1, "chunks": 2, "first_chunks": 1, "grow_every": 2}
    given = {"adapter": warmed, "build": {**build, "credit": credit}}
    whole = train(config(tmp_path / "whole", tiny_model_folder, **given))
    told = numbers(whole)
    found = json.loads((whole / "evaluation.json").read_text())
    names = [one["name"] for one in found["methods"]]
    assert names[-3:] == ["untrained", "warm start", "trained"]
    assert found["baseline"] == "warm start"
    assert any(row["grad_norm"] > 0 for row in told)  # or nothing would be compared here
    assert len({row["tokens"] for row in told}) > 1

    real = memory_construct_drawing.ConstructDrawing.__call__

    def breaks(self: Any, scenarios: Any, draw: Draw) -> Any:
        if draw.step == 4:
            raise MemogradError("out of luck")
        return real(self, scenarios, draw)

    cut = tmp_path / "cut"
    with monkeypatch.context() as broken:
        broken.setattr(memory_construct_drawing.ConstructDrawing, "__call__", breaks)
        with pytest.raises(MemogradError, match="out of luck"):
            train(config(cut, tiny_model_folder, **given))
    train(ConstructTrainConfig(resume=cut))
    name = "final/adapter_model.safetensors"
    assert (cut / name).read_bytes() == (whole / name).read_bytes()
    assert numbers(cut) == told
    answers = [json.loads(line) for line in (cut / "answers.jsonl").read_text().splitlines()]
    assert answers == [json.loads(x) for x in (whole / "answers.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_by_the_command_line(
    tmp_path: Path, tiny_model_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["build.logs=2", "build.eval_logs=2", "build.chunks=2", "max_completion_length=4"]
    with pytest.raises(SystemExit) as ended:
        main(["data", "construct-rows", "--out", "rows.jsonl", *small])
    assert ended.value.code == 0 and "4 rows" in capsys.readouterr().out
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [m["role"] for m in rows[0]["messages"]] == ["system", "user", "assistant"]
    assert rows[0]["messages"][2]["content"].startswith(("+", "="))
    arguments = ["train", "memory-construct", "--model", str(tiny_model_folder), *small]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "steps=1", "num_generations=2", "out=run", "device=cpu"])
    assert ended.value.code == 0, capsys.readouterr()
    table = Path("run/evaluation.md").read_text()
    for method in ("nothing", "every turn", "gold keeper", "untrained", "trained"):
        assert f"| {method} |" in table
    found = json.loads(Path("run/evaluation.json").read_text())["methods"]
    asked = {one["name"]: one["metrics"]["answerable"]["n"] for one in found}
    assert len(set(asked.values())) == 1
    mean = {one["name"]: one["metrics"]["answerable"]["mean"] for one in found}
    assert mean["gold keeper"] > mean["nothing"] == 0
    other = tmp_path / "other.jsonl"
    write_lifelogs(generate_lifelogs(1, 77, LifelogSettings(split="test")), other)
    evaluate(Path("run"), Evaluation(other, [], False))
    again = json.loads(Path("run/evaluation-other/evaluation.json").read_text())["methods"]
    assert [one["name"] for one in again] == [one["name"] for one in found]


def test_tools_are_shown_and_read(tmp_path: Path, tiny_model_folder: Path, capsys) -> None:
    """The tiny model's template shows no tools and marks its turns otherwise: refused."""
    build = {"format": "tools", "logs": 2, "eval_logs": 1}
    with pytest.raises(BadInput, match="chat_template"):
        train(config(tmp_path / "run", tiny_model_folder, build=build))
    out = tmp_path / "rows.jsonl"
    memory_construct.warm_start_rows(given_settings(["build.format=tools", "build.logs=1"]), out)
    row = json.loads(out.read_text().splitlines()[0])
    assert len(row["tools"]) == 3 and "<tool_call>" in row["messages"][-1]["content"]


def test_a_chunk_longer_than_a_prompt_may_be_is_refused(
    tmp_path: Path, tiny_model_folder: Path
) -> None:
    with pytest.raises(BadInput, match=r"Chunk 0 of .* more than the 300 .* max_prompt_length"):
        train(config(tmp_path / "run", tiny_model_folder, max_prompt_length=300))
    assert not (tmp_path / "run").exists()


def test_files_of_logs(tmp_path: Path) -> None:
    path, other = tmp_path / "logs.jsonl", tmp_path / "others.jsonl"
    write_lifelogs(generate_lifelogs(3, 1, LifelogSettings(sessions=2)), path)
    write_lifelogs(generate_lifelogs(1, 1, LifelogSettings(sessions=2)), other)
    known, held_out = cases(given_settings([f"data={path}"]))
    assert (len(known), len(held_out)) == (2, 1)
    with pytest.raises(BadInput, match="in common"):
        cases(given_settings([f"data={path}", f"text.eval_data={other}"]))
    with pytest.raises(BadInput, match="holds one case"):
        cases(given_settings([f"data={other}"]))


def test_a_case_that_is_there_twice_is_not_on_both_sides(tmp_path: Path) -> None:
    """Some sets ask each question of a copy of the same conversation."""
    one, other = generate_lifelogs(2, 1, LifelogSettings(sessions=2))
    path, again = tmp_path / "logs.jsonl", tmp_path / "again.jsonl"
    write_lifelogs([one, other, replace(one, id="copy")], path)
    write_lifelogs([replace(one, id="copy")], again)
    known, held_out = cases(given_settings([f"data={path}"]))
    assert [case.id for case in known] == [other.id]
    assert [case.id for case in held_out] == ["copy"]
    with pytest.raises(BadInput, match="copy in common with what is trained on"):
        cases(given_settings([f"data={path}", f"text.eval_data={again}"]))
    write_lifelogs([one, replace(one, id="copy")], path)
    with pytest.raises(BadInput, match="say the same"):
        cases(given_settings([f"data={path}"]))


@pytest.mark.slow
def test_generated_cases_are_of_both_languages_and_apart() -> None:
    known, held_out = cases(given_settings(["build.languages=en,zh", "build.logs=3"]))
    assert sorted(case.language for case in known) == ["en", "en", "zh"]
    assert not {case.id for case in known} & {case.id for case in held_out}
    assert all(len(case.chunks) == 3 for case in known)


def test_the_length_of_cases_grows() -> None:
    build = ConstructTrainConfig.model_validate(
        {"build": {"chunks": 4, "first_chunks": 2, "grow_every": 3}}
    ).build
    assert [build.chunks_at(step) for step in (1, 3, 4, 7, 100)] == [2, 2, 3, 4, 4]
    assert ConstructTrainConfig().build.chunks_at(1) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["resample_rounds=2"], "several groups a case"),
        (["schedules.replay_groups=2"], "several groups a case"),
        (["rewards=exact_match"], "rewards must be one of environment"),
        (["num_generations=1", "advantage=batch"], "at least 2"),
        (["build.first_chunks=9"], "first_chunks=9 is more than chunks=3"),
    ],
)
def test_bad_settings(given: list[str], message: str, capsys) -> None:
    sys.stdout.flush()
    with pytest.raises(SystemExit) as ended:
        main(["train", "memory-construct", *given])
    assert ended.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_small_differences_between_answers_are_not_blown_up_unless_asked_for() -> None:
    def advantage(*given: str) -> str:
        return settled(given_settings(list(given))).advantage

    assert advantage() == "centred"
    assert advantage("advantage=group") == "group"
    assert advantage("build.credit=mem_alpha_original") == "group"
    chosen = given_settings(["algorithm=rloo"])
    assert settled(chosen).advantage == chosen.advantage


def test_training_asks_as_many_questions_as_are_set_and_measuring_what_it_always_asked() -> None:
    few, many = (
        cases(
            load_settings(
                ConstructTrainConfig,
                None,
                ["build.logs=2", "build.eval_logs=1", f"build.questions={share}"],
            )
        )
        for share in (0.34, 2)
    )
    assert sum(len(case.asked) for case in many[0]) > 2 * sum(len(case.asked) for case in few[0])
    assert [case.chunks for case in many[0]] == [case.chunks for case in few[0]]
    assert many[1] == few[1]


def test_rows_do_not_overwrite(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("mine")
    with pytest.raises(BadInput, match="there already"):
        memory_construct.warm_start_rows(ConstructTrainConfig(), tmp_path / "rows.jsonl")
