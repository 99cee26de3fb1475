"""What `memograd sft` and `memograd dpo` can be told: the settings of the warm starts.

Their run folders hold these settings as `config.json`, marked with the recipe's name.

Invariant: what `run_json` wrote, `memograd.config.load.stored_settings` reads back equal.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from memograd.config.settings import Count, LoraConfig, Positive, Settings, Text
from memograd.tasks.memory_qa.settings import MemoryConfig, MemoryQATrainConfig


class WarmStartSettings(Settings):
    """What supervised and preference training have in common."""

    recipe: ClassVar[str]

    data: Path | None = None
    """File of rows, one JSON object a line; .gz is read too."""
    string_prompts: Literal["text", "chat"] = "text"
    """A prompt that is a string is continued as it stands (text), or is a user's message (chat)."""
    out: Path | None = None
    """New run folder; none: runs/<recipe>-<timestamp>."""
    adapter: Path | None = None
    """Run folder, or a checkpoint in one, whose adapter training begins with; none: a fresh one."""
    model: Text = "smollm2-135m-instruct"
    """The packaged model's alias, a hub id or a folder."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where the model computes."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of every random choice in the run."""
    lora: LoraConfig = LoraConfig()
    """The adapter that is trained."""
    max_length: Count = 1024
    """Tokens of a row, prompt and answer together; what is longer loses its end."""
    epochs: Positive = 1.0
    """Passes over the rows."""
    steps: Annotated[int | None, Field(ge=1)] = None
    """Training steps; none: as many as the epochs take."""
    batch_size: Count = 8
    """Rows in a step."""
    micro_batch_size: Count = 4
    """Rows computed at once, at most; less needs less memory and changes nothing but rounding."""
    learning_rate: Positive = 2e-4
    """Peak learning rate of AdamW."""
    warmup_steps: Annotated[int, Field(ge=0)] = 5
    """Steps of linear learning-rate warm-up."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Decoupled weight decay of AdamW."""
    max_grad_norm: Positive = 1.0
    """Gradients are clipped to this norm."""
    save_steps: Count = 100
    """Steps from one checkpoint to the next."""

    @model_validator(mode="after")
    def _whole_micro_batches(self) -> WarmStartSettings:
        if self.batch_size % min(self.micro_batch_size, self.batch_size):
            raise ValueError(
                f"batch_size={self.batch_size} is not a multiple of "
                f"micro_batch_size={self.micro_batch_size}: choose one that divides it"
            )
        return self

    def run_json(self) -> str:
        """The `config.json` of a run: the settings, and whose they are."""
        return json.dumps({"recipe": self.recipe, **self.model_dump(mode="json")}, indent=2)


class SftSettings(WarmStartSettings):
    """Everything that `memograd sft` can be told."""

    recipe: ClassVar[str] = "sft"

    task: Literal["memory-qa"] | None = None
    """Task whose gold answers are learnt; none: the rows of data."""
    train: list[Text] = []
    """memory-qa: conversation ids to train on; empty: all but the last."""
    eval: list[Text] = []
    """memory-qa: conversation ids kept for evaluation; empty: all that are not trained on."""
    memory: MemoryConfig = MemoryConfig()
    """memory-qa: what is retrieved for a question."""
    max_completion_length: Count = 16
    """memory-qa: tokens of an answer when the run is evaluated, at most."""

    @model_validator(mode="after")
    def _rows_or_task(self) -> SftSettings:
        if self.task is None and self.data is None:
            raise ValueError(
                "data= is missing: a file of rows, or conversations and task=memory-qa"
            )
        if self.task is None and (self.train or self.eval):
            raise ValueError(
                "train= and eval= name conversations of task=memory-qa: set the task too"
            )
        return self

    def as_train_config(self) -> MemoryQATrainConfig:
        """The GRPO run of memory-qa that asks the same questions with the same memory."""
        return MemoryQATrainConfig(
            data=self.data,
            train=self.train,
            eval=self.eval,
            model=self.model,
            device=self.device,
            seed=self.seed,
            lora=self.lora,
            memory=self.memory,
            max_completion_length=self.max_completion_length,
        )


class DpoSettings(WarmStartSettings):
    """Everything that `memograd dpo` can be told."""

    recipe: ClassVar[str] = "dpo"

    learning_rate: Positive = 2e-5
    """Peak learning rate of AdamW."""
    beta: Positive = 0.1
    """How strongly the policy is held near the one that it began as."""

    @model_validator(mode="after")
    def _pairs(self) -> DpoSettings:
        if self.data is None:
            raise ValueError("data= is missing: a file of rows with prompt, chosen and rejected")
        return self
