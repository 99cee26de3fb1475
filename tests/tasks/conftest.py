"""Conversations and logs so small that a run takes seconds, and a model that keeps something."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.command_line import run
from transformers import AutoTokenizer

from memograd.config import LoraConfig, load_settings
from memograd.data import write_conversations_jsonl
from memograd.data.lifelog import Lifelog, LifelogSettings, generate_lifelogs, write_lifelogs
from memograd.tasks.memory_construct.recipe import cases
from memograd.tasks.memory_construct.settings import ConstructTrainConfig
from memograd.tasks.memory_ops.learning.trainer import Decisions, GRPOMemoryTrainer
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs
from memograd.warm_start.settings import SftSettings
from memograd.warm_start.sft import sft

Command = Callable[..., str]

TEMPLATE = (
    "{# <tool_call> #}{% for tool in tools or [] %}{{ tool.function.name }}{% endfor %}"
    "{% for message in messages %}<|start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def given_settings(overrides: list[str]) -> ConstructTrainConfig:
    """Settings as typed on the command line."""
    return load_settings(ConstructTrainConfig, None, overrides)


@pytest.fixture(scope="session")
def model(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The tiny model with a chat template that shows tools."""
    folder = tmp_path_factory.mktemp("tools") / "tiny"
    shutil.copytree(tiny_model_folder, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def command(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `memograd ...` in an empty folder; returns what it printed, or its one sentence."""

    def typed(*arguments: str, code: int = 0) -> str:
        ended, out, error = run(capsys, *arguments)
        assert ended == code, error
        return error if code else out

    return typed


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory, lives) -> Path:
    """Three generated lives `life-7-0` to `life-7-2` with eight questions each, and of their
    turns only those that hold an answer."""
    path = tmp_path_factory.mktemp("data") / "small.jsonl"
    write_conversations_jsonl(lives(3, 7, most=8), path)
    return path


@pytest.fixture(scope="session")
def warmed(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model after it learnt to answer `=` or `+ a`, so that its answers earn different
    rewards."""
    folder = tmp_path_factory.mktemp("warmed")
    known, _ = cases(given_settings(["build.logs=2", "build.eval_logs=1"]))
    rows = [
        {"prompt": chunk.text[-60:], "completion": answer}
        for case in known
        for chunk in case.chunks
        for answer in ("=", "+ a")
    ]
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = SftSettings(
        data=data,
        out=folder / "sft",
        model=str(tiny_model_folder),
        device="cpu",
        lora=LoraConfig(r=4),
        string_prompts="chat",
        epochs=12,
        learning_rate=2e-2,
        warmup_steps=0,
    )
    return sft(settings)


@pytest.fixture(scope="session")
def log_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Five short logs to train on, one to measure on."""
    folder = tmp_path_factory.mktemp("logs")
    paths = []
    for split, count in (("train", 5), ("test", 1)):
        settings = LifelogSettings(split=split, sessions=3, statements_per_session=6)
        paths.append(folder / f"{split}.jsonl")
        write_lifelogs(generate_lifelogs(count, 3, settings), paths[-1])
    return paths[0], paths[1]


@pytest.fixture(scope="session")
def small_logs() -> list[Lifelog]:
    english = LifelogSettings(sessions=4, statements_per_session=7)
    chinese = LifelogSettings(language="zh", sessions=3, statements_per_session=7)
    return [*generate_lifelogs(2, 7, english), *generate_lifelogs(1, 7, chinese)]


@pytest.fixture(scope="session")
def embedded(small_logs: list[Lifelog], trigrams) -> list[EmbeddedLog]:
    return embed_logs(small_logs, trigrams(dimension=64))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A SQLite file of 500 medicines, alone in its folder."""
    folder = tmp_path / "database"
    folder.mkdir()
    path = folder / "medical.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE drugs_info(id integer primary key, med_name text)")
        rows = [(number, f"药 {number} " + "a" * 50) for number in range(500)]
        connection.executemany("INSERT INTO drugs_info VALUES (?, ?)", rows)
    return path


@pytest.fixture
def stopped_in_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Any]:
    """Within `stopped_in_step(n)`, SIGTERM comes while a head learns in its step n."""

    @contextmanager
    def stopped(step: int) -> Iterator[None]:
        learn = GRPOMemoryTrainer.learn

        def interrupted(trainer: GRPOMemoryTrainer, decisions: Decisions) -> dict[str, float]:
            if trainer.step == step - 1:
                signal.raise_signal(signal.SIGTERM)
            return learn(trainer, decisions)

        with monkeypatch.context() as patched:
            patched.setattr(GRPOMemoryTrainer, "learn", interrupted)
            yield

    return stopped
