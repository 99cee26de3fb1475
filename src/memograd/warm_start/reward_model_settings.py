"""What `memograd reward-model train` can be told.

A reward model is trained on the same rows, by the same trainer loop and into the same kind of run
folder as the warm starts, so its settings are theirs and a few of its own. Invariant: a preset
(`tuning=full`) never wins over a setting that is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from memograd.config.settings import Count, LoraConfig, Positive
from memograd.warm_start.settings import WarmStartSettings

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
