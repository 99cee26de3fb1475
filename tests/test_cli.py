"""The command line hands over what was typed, and its exit code says whose turn it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import memograd
from memograd.cli import main
from memograd.config import LoraConfig, known_settings
from memograd.errors import BadInput, MemogradError
from memograd.tasks.base.recipe import Evaluation
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.registry import Task


class Verbs(ModuleType):
    """Stands where the recipes are imported: keeps what it was called with, or raises."""

    def __init__(self) -> None:
        super().__init__("memograd.tasks.memory_qa.recipe")
        self.calls: list[tuple[Any, ...]] = []
        self.error: BaseException | None = None

    def _note(self, *call: Any) -> Path:
        self.calls.append(call)
        if self.error is not None:
            raise self.error
        return Path("runs/one")

    def train(self, config: MemoryQATrainConfig) -> Path:
        return self._note("train", config)

    def evaluate(self, run: Path, asked: Evaluation) -> None:
        self._note("evaluate", run, asked.data, asked.conversations, asked.baselines)

    def demo(self, data: Path | None, steps: int | None, out: Path | None) -> None:
        self._note("demo", data, steps, out)


@pytest.fixture
def verbs(monkeypatch: pytest.MonkeyPatch) -> Verbs:
    stand_in = Verbs()
    for name in ("memory_qa.recipe", "memory_ops.demo", "evaluate"):
        monkeypatch.setitem(sys.modules, f"memograd.tasks.{name}", stand_in)
    monkeypatch.setattr(Task, "train", lambda task, settings: stand_in.train(settings))
    return stand_in


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


# What is handed over


def test_train_merges_file_options_and_settings(
    verbs: Verbs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text('steps = 5\nseed = 4\ntrain = ["conv-1"]')
    code = exit_code(
        *("train", "memory-qa", "--config", str(file), "--data", "对话.json"),
        *("--train", "conv-26,conv-41", "--eval", "conv-30", "steps=7", "lora.r=32"),
    )
    assert code == 0
    [(_, config)] = verbs.calls
    assert config == MemoryQATrainConfig(
        data=Path("对话.json"),
        train=["conv-26", "conv-41"],
        eval=["conv-30"],
        steps=7,
        seed=4,
        lora=LoraConfig(r=32),
    )
    assert "runs/one" in capsys.readouterr().out


def test_train_without_anything_takes_the_defaults(verbs: Verbs) -> None:
    assert exit_code("train", "memory-qa") == 0
    assert verbs.calls == [("train", MemoryQATrainConfig())]


def test_evaluate(verbs: Verbs) -> None:
    assert exit_code("evaluate", "--run", "runs/a") == 0
    typed = ("--run", "runs/a", "--data", "d.json", "--conversation", "conv-30, conv-26")
    assert exit_code("evaluate", *typed, "--baselines") == 0
    assert verbs.calls == [
        ("evaluate", Path("runs/a"), None, [], False),
        ("evaluate", Path("runs/a"), Path("d.json"), ["conv-30", "conv-26"], True),
    ]


def test_demo(verbs: Verbs) -> None:
    assert exit_code("demo") == 0
    assert exit_code("demo-lm", "--steps", "3", "--data", "d.json", "--out", "here") == 0
    assert verbs.calls == [
        ("demo", None, None, None),
        ("demo", Path("d.json"), 3, Path("here")),
    ]


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*arguments) == 0
    assert capsys.readouterr().out.strip() == memograd.__version__


# Exit codes


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput("There is no run folder runs/a."), 2),
        (MemogradError("The checkpoint could not be written."), 1),
    ],
)
def test_explained_failure_is_one_sentence_on_stderr(
    verbs: Verbs, capsys: pytest.CaptureFixture[str], error: MemogradError, code: int
) -> None:
    verbs.error = error
    assert exit_code("evaluate", "--run", "runs/a") == code
    captured = capsys.readouterr()
    assert captured.err == f"memograd: {error}\n"
    assert captured.out == ""


def test_interrupt_is_130(verbs: Verbs) -> None:
    verbs.error = KeyboardInterrupt()
    assert exit_code("demo") == 130


def test_a_bug_keeps_its_traceback(verbs: Verbs) -> None:
    verbs.error = ZeroDivisionError("a bug")
    with pytest.raises(ZeroDivisionError):
        main(["demo"])


def test_a_wrong_setting_is_2(verbs: Verbs, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("train", "memory-qa", "step=3") == 2
    message = "memograd: Unknown key 'step' in the command line: did you mean steps"
    assert capsys.readouterr().err.startswith(message)
    assert verbs.calls == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate"],
        ["demo", "--steps", "0"],
        ["demo", "--steps", "many"],
        ["train", "memory-qa", "--steps", "3"],
        ["dance"],
        [],
        ["train"],
    ],
)
def test_wrong_usage_is_2(
    verbs: Verbs, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert exit_code(*arguments) == 2
    assert verbs.calls == []
    told = capsys.readouterr().err
    if arguments not in ([], ["train"]):  # these print the help
        assert told.startswith("memograd: ") and told.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--prt", "1"], "memograd: No such option: --prt"),
        (["serve", "--port", "70000"], "memograd: Invalid value for '--port'"),
        (["serve", "keys", "creat", "x"], "memograd: No such command 'creat'"),
        (["memory", "search"], "memograd: Missing argument"),
        (["mcp", "install", "emacs", "--force"], "memograd: No such option: --force"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert exit_code(*arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith(said) and told.count("\n") == 1


# Help


@pytest.mark.parametrize(
    "command",
    [
        *([], ["train"], ["train", "memory-qa"], ["train", "text"]),
        *(["evaluate"], ["demo"], ["version"]),
    ],
)
def test_help_says_the_exit_codes(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*command, "--help") == 0
    out = capsys.readouterr().out
    assert "Exit codes:\n    0    done\n" in out
    if command not in (["train"], ["version"]):
        assert f"Examples:\n    memograd {' '.join(command)}" in out


def test_help_of_train_lists_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    exit_code("train", "memory-qa", "--help")
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    for key, field in known_settings(MemoryQATrainConfig).items():
        assert any(line.startswith(f"{key}=") for line in lines), key
        assert " ".join((field.description or "").split()) in lines


def test_the_process_exits_with_the_code_and_help_loads_nothing_heavy() -> None:
    def run(*arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *options, "-m", "memograd", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    wrong = run("train", "memory-qa", "steps=0")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.count("\n") == 1

    shown = run("train", "memory-qa", "--help", options=("-X", "importtime"))
    assert shown.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & {"torch", "transformers", "pymilvus", "sentence_transformers", "nltk"}
