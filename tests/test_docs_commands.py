"""Every `memograd` command of README and docs exists, with these options and these settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from memograd.cli.app import app
from memograd.config.load import known_settings
from memograd.tasks.registry import TASKS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")]
COMMANDS = typer.main.get_command(app)
KEYS = {f"train {name}": known_settings(TASKS[name].settings) for name in TASKS}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
OF_PAGES = {"letter"}  # the task that docs/tasks.md shows how to make


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command line in the page's blocks, without comments and placeholders."""
    for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language not in ("", "sh", "bash"):
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("memograd "):
                yield shlex.split(line.removesuffix("..."), comments=True)[1:]


def faults(words: list[str]) -> Iterator[str]:
    """What of a command line does not exist."""
    command = COMMANDS
    context = command.context_class(command)
    path: list[str] = []
    while hasattr(command, "get_command") and words and not words[0].startswith("-"):
        path.append(words[0])
        found = command.get_command(context, words[0])
        if found is None:
            if words[0] not in OF_PAGES:
                yield f"no command {' '.join(path)}"
            return
        command, words = found, words[1:]
    known = {name for param in command.get_params(context) for name in param.opts}
    known |= {name for param in command.get_params(context) for name in param.secondary_opts}
    for word in words:
        if word.startswith("--") and word.partition("=")[0] not in known:
            yield f"{' '.join(path)} has no option {word}"
        key, equals, _ = word.partition("=")
        settings = KEYS.get(" ".join(path))
        is_setting = settings and equals and re.fullmatch(r"[a-z_.]+", key)
        if is_setting and not any(f"{one}.".startswith(f"{key}.") for one in settings):
            yield f"{' '.join(path)} has no setting {key}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    found = [fault for words in commands(page) for fault in faults(words)]
    assert found == []


def test_what_does_not_exist_is_found() -> None:
    def said(line: str) -> list[str]:
        return list(faults(line.split()))

    assert said("train memory-qa --data x steps=3 lora.r=2") == []
    assert said("train memory-qb") == ["no command train memory-qb"]
    assert said("train text --dota x") == ["train text has no option --dota"]
    assert said("train text stops=3") == ["train text has no setting stops"]
