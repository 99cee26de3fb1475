"""The examples of `docs/integrations.md` run, in both languages, in order."""

from __future__ import annotations

import re
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
def test_examples_run_in_order(
    guide: str, bare_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: to load all these frameworks again for each page takes ten seconds."""
    text = (DOCS / guide).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.M)
    exec(compile("\n".join(blocks), guide, "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    for said in SAID[guide]:
        assert said in printed, said
