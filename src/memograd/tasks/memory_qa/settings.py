"""What `memograd train memory-qa` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, field_validator, model_validator

from memograd.config.settings import Count, Settings, Text, TrainConfig
from memograd.config.unread import Unread
from memograd.tasks.registry import Option, Task


class MemoryConfig(Settings):
    """What of a conversation is remembered, how much of it reaches the prompt, who embeds it."""

    top_k: Count = 5
    """Turns or items retrieved for a question, at most."""
    token_budget: Count = 20_000
    """Tokens of what is retrieved in a prompt, at most."""
    embedder: Text = "e5"
    """Name of the embedding model."""
    retrieval: Literal["auto", "ranked", "dense"] = "auto"
    """How turns are found: as Memory.search ranks them (ranked), or by the nearest vectors alone
    (dense). auto: ranked with the embedder that the shipped ranker was trained with (e5), else
    dense."""
    keep: Literal["turns", "items"] = "turns"
    """What a question finds: turns as they were said, or items that a memory manager made of
    them."""
    policy: Path | None = None
    """Who makes the items: a trained head (folder final of a run of memory-ops), or a run of
    memory-construct; none: rules."""

    @property
    def ranked(self) -> bool:
        """Whether turns are ranked."""
        return self.retrieval == "ranked" or (self.retrieval == "auto" and self.embedder == "e5")

    @field_validator("policy")
    @classmethod
    def _absolute(cls, policy: Path | None) -> Path | None:
        """A run is resumed and measured from other folders than the one it began in."""
        return None if policy is None else policy.expanduser().resolve()

    @model_validator(mode="after")
    def _policy_keeps_items(self) -> MemoryConfig:
        if self.policy is not None and self.keep == "turns":
            raise ValueError("memory.policy makes items: set memory.keep=items too")
        return self


OF_ITEMS: Final = Unread(
    ("memory.retrieval",),
    lambda c: c.memory.keep == "items",
    "items are found by the nearest vectors, and memory.retrieval is of turns",
)
"""What is not read where items are remembered."""


class MemoryQATrainConfig(TrainConfig):
    """Everything that `memograd train memory-qa` can be told."""

    unread: ClassVar[tuple[Unread, ...]] = (
        *TrainConfig.unread,
        OF_ITEMS,
    )

    data: Path | None = None
    """File of conversations, in any format of docs/data.md; none: generated lives."""
    train: list[Text] = []
    """Conversation ids to train on; empty: all but the last."""
    eval: list[Text] = []
    """Conversation ids to evaluate on; empty: the last."""
    max_train: Annotated[int | None, Field(ge=1)] = None
    """Training questions, at most, drawn with the seed; none: all of them."""
    max_eval: Annotated[int | None, Field(ge=1)] = None
    """Held-out questions, at most, drawn with the seed; none: all of them."""
    memory: MemoryConfig = MemoryConfig()
    """What is remembered and retrieved."""
    rewards: str = "locomo_f1"
    """Rewards, weighted as name:weight,name:weight; built in, or file.py:name, or module:name."""


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
