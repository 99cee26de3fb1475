"""Every example of `docs/data.md` works, and its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memograd.data import conversations_jsonl
from memograd.data.catalogue import CATALOGUE

GUIDE = (Path(__file__).resolve().parents[1] / "docs" / "data.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE)
    assert found, language
    return found


def test_the_examples_run_on_the_example_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (data,) = blocks("jsonl")
    Path("mine.jsonl").write_text(data, encoding="utf-8")
    exec("\n".join(blocks("python")), {})
    shown = capsys.readouterr().out
    for words in (
        "alice 3 1",
        "小红 2 1",
        "[2 June 2024] Alice: I moved to Oslo in May.",
        "is answered in the chunks (0,)",
    ):
        assert words in shown


def test_every_key_and_every_set_is_in_a_table() -> None:
    rows = "\n".join(line.split("|")[1] for line in GUIDE.splitlines() if line.startswith("| `"))
    keys = (
        *conversations_jsonl._CONVERSATION_KEYS,
        *conversations_jsonl._TURN_KEYS,
        *conversations_jsonl._QUESTION_KEYS,
    )
    for name in (*keys, *CATALOGUE):
        assert f"`{name}`" in rows, name
    for name, one in CATALOGUE.items():
        (row,) = (line for line in GUIDE.splitlines() if line.startswith(f"| `{name}` |"))
        assert f"| {one.licence} |" in row
        assert f"`{one.loader}`" in row
