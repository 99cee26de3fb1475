"""The Python blocks of docs/memory-measures.md run in their order and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "memory-measures.md"


def test_every_block_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    promised = [
        line.partition("  # ")[2]
        for block in blocks
        for line in block.splitlines()
        if line.startswith("print(") and "  # " in line
    ]
    assert promised[:2] == ["0.25", "[1.0]"]
    assert printed.startswith("0.25\n[1.0]\n")
    assert "strict accuracy 50.0, kind only 100.0" in printed
    assert (tmp_path / "comparison" / "comparison.png").is_file()
