"""What `memograd train text` can be told, and what all tasks on rows share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from memograd.config.settings import Settings, TrainConfig


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

    data: Path | None = None
    """JSONL file of rows to train on, each with a prompt."""
    text: RowsConfig = RowsConfig()
    """What of the rows is measured on."""


class TextTrainConfig(RowsTrainConfig):
    """Everything that `memograd train text` can be told."""

    text: TextConfig = TextConfig()
    """How rows are read, and what of them is measured on."""
