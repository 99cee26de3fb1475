"""Bad input through the real command line: exit code 2, one sentence, and nothing left behind."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from memograd.cli import main
from memograd.config import TrainConfig
from memograd.data import load_conversations_jsonl, write_conversations_jsonl
from memograd.grpo import RunFolder


@pytest.fixture
def data(tmp_path, small_data) -> Path:
    return Path(shutil.copy(small_data, tmp_path / "data.jsonl"))


def run(arguments: list[str], capsys) -> tuple[int, str]:
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    return int(exit_info.value.code or 0), capsys.readouterr().err


def train(data: Path, *settings: str) -> list[str]:
    out = data.parent / "run"
    return ["train", "memory-qa", "--data", str(data), f"out={out}", "steps=1", *settings]


def check(arguments: list[str], capsys, *pieces: str) -> None:
    code, error = run(arguments, capsys)
    assert code == 2
    sentence = error.strip()
    assert sentence.startswith("memograd: ") and len(sentence.splitlines()) == 1
    for piece in pieces:
        assert piece in sentence


def test_a_missing_file(tmp_path, capsys) -> None:
    check(train(tmp_path / "gone.json"), capsys, "gone.json")
    assert not (tmp_path / "run").exists()


def test_a_truncated_file(data, capsys) -> None:
    data.write_text(data.read_text()[:1000])
    check(train(data), capsys, "data.jsonl", "not valid JSON")
    assert not (data.parent / "run").exists()


def test_a_conversation_that_is_not_there(data, capsys) -> None:
    arguments = [*train(data), "--train", "life-7-0", "--eval", "conv-99"]
    check(arguments, capsys, "'conv-99'", "life-7-0, life-7-1")
    assert not (data.parent / "run").exists()


def test_one_conversation_for_both(data, capsys) -> None:
    arguments = [*train(data), "--train", "life-7-0", "--eval", "life-7-0"]
    check(arguments, capsys, "more than once")


def test_an_unknown_key(data, capsys) -> None:
    check(train(data, "learning_rat=1"), capsys, "learning_rat", "learning_rate")


@pytest.mark.parametrize("value", ["0", "-1", "fast", "nan"])
def test_a_value_out_of_range(data, capsys, value: str) -> None:
    check(train(data, f"learning_rate={value}"), capsys, "learning_rate", value)


def test_a_model_folder_that_does_not_exist(data, capsys) -> None:
    check(train(data, "model=./no-model-here"), capsys, "./no-model-here", "does not exist")
    assert not (data.parent / "run").exists()


def test_a_run_folder_that_exists_already(data, capsys) -> None:
    (data.parent / "run").mkdir()
    (data.parent / "run" / "mine.txt").write_text("keep me")
    check(train(data), capsys, "not empty", "resume=")
    assert (data.parent / "run" / "mine.txt").read_text() == "keep me"


def test_resuming_what_is_no_run(data, capsys) -> None:
    check(["train", "memory-qa", f"resume={data.parent / 'nothing'}"], capsys, "no run folder")


def test_a_prompt_longer_than_the_context(data, tiny_model_folder, capsys) -> None:
    """A question that alone exceeds the context is named by its id."""
    first, *others = data.read_text().splitlines()
    content = json.loads(first)
    content["questions"][1] |= {"id": "why", "question": "why? " * 999 + "why?"}
    data.write_text("\n".join([json.dumps(content), *others]))
    settings = [f"model={tiny_model_folder}", "device=cpu", "lora.r=2"]
    check(train(data, *settings), capsys, "question why takes", "tokens")


@pytest.mark.slow
def test_a_question_without_evidence_is_an_ordinary_question(
    data, tiny_model_folder, capsys
) -> None:
    told = [
        replace(one, questions=tuple(replace(asked, evidence=()) for asked in one.questions))
        for one in load_conversations_jsonl(data)
    ]
    write_conversations_jsonl(told, data)
    settings = [f"model={tiny_model_folder}", "lora.r=2", "num_generations=2", "device=cpu"]
    settings += ["max_completion_length=2", "memory.top_k=1", "memory.embedder=minilm"]
    settings += ["prompts_per_step=2"]
    code, _ = run(train(data, *settings), capsys)
    assert code == 0


def test_a_run_of_another_task_is_not_gone_on_with(tmp_path, capsys) -> None:
    """Nor are its settings written anew."""
    begun = TrainConfig(steps=3, device="cpu").model_dump_json()
    folder = RunFolder.create(tmp_path / "text-run", begun, task="text")
    arguments = ["train", "memory-qa", f"resume={folder.path}", "steps=9"]
    check(arguments, capsys, "is a run of text, not of memory-qa; go on with it by the command")
    assert folder.config_json == begun
