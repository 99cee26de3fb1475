"""The task `memory-ops`: what a memory adds, updates, deletes and ignores, by a small head."""

from __future__ import annotations

from typing import Final

from memograd.tasks.memory_ops.settings import OperationsConfig
from memograd.tasks.registry import Option, Task

TASK: Final = Task(
    name="memory-ops",
    summary="Train what a memory adds, updates, deletes and ignores, by later questions.",
    settings=OperationsConfig,
    recipe="memograd.tasks.memory_ops.recipe",
    options=(
        Option("--data", "data", "FILES", "Logs or conversations to train on; else generated."),
        Option("--eval", "eval_data", "FILES", "What to measure on."),
    ),
    examples=(
        "memograd train memory-ops",
        "memograd train memory-ops languages=en,zh embedder=e5 logs=64 steps=60",
        "memograd train memory-ops --data my-logs.jsonl --eval others.jsonl",
        "memograd train memory-ops algorithm=ppo steps=80",
        "memograd train memory-ops resume=runs/my-run steps=200",
    ),
    notes=(
        "The trained policy is the folder final of the run:\n"
        '  Memory.open("memories/", policy="runs/my-run/final", embedder="minilm")',
    ),
)
