"""What a run is made of: typed, frozen settings, each with its range and one line of meaning.

Imports pydantic and `memograd.config.algorithms`. The description of a setting is the docstring
below it; command-line help and error messages are made from these declarations.

Invariant: resolved settings survive their JSON form unchanged
(`TrainConfig.model_validate_json(config.model_dump_json()) == config`), so that the `config.json`
of a run folder is the run's whole recipe. Proved in `tests/test_config.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from memograd.config.algorithms import (
    ALGORITHMS,
    Advantage,
    Aggregation,
    Algorithm,
    KlEstimator,
    Ratio,
)

LORA_PRESETS: Mapping[str, Mapping[str, int]] = {"memory-guide": {"r": 64, "alpha": 16}}
"""Named adapter sizes; a value that is given explicitly wins over its preset."""

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Tracking = Literal["tensorboard", "wandb", "swanlab", "trackio"]


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


class TextConfig(Settings):
    """How rows of prompts are read, and what is measured on, for text and agents."""

    eval_data: Path | None = None
    """JSONL file to evaluate on; none: a part of the data, chosen by hash of the prompt."""
    eval_fraction: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the different prompts kept for evaluation without eval_data; 0: no evaluation."""
    string_prompts: Literal["text", "chat"] = "text"
    """A prompt that is a string is continued as it stands (text), or is a user's message (chat)."""


class EpisodesConfig(Settings):
    """What an agent acts in, and how far it may go in one attempt."""

    environment: Text | None = None
    """Class of the environment, file.py:Name or module:Name; several by commas, chosen by the rows'
    column environment."""
    chat_template: Path | None = None
    """Jinja file of a chat template that shows tools; none: the model's own, or a built-in one for
    models that mark their turns with <|im_start|>."""
    max_turns: Count = 8
    """Actions in an episode, at most."""
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    """Tokens of an episode's conversation, at most; none: the model's context length."""
    max_seconds: Annotated[float | None, Field(gt=0)] = None
    """Wall time for a step's episodes, looked at between turns; a run with this limit cannot be
    repeated to the bit."""
    max_failed_turns: Annotated[int | None, Field(ge=1)] = None
    """Turns in a row whose tool calls may fail, at most; none: no limit."""


