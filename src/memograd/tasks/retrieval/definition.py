"""The task `retrieval`: which turns and memories answer a question, by a linear ranker."""

from __future__ import annotations

from typing import Final

from memograd.tasks.registry import Option, Task
from memograd.tasks.retrieval.settings import RetrievalConfig

TASK: Final = Task(
    name="retrieval",
    summary="Train what a search puts first, by questions with evidence.",
    settings=RetrievalConfig,
    recipe="memograd.tasks.retrieval.recipe",
    options=(
        Option("--data", "data", "FILES", "Conversations to train on; else generated life logs."),
        Option("--eval", "eval_data", "FILES", "What to measure on and to judge by."),
    ),
    examples=(
        "memograd train retrieval",
        "memograd train retrieval --data conversations.jsonl",
        "memograd train retrieval --data conversations.jsonl algorithm=grpo",
    ),
    notes=(
        "The ranker is the file final/ranker.json of the run. A memory ranks by it with\n"
        '  Memory.open("memories/", ranking="runs/my-run/final")\n'
        "where it beats rank fusion on held-out questions; ranking=trained goes back to the ranker"
        " that ships, ranking=fusion to none.",
    ),
)
"""The task as the registry knows it."""
