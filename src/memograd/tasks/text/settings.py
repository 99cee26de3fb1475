"""What `memograd train text` can be told, and what all tasks on rows share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from memograd.config.settings import Settings, TrainConfig
from memograd.config.unread import Unread
from memograd.tasks.registry import Option, Task


class EvalDataConfig(Settings):
    """What is measured on where the data are not split."""

    eval_data: Path | None = None
    """File to evaluate on; none: a part of the data."""


class RowsConfig(EvalDataConfig):
    """What of the rows is measured on."""

    eval_data: Path | None = None
    """JSONL file to evaluate on; none: a part of the data, chosen by hash of the prompt."""
    eval_fraction: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the different prompts kept for evaluation without eval_data; 0: no evaluation."""


class TextConfig(RowsConfig):
    """How rows of prompts are read, and what of them is measured on."""

    string_prompts: Literal["text", "chat"] = "text"
    """A prompt that is a string is continued as it stands (text), or is a user's message (chat)."""


class RowsTrainConfig(TrainConfig):
    """The settings of a task that trains on rows."""

    unread: ClassVar[tuple[Unread, ...]] = (
        *TrainConfig.unread,
        Unread(
            ("text.eval_fraction",),
            lambda c: c.text.eval_data is not None,
            "text.eval_data names what is measured on",
        ),
    )

    data: Path | None = None
    """JSONL file of rows to train on, each with a prompt."""
    text: RowsConfig = RowsConfig()
    """What of the rows is measured on."""


class TextTrainConfig(RowsTrainConfig):
    """Everything that `memograd train text` can be told."""

    text: TextConfig = TextConfig()
    """How rows are read, and what of them is measured on."""


ROWS_TO_EVALUATE: Final = Option(
    "--eval", "text.eval_data", "FILE", "Rows to evaluate on; else a part of --data."
)
MODEL: Final = Option("--model", "model", "MODEL", "A causal language model: hub id or folder.")

TASK: Final = Task(
    name="text",
    summary="Train a model on prompts of any kind by reward functions.",
    settings=TextTrainConfig,
    recipe="memograd.tasks.text.recipe",
    options=(
        Option("--data", "data", "FILE", "Rows to train on: JSONL, each with a prompt."),
        ROWS_TO_EVALUATE,
        Option("--rewards", "rewards", "SPEC", "What is rewarded; see below."),
        MODEL,
    ),
    examples=(
        "memograd train text --data prompts.jsonl --rewards my_rewards.py:exact,length:0.2",
        "memograd train text --data sums.jsonl --rewards numeric_match --model ./qwen",
        "memograd train text --config run.toml --eval held-out.jsonl steps=100",
        "memograd train text resume=runs/my-run steps=200",
    ),
    notes=(
        "Rewards, by commas, a weight behind a colon:\n"
        "  exact_match                    a built-in reward\n"
        "  'length(low=40, high=60):0.2'  one with settings\n"
        "  my_rewards.py:exact,polite     functions of a Python file\n"
        "  my_package.rewards:exact       functions of a module",
    ),
)
