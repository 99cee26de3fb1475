"""The task `memory-construct`: a language model builds a memory from chunks of conversation."""

from __future__ import annotations

from typing import Final

from memograd.tasks.memory_construct.settings import ConstructTrainConfig
from memograd.tasks.registry import Option, Task
from memograd.tasks.text.definition import MODEL

LOGS: Final = Option(
    "--data", "data", "FILE", "Logs, conversations or Mem-alpha parquet; else generated."
)
LOGS_TO_EVALUATE: Final = Option("--eval", "text.eval_data", "FILE", "What to measure on.")

TASK: Final = Task(
    name="memory-construct",
    summary="Train a model to build a memory from chunks of conversation.",
    settings=ConstructTrainConfig,
    recipe="memograd.tasks.memory_construct.recipe",
    options=(LOGS, LOGS_TO_EVALUATE, MODEL),
    examples=(
        "memograd data construct-rows --out rows.jsonl",
        "memograd sft --data rows.jsonl --out runs/sft",
        "memograd train memory-construct adapter=runs/sft steps=20",
        "memograd train memory-construct build.chunks=6 build.first_chunks=2",
        "memograd train memory-construct build.credit=trajectory",
        "memograd train memory-construct resume=runs/my-run",
    ),
)
