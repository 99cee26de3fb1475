"""The task `memory-ops-text`: a language model says ADD, UPDATE n, DELETE n or NONE."""

from __future__ import annotations

from typing import Final

from memograd.tasks.memory_construct.definition import LOGS, LOGS_TO_EVALUATE
from memograd.tasks.memory_ops_text.settings import OpsTextTrainConfig
from memograd.tasks.registry import Task
from memograd.tasks.text.definition import MODEL

TASK: Final = Task(
    name="memory-ops-text",
    summary="Train a model to say ADD, UPDATE n, DELETE n or NONE to one statement.",
    settings=OpsTextTrainConfig,
    recipe="memograd.tasks.memory_ops_text.recipe",
    options=(LOGS, LOGS_TO_EVALUATE, MODEL),
    examples=(
        "memograd data memory-ops-rows --out rows.jsonl",
        "memograd sft --data rows.jsonl --out runs/sft-ops",
        "memograd train memory-ops-text adapter=runs/sft-ops steps=20",
        "memograd train memory-ops-text resume=runs/my-run",
    ),
)
