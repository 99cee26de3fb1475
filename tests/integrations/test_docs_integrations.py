"""The examples of `docs/integrations.md` run, in both languages, in order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
SAID = {
    "integrations.md": (
        *("tennis on Sundays", "sport", "四川火锅", "     1\tBob is allergic", "Lisbon"),
        *("plays the cello", "vegetarian", "Maja"),
    ),
    "zh/integrations.md": ("四川火锅", "花生", "成都"),
}


@pytest.mark.parametrize("guide", SAID)
def test_examples_run_in_order(tmp_path: Path, guide: str) -> None:
    text = (DOCS / guide).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.M)
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", "\n".join(blocks)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for said in SAID[guide]:
        assert said in done.stdout, said
