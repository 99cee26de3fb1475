"""The calls by hand of docs/serve.md and docs/mcp.md, run as they stand there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from asked import ADMIN, Serving

from memograd.web.running import running

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.S | re.M)


def calls(page: str) -> str:
    """The lines of the page's blocks that ask a server."""
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return "\n".join(block for block in blocks if "curl " in block)


@pytest.mark.parametrize("page", ["serve.md", "zh/serve.md", "mcp.md"])
def test_the_calls_by_hand_are_answered(page: str, serving: Serving, tmp_path: Path) -> None:
    for program in ("bash", "curl", "jq"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
    secret = serving.key("user:alice")
    with running(serving.app) as address:
        text = calls(page).replace("http://127.0.0.1:8322", address)
        loud = 'curl() { command curl -s --fail-with-body "$@"; }'
        begin = f"set -e\nshopt -s expand_aliases\n{loud}\n"
        # A feed has no end: curl leaves it after the seconds of -m, with 28.
        script = begin + text.replace("Last-Event-ID: 0'", "Last-Event-ID: 0' || [ $? = 28 ]")
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "TOKEN": ADMIN, "MEMOGRAD_KEY": secret},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    told = {
        "serve.md": ("Boston", "Kimi", "event: DELETE", '{"imported":0}', "Memory deleted"),
        "zh/serve.md": ("上海",),
        "mcp.md": ('"structuredContent"',),
    }[page]
    assert all(one in done.stdout for one in told), done.stdout
