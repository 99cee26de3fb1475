"""What `memograd train memory-ops-text` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from memograd.config.settings import Count, Settings, Share, Text, TrainConfig
from memograd.config.unread import Unread
from memograd.tasks.memory_construct.settings import LOGS, LOGS_TO_EVALUATE, OF_GENERATED_LOGS
from memograd.tasks.registry import Task
from memograd.tasks.text.settings import MODEL, EvalDataConfig

DEFAULT_REWARDS = "memograd.tasks.memory_ops_text:worth:1,well_formed:0.1,gold_operation:0"


class DecisionLogsConfig(Settings):
    """The logs whose statements are decided on."""

    languages: Annotated[list[Literal["en", "zh"]], Field(min_length=1)] = ["en"]
    """Languages of generated logs."""
    logs: Count = 8
    """Generated logs to train on; a log has some 140 statements."""
    eval_logs: Count = 1
    """Generated logs, in held-out words, to measure on."""
    top_k: Count = 5
    """Items that a question may find."""
    misled_cost: Share = 0.5
    """What a misleading item that stands above the answer takes of it."""
    embedder: Text = "minilm"
    """Whose vectors find items: minilm, e5 (for Chinese), st:<model id or folder>."""


class OpsTextTrainConfig(TrainConfig):
    """Everything that `memograd train memory-ops-text` can be told."""

    unread: ClassVar[tuple[Unread, ...]] = (*TrainConfig.unread, *OF_GENERATED_LOGS)

    data: Path | None = None
    """Life logs or conversations to train on; none: generated logs."""
    text: EvalDataConfig = EvalDataConfig()
    """What is measured on."""
    build: DecisionLogsConfig = DecisionLogsConfig()
    """The logs whose statements are decided on."""
    rewards: str = DEFAULT_REWARDS
    """Rewards, weighted as name:weight,name:weight; the last is measured, never learnt from."""
    max_completion_length: Count = 8
    """Tokens of an answer, at most."""


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
