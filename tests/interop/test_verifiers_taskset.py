"""A written taskset is loaded and scored by verifiers itself.

verifiers wants older packages than ours, so it lives in an environment of its own, whose Python is
named by MEMOGRAD_VERIFIERS_PYTHON.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import memograd
from memograd.errors import BadInput
from memograd.interop.taskset import write_taskset
from memograd.tasks.text.rows import TextRow

ROWS = [
    TextRow("a", "1+1?", {"id": "a", "answer": "2"}, "f:1"),
    TextRow(
        "b",
        ({"role": "system", "content": "简短"}, {"role": "user", "content": "药名?"}),
        {"id": "b", "answer": "二甲双胍"},
        "f:2",
    ),
]
LOADS = """
import asyncio, json
import verifiers.v1 as vf
tasks = list(vf.load_taskset(vf.TasksetConfig(id="our_tasks")))
found = []
for task in tasks:
    truth = json.loads(task.data.columns)["answer"]
    for said in (truth, "no idea"):
        trace = vf.Trace(
            task=vf.TraceTask(type="MemogradTask", data=task.data),
            agent=vf.AgentInfo(config=vf.AgentConfig()),
            nodes=[
                vf.MessageNode(message=vf.UserMessage(content=task.data.prompt_text)),
                vf.MessageNode(parent=0, message=vf.AssistantMessage(content=said), sampled=True),
            ],
        )
        asyncio.run(task.score(trace))
        found.append([task.data.id, task.data.system_prompt, task.data.prompt_text, trace.reward])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_verifiers_loads_and_scores_the_tasks(tmp_path: Path) -> None:
    python = os.environ.get("MEMOGRAD_VERIFIERS_PYTHON")
    if not python:
        pytest.skip("MEMOGRAD_VERIFIERS_PYTHON names no Python that has verifiers 0.4")
    write_taskset(ROWS, "mem0_f1", tmp_path / "our_tasks")
    ours = Path(memograd.__file__).parents[1]
    done = subprocess.run(
        [python, "-c", LOADS],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ours}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [
        ["a", None, "1+1?", 1.0],
        ["a", None, "1+1?", 0.0],
        ["b", "简短", "药名?", 1.0],
        ["b", "简短", "药名?", 0.0],
    ]


def test_a_taskset_is_a_package_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "our_tasks"
    write_taskset(ROWS, "mem0_f1", folder)
    compile((folder / "__init__.py").read_text("utf-8"), "our_tasks", "exec")
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text("utf-8").splitlines()]
    assert [row["id"] for row in rows] == ["a", "b"]
    with pytest.raises(BadInput, match="is there already"):
        write_taskset(ROWS, "mem0_f1", folder)
    with pytest.raises(BadInput, match="cannot be imported"):
        write_taskset(ROWS, "mem0_f1", tmp_path / "our-tasks")
    with pytest.raises(BadInput, match="There is no reward"):
        write_taskset(ROWS, "no_such_reward", tmp_path / "other")
    assert not (tmp_path / "other").exists()
