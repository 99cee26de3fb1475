"""Every snippet of `docs/memory.md` runs, and its table of settings is complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from memograd.cli import main
from memograd.config import MemorySettings
from memograd.config.memory_settings import ENVIRONMENT

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "memory.md"


def blocks(language: str) -> list[str]:
    text = GUIDE.read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert found, language
    return found


def test_python_blocks_run_in_order(
    bare_environment: Path, chat_server, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", chat_server.url)
    monkeypatch.setenv("OPENAI_MODEL", "test")
    exec(compile("\n".join(blocks("python")), GUIDE, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr()
    assert printed.err == ""
    for said in (
        "User lives in Denver",
        "UPDATE",
        "Rex",
        "peanuts",
        "Noted.",
        "上海",
        "ankle",
        "llm:test",
    ):
        assert said in printed.out, said
    assert "peanuts" in chat_server.requests[0]["messages"][-1]["content"]


def test_commands_run(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In this process; `test_cli_memory.py` starts one."""
    for block in blocks("bash"):
        for line in block.splitlines():
            name, *arguments = shlex.split(line)
            assert name == "memograd"
            with pytest.raises(SystemExit) as ended:
                main(arguments)
            assert ended.value.code == 0, line
        printed = capsys.readouterr()
        assert printed.err == ""
        assert "Boston" in printed.out and "北京" in printed.out


def test_the_table_of_settings_is_complete() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (?:`(\w+)`|\(file or code only\)) \|",
        GUIDE.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert [key for key, _ in rows] == list(MemorySettings.model_fields)
    assert {name: key for key, name in rows if name} == dict(ENVIRONMENT)
