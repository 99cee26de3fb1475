"""Our rows and rewards as a taskset of verifiers 0.4: a package that its `eval` and trainers load.

    NAME/__init__.py     a Taskset, its Task with our rewards, and its data
    NAME/rows.jsonl      the rows

The folder that holds NAME must be on the Python path (or NAME be installed). The package asks for
verifiers and memograd. It has no tools: a row of an agent needs its environment, so those are
for TRL. Invariant: the reward of a trace is the total of our rewards for its last branch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from memograd.data.record_files import as_lines, check_new
from memograd.errors import BadInput
from memograd.interop.scoring import rewards_of
from memograd.rewards import with_absolute_files
from memograd.tasks.text.rows import TextRow

_MODULE = '''"""Written by memograd: {count} tasks for verifiers 0.4, scored by {rewards!r}."""

import json
from pathlib import Path
from typing import Any

import verifiers.v1 as vf

from memograd.interop.scoring import score

REWARDS = {rewards!r}
ROWS = Path(__file__).parent / "rows.jsonl"


class MemogradData(vf.TaskData):
    columns: str
    """The row's columns, as JSON."""
    asked: str
    """The row's prompt, as JSON."""


class MemogradTask(vf.Task[MemogradData]):
    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        branch = trace.branches[-1].nodes if trace.branches else []
        said = [node.message for node in branch]
        first = next((n for n, one in enumerate(branch) if one.sampled), len(said))
        completion: list[dict[str, Any]] = [one.model_dump() for one in said[first:]]
        prompt = json.loads(self.data.asked)
        if isinstance(prompt, str):
            text = (completion[-1].get("content") or "") if completion else ""
            return score(REWARDS, prompt, text, json.loads(self.data.columns))
        return score(REWARDS, prompt, completion, json.loads(self.data.columns))


class MemogradTaskset(vf.Taskset[MemogradTask, vf.TasksetConfig]):
    def load(self) -> list[MemogradTask]:
        lines = ROWS.read_text("utf-8").split("\\n")
        return [self._task(json.loads(line)) for line in lines if line]

    def _task(self, row: dict[str, Any]) -> MemogradTask:
        prompt, told = row["prompt"], None
        if isinstance(prompt, list) and prompt and prompt[0]["role"] == "system":
            told, prompt = prompt[0]["content"], prompt[1:]
        data = MemogradData(
            id=row["id"],
            prompt=prompt,
            system_prompt=told,
            columns=json.dumps(row["columns"], ensure_ascii=False),
            asked=json.dumps(row["prompt"], ensure_ascii=False),
        )
        return MemogradTask(data, self.config.task)


__all__ = ["MemogradTaskset"]
'''


def write_taskset(rows: Sequence[TextRow], rewards: str, folder: Path) -> None:
    """Write the package into the new `folder`, whose name is the taskset's id.

    Raises:
        BadInput: the folder is there or its name is no module's, or the specification cannot be
            read.
    """
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", folder.name):
        raise BadInput(f"{folder.name} cannot be imported; name it with a-z, 0-9 and _ alone.")
    check_new(folder)
    rewards = with_absolute_files(rewards)
    rewards_of(rewards)
    told = [{"id": row.id, "prompt": row.prompt, "columns": row.columns} for row in rows]
    lines = as_lines(told)
    try:
        folder.mkdir(parents=True)
        (folder / "rows.jsonl").write_text(lines, encoding="utf-8")
        module = _MODULE.replace("{count}", str(len(rows))).replace("{rewards!r}", repr(rewards))
        (folder / "__init__.py").write_text(module, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{folder} cannot be written ({error.strerror}).") from error
