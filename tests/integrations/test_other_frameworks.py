"""The examples of frameworks that cannot share our environment, each run in one of its own.

`AUTOGEN_PYTHON` and `CREWAI_PYTHON` name the interpreters of these environments.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")

from memograd.memory import Memory
from memograd.serve.app import create_app
from memograd.serve.served import ServeSettings
from memograd.web.running import running

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "frameworks"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "variable", "door"),
    [
        ("autogen_agent.py", "AUTOGEN_PYTHON", "/mcp"),
        ("crewai_crew.py", "CREWAI_PYTHON", ""),
    ],
)
def test_what_one_agent_is_told_another_recalls(
    make_memory: Callable[[], Memory], tmp_path: Path, example: str, variable: str, door: str
) -> None:
    interpreter = os.environ.get(variable)
    if interpreter is None:
        pytest.skip(f"{variable} names no interpreter that has the framework of {example}")
    app = create_app(make_memory(), ServeSettings(token="admin"))
    key = app.state.served.keys.create("example", owner="user:alice", rights=["read", "write"])
    with running(app) as address:
        command = [interpreter, str(EXAMPLES / example), f"{address}{door}", key.secret]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert done.stdout.count("User lives in Lisbon.") >= 2