class TrainConfig(Settings):
    """Everything that `memograd train` can be told; the defaults train on a laptop's CPU."""

    # What is trained on, and where it goes.
    data: Path | None = None
    """File in LoCoMo's format (none: generated conversations); for text, JSONL with prompts."""
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
    adapter: Path | None = None
    """Run folder, or a checkpoint in one, whose adapter training begins with; none: a fresh one."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where the model computes."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of every random choice in the run."""
    lora: LoraConfig = LoraConfig()
    """The adapter that is trained."""
    memory: MemoryConfig = MemoryConfig()
    """What is retrieved for a question."""
    text: TextConfig = TextConfig()
    """The rows of the text task and of agents."""
    episodes: EpisodesConfig = EpisodesConfig()
    """The environment of an agent, and its limits."""

    # What is sampled and how it is scored.
    steps: Count = 60
    """Training steps, counted from the beginning of the run."""
    prompts_per_step: Count = 8
    """Questions in a step; each is the prompt of one group."""
    num_generations: Count = 8
    """Answers sampled for a question: the size of the group they are compared in."""
    temperature: Positive = 0.8
    """Sampling temperature."""
    temperature_schedule: Literal["constant", "linear", "variance"] = "constant"
    """How the temperature moves to temperature_end: by step (linear), or as far as groups earn
    equal rewards (variance)."""
    temperature_end: Annotated[float | None, Field(gt=0)] = None
    """The other end of temperature_schedule; none: it stays."""
    max_completion_length: Count = 16
    """Tokens of an answer, at most."""
    max_prompt_length: Annotated[int | None, Field(ge=1)] = None
    """Tokens of a prompt, at most; none: no limit."""
    rewards: Text = "locomo_f1"
    """Rewards, weighted as name:weight,name:weight; built in, or file.py:name, or module:name."""

    # The algorithm: a name for the choices below it, which win over it where they are given.
    algorithm: Algorithm = "grpo"
    """Preset of everything from here to overlong_share; see docs/algorithms.md."""
    advantage: Advantage = "group"
    """What a reward is compared with: mean and spread of its group (group), the group's mean only
    (centred), the group's others (leave_one_out), mean and spread of the batch (batch), the group's
    mean and the batch's spread (group_batch)."""
    ratio: Ratio = "token"
    """Probability ratio by token, by sequence (its geometric mean), as product over the answer, or
    as a mere weight of the gradient that no token escapes (weight)."""
    aggregation: Aggregation = "rollout"
    """What weighs the same in the loss: every rollout, every token of the batch (token), or every
    token at a constant, 1 / (rollouts x max_completion_length)."""
    epsilon: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """The probability ratio is clipped below 1 - epsilon."""
    epsilon_high: Annotated[float | None, Field(gt=0)] = None
    """The probability ratio is clipped above 1 + epsilon_high; none: as epsilon."""
    beta: NotNegative = 0.01
    """Weight of the KL term that holds the policy near the starting model."""
    kl: KlEstimator = "k3"
    """Estimator of the KL: the log ratio (k1), half its square (k2), or the one that is never
    negative (k3)."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Whether the KL is a term of the loss or taken off each rollout's reward."""
    resample_rounds: Annotated[int, Field(ge=0)] = 0
    """Rounds in which groups whose rewards are all equal are replaced by fresh ones, at most."""
    overlong_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of max_completion_length before its end in which an answer's reward falls by up to 1;
    0: off."""

    # The algorithm, on top of any preset.
    kl_correction: Literal["off", "ratio"] = "off"
    """Multiply the KL in the loss by the probability ratio, which makes its gradient exact."""
    reward_normalisation: Literal["total", "each"] = "total"
    """Compare the weighted total of all rewards, or normalise each within its group first."""
    importance_cap: Annotated[float | None, Field(gt=0)] = None
    """Weigh tokens by old policy / sampler, at most this much, for a sampler that is another
    engine; none: the sampler's log-probabilities are the old policy's."""
    entropy_coef: NotNegative = 0.0
    """Weight of the entropy bonus."""

    # The optimisation.
    learning_rate: Positive = 3e-4
    """Peak learning rate of AdamW."""
    warmup_steps: Annotated[int, Field(ge=0)] = 5
    """Steps of linear learning-rate warm-up."""
    learning_rate_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """The learning rate after warm-up: constant, or falling to 0 at the end of the run."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay of AdamW."""
    max_grad_norm: Positive = 1.0
    """Gradients are clipped to this norm."""
    num_iterations: Count = 1
    """Optimisation passes over the rollouts of a step."""
    forward: Literal["tree", "rows"] = "tree"
    """Sample and score over token trees, shared tokens once (tree), or row by row (rows)."""

    # What is written down, and evaluation.
    save_steps: Count = 20
    """Steps from one checkpoint to the next."""
    rollout_log_steps: Count = 10
    """Steps from one readable sample of rollouts to the next."""
    track: list[Tracking] = []
    """Where metrics go besides metrics.jsonl: tensorboard, wandb, swanlab, trackio."""
    eval_batch_size: Count = 32
    """Questions answered at once in evaluation."""

    @model_validator(mode="before")
    @classmethod
    def _fill_from_algorithm(cls, given: Any) -> Any:
        name = given.get("algorithm") if isinstance(given, dict) else None
        if not isinstance(name, str):
            return given
        return {**ALGORITHMS.get(name, {}), **given}

    @model_validator(mode="after")
    def _choices_fit(self) -> TrainConfig:
        if self.num_generations == 1 and self.advantage != "batch":
            raise ValueError(
                f"num_generations=1 leaves advantage={self.advantage} nothing to compare with: set "
                "num_generations to at least 2, or advantage=batch"
            )
        if self.beta > 0 and (self.kl, self.kl_in, self.kl_correction) == ("k1", "loss", "off"):
            raise ValueError(
                "kl=k1 in the loss has no gradient on average: set kl_correction=ratio, "
                "kl_in=reward, or another kl"
            )
        if (self.temperature_schedule == "constant") != (self.temperature_end is None):
            raise ValueError(
                "temperature_schedule and temperature_end go together: set both, or neither"
            )
        return self

    @model_validator(mode="after")
    def _one_folder(self) -> TrainConfig:
        if self.out is not None and self.resume is not None:
            raise ValueError("out and resume exclude each other: a resumed run stays in its folder")
        return self
