"""What a run is made of: typed, frozen settings, each with its range and one line of meaning.

Imports pydantic, nothing of memograd. The description of a setting is the docstring below it;
command-line help and error messages are made from these declarations.

Invariant: resolved settings survive their JSON form unchanged
(`TrainConfig.model_validate_json(config.model_dump_json()) == config`), so that the `config.json`
of a run folder is the run's whole recipe. Proved in `tests/test_config.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

LORA_PRESETS: Mapping[str, Mapping[str, int]] = {"memory-guide": {"r": 64, "alpha": 16}}
"""Named adapter sizes; a value that is given explicitly wins over its preset."""

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class Settings(BaseModel):
    """A frozen group of settings that refuses keys it does not know."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class LoraConfig(Settings):
    """The low-rank adapter that is trained on a frozen model (Hu et al. 2021, arXiv:2106.09685)."""

    r: Count = 16
    """Rank of the adapter's two matrices."""
    alpha: Count = 32
    """Scale of the adapter: its output is multiplied by alpha / r."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Dropout before the adapter, while training."""
    target_modules: Annotated[list[Text], Field(min_length=1)] = [
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    ]
    """Names of the linear layers that get an adapter."""
    preset: Literal["memory-guide"] | None = None
    """Named values for r and alpha; memory-guide is r 64, alpha 16."""

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        preset = given.get("preset") if isinstance(given, dict) else None
        if not isinstance(preset, str):
            return given
        return {**LORA_PRESETS.get(preset, {}), **given}


class MemoryConfig(Settings):
    """How many remembered turns reach the prompt, and who embeds them."""

    top_k: Count = 5
    """Turns retrieved for a question, at most."""
    token_budget: Count = 20_000
    """Tokens of retrieved turns in a prompt, at most."""
    embedder: Text = "minilm"
    """Name of the embedding model."""


class TrainConfig(Settings):
    """Everything that `memograd train` can be told; the defaults train on a laptop's CPU."""

    # What is trained on, and where it goes.
    data: Path | None = None
    """File in LoCoMo's format; none: generated conversations."""
    train: list[Text] = []
    """Conversation ids to train on; empty: the task chooses."""
    eval: list[Text] = []
    """Conversation ids to evaluate on; empty: the task chooses."""
    out: Path | None = None
    """New run folder; none: runs/<task>-<timestamp>."""
    resume: Path | None = None
    """Run folder whose training goes on."""

    # What is trained.
    model: Text = "smollm2-135m-instruct"
    """The packaged model's alias, a hub id or a folder."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where the model computes."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of every random choice in the run."""
    lora: LoraConfig = LoraConfig()
    """The adapter that is trained."""
    memory: MemoryConfig = MemoryConfig()
    """What is retrieved for a question."""

    # What is sampled and how it is scored.
    steps: Count = 60
    """Training steps, counted from the beginning of the run."""
    prompts_per_step: Count = 8
    """Questions in a step; each is the prompt of one group."""
    num_generations: Annotated[int, Field(ge=2)] = 8
    """Answers sampled for a question: the size of the group they are compared in."""
    temperature: Positive = 0.8
    """Sampling temperature."""
    max_completion_length: Count = 16
    """Tokens of an answer, at most."""
    max_prompt_length: Annotated[int | None, Field(ge=1)] = None
    """Tokens of a prompt, at most; none: no limit."""
    rewards: Text = "locomo_f1"
    """Reward names, weighted as name:weight,name:weight."""

    # The optimisation.
    learning_rate: Positive = 3e-4
    """Peak learning rate of AdamW."""
    warmup_steps: Annotated[int, Field(ge=0)] = 5
    """Steps of linear learning-rate warm-up."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay of AdamW."""
    max_grad_norm: Positive = 1.0
    """Gradients are clipped to this norm."""
    num_iterations: Count = 1
    """Optimisation passes over the rollouts of a step."""
    epsilon: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Half-width of the clipping range of the probability ratio."""
    beta: NotNegative = 0.01
    """Weight of the KL term that holds the policy near the starting model."""
    entropy_coef: NotNegative = 0.0
    """Weight of the entropy bonus."""
    forward: Literal["tree", "rows"] = "tree"
    """Sample and score over token trees, shared tokens once (tree), or row by row (rows)."""

    # What is written down, and evaluation.
    save_steps: Count = 20
    """Steps from one checkpoint to the next."""
    rollout_log_steps: Count = 10
    """Steps from one readable sample of rollouts to the next."""
    eval_batch_size: Count = 32
    """Questions answered at once in evaluation."""

    @model_validator(mode="after")
    def _one_folder(self) -> TrainConfig:
        if self.out is not None and self.resume is not None:
            raise ValueError("out and resume exclude each other: a resumed run stays in its folder")
        return self
