"""Every snippet of `docs/memory-policy-in-use.md` runs, and its commands are commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memograd.cli import main
from memograd.memory.manager.trained.files import save_head

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "memory-policy-in-use.md"


def blocks(language: str) -> list[str]:
    text = GUIDE.read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert found, language
    return found


@pytest.mark.slow
def test_python_blocks_run_in_order(bare_environment: Path, make_head: Callable[..., Any]) -> None:
    save_head(make_head("e5", 384, add=5.0), bare_environment / "runs" / "first" / "final")
    script = bare_environment / "guide.py"
    script.write_text("\n".join(blocks("python")), encoding="utf-8")
    script.write_text(
        script.read_text(encoding="utf-8").replace("budget=2_000", "budget=1"), encoding="utf-8"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_commands_and_options_exist(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("$ ")]
    assert len(commands) == len(lines) > 8
    for line in commands:
        words = shlex.split(line.removeprefix("$ ").removeprefix("MEMOGRAD_POLICY=policies "))
        assert words[0] == "memograd"
        verbs = words[1 : 3 if words[1] in ("train", "memory", "policy") else 2]
        with pytest.raises(SystemExit) as exit_:
            main([*verbs, "--help"])
        shown = capsys.readouterr().out
        assert exit_.value.code == 0
        for option in (word for word in words if word.startswith("--")):
            assert option in shown, line
