"""The task `memory-qa`: answering questions about conversations from what a memory retrieves."""

from __future__ import annotations

from typing import Final

from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.registry import Option, Task

TASK: Final = Task(
    name="memory-qa",
    summary="Train a model to answer from what is remembered.",
    settings=MemoryQATrainConfig,
    recipe="memograd.tasks.memory_qa.recipe",
    options=(
        Option("--data", "data", "FILE", "Conversations (docs/data.md); else generated lives."),
        Option("--train", "train", "IDS", "Conversations to train on: conv-26,conv-30."),
        Option("--eval", "eval", "IDS", "Conversations to evaluate on."),
    ),
    examples=(
        "memograd train memory-qa --data locomo.json --train conv-26 --eval conv-30",
        "memograd train memory-qa --config run.toml steps=100 lora.r=32",
        "memograd train memory-qa resume=runs/my-run steps=200",
    ),
)
