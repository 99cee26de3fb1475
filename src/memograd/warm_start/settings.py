"""What `memograd sft`, `memograd dpo` and `memograd reward-model train` can be told.

A reward model is trained on the same rows, by the same trainer loop and into the same kind of run
folder as the warm starts, so its settings are theirs and a few of its own.

Their run folders hold these settings as `config.json`, marked with the recipe's name.

Invariants: what `run_json` wrote, `memograd.config.load.stored_settings` reads back equal; a preset
(`tuning=full`) never wins over a setting that is given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from memograd.config.settings import Count, LoraConfig, NotNegative, Positive, Settings, Text
from memograd.config.unread import Unread
from memograd.tasks.memory_qa.settings import OF_ITEMS, MemoryConfig, MemoryQATrainConfig


class WarmStartSettings(Settings):
    """What supervised and preference training have in common.

    unread: which settings nothing reads, and where.
    """

    recipe: ClassVar[str]
    unread: ClassVar[tuple[Unread, ...]] = (
        Unread(("epochs",), lambda c: c.steps is not None, "steps says how long is trained"),
    )

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
    weight_decay: NotNegative = 0.0
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
    unread: ClassVar[tuple[Unread, ...]] = (
        *WarmStartSettings.unread,
        Unread(
            (*(f"memory.{name}" for name in MemoryConfig.model_fields), "max_completion_length"),
            lambda c: c.task is None,
            "it is of task=memory-qa, and rows of data are learnt",
        ),
        Unread(
            ("string_prompts",),
            lambda c: c.task is not None,
            "it is of rows of data, and task=memory-qa asks by itself",
        ),
        OF_ITEMS,
    )

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


TUNING: Mapping[str, Mapping[str, Any]] = {
    "lora": {"learning_rate": 2e-4},
    "full": {"learning_rate": 1e-5},
}
"""What `tuning` stands for; a value that is given explicitly wins over its preset."""


class RewardLoraConfig(LoraConfig):
    """The adapter of a reward model; its new head is trained whole beside it."""

    r: Count = 32
    """Rank of the adapter's two matrices."""
    alpha: Count = 16
    """Scale of the adapter: its output is multiplied by alpha / r."""


class RewardModelSettings(WarmStartSettings):
    """Everything that `memograd reward-model train` can be told."""

    recipe: ClassVar[str] = "reward-model"
    unread: ClassVar[tuple[Unread, ...]] = (
        *WarmStartSettings.unread,
        Unread(
            ("eval_fraction",),
            lambda c: c.eval_data is not None,
            "eval_data names what is measured on",
        ),
        Unread(
            # The preset stands for others, so it is named before them.
            tuple(f"lora.{name}" for name in reversed(RewardLoraConfig.model_fields)),
            lambda c: c.tuning == "full",
            "tuning=full trains no adapter",
        ),
    )

    string_prompts: Literal["text", "chat"] = "chat"
    """A prompt that is a string is a user's message (chat), or is continued as it stands (text)."""
    max_length: Count = 1024
    """Tokens of prompt and answer together; what is longer loses its beginning."""
    eval_data: Path | None = None
    """File of pairs to measure on; none: a part of the data, chosen by hash of the prompt."""
    eval_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share of the different prompts kept for measuring without eval_data."""
    tuning: Literal["lora", "full"] = "lora"
    """Train a low-rank adapter and the head (lora), or every weight (full, learning rate 1e-5)."""
    lora: RewardLoraConfig = RewardLoraConfig()  # pyright: ignore[reportIncompatibleVariableOverride]
    """The adapter that is trained."""
    learning_rate: Positive = 2e-4
    """Peak learning rate of AdamW."""
    length_fit_pairs: Count = 200
    """Training pairs on which the price of length is fitted, at most."""

    @model_validator(mode="before")
    @classmethod
    def _fill_from_tuning(cls, given: Any) -> Any:
        name = given.get("tuning") if isinstance(given, dict) else None
        return {**TUNING.get(name, {}), **given} if isinstance(name, str) else given

    @model_validator(mode="after")
    def _pairs(self) -> RewardModelSettings:
        if self.data is None:
            raise ValueError("data= is missing: a file of pairs with prompt, chosen and rejected")
        if self.tuning == "full" and self.adapter is not None:
            raise ValueError("adapter= begins with an adapter, which tuning=full does not train")
        return self
