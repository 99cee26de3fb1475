"""The task `relations`: how a message relates to remembered items, by a small encoder."""

from __future__ import annotations

from typing import Final

from memograd.tasks.registry import Option, Task
from memograd.tasks.relations.settings import RelationsConfig

TASK: Final = Task(
    name="relations",
    summary="Train how a message relates to remembered items, and what in it is worth keeping.",
    settings=RelationsConfig,
    recipe="memograd.tasks.relations.recipe",
    options=(
        Option("--data", "data", "FILES", "Author batches of dialogues to train on."),
        Option("--eval", "eval_data", "FILES", "Batches of other authors to measure on."),
        Option("--cases", "cases", "FILES", "Behaviour cases to fit the thresholds to."),
    ),
    examples=(
        "memograd train relations --data corpus/dialogues/en-a.jsonl,corpus/dialogues/zh-a.jsonl"
        " --eval corpus/dialogues/en-b.jsonl,corpus/dialogues/zh-b.jsonl",
        "memograd train relations resume=runs/my-run steps=3000",
    ),
    notes=(
        "The trained model is the file final/relations.npz of the run:\n"
        '  load_relation_model("runs/my-run/final/relations.npz")',
    ),
)
