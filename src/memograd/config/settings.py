"""What a run is made of: typed, frozen settings, each with its range and one line of meaning.

The description of a setting is the docstring below it; command-line help and error messages are
made from these declarations.

Invariant: resolved settings survive their JSON form unchanged
(`TrainConfig.model_validate_json(config.model_dump_json()) == config`), so that the `config.json`
of a run folder is the run's whole recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from memograd.config.algorithms import (
    ALGORITHMS,
    Advantage,
    Aggregation,
    Algorithm,
    KlEstimator,
    Ratio,
)
from memograd.config.unread import OF_TRAINING, Unread

LORA_PRESETS: Mapping[str, Mapping[str, int]] = {"memory-guide": {"r": 64, "alpha": 16}}
"""Named adapter sizes; a value that is given explicitly wins over its preset."""

FULL_RATE = 1e-5
"""Learning rate of a run that trains all weights, unless it is given."""

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Tracking = Literal["tensorboard", "wandb", "swanlab", "trackio"]


Groups = Mapping[str, tuple[str, ...]]
"""Names of settings under headings."""


class Settings(BaseModel):
    """A frozen group of settings that refuses keys it does not know.

    groups: how the help of a command shows them, the commonest first; a setting that stands in none
    is one of the command's own, which come second.
    shorthand: of a section, the setting that its bare name means (`sampler=vllm`).
    """

    groups: ClassVar[Groups] = {}
    shorthand: ClassVar[str] = ""

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


class SchedulesConfig(Settings):
    """What is asked, how often, and what is learned from again; see docs/algorithms.md."""

    curriculum: Literal["off", "pass_rate"] = "off"
    """Ask every scenario once an epoch (off), or, once all were asked, those more often that are
    passed about half of the time (pass_rate)."""
    curriculum_floor: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Chance of the least promising scenario, as a share of what it has without a curriculum; at
    least that much is left to every one."""
    group_sizes: Literal["constant", "difficulty"] = "constant"
    """Groups of num_generations (constant), or larger ones for scenarios that are passed about half
    of the time and smaller ones for the rest, as many rollouts in all (difficulty)."""
    min_generations: Annotated[int, Field(ge=2)] = 2
    """Answers in a group, at least, with group_sizes=difficulty."""
    max_generations: Annotated[int | None, Field(ge=2)] = None
    """Answers in a group, at most, with group_sizes=difficulty; none: twice num_generations."""
    pass_reward: float = 0.5
    """An attempt passes if its total reward is at least this; for curriculum and group_sizes."""
    pass_rate_memory: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """Weight of what was known of a scenario's pass rate when a new group of it comes."""
    replay_groups: Annotated[int, Field(ge=0)] = 0
    """Groups of earlier steps that a step learns from again, at most; 0: off."""
    replay_capacity: Count = 64
    """Groups kept for replay, at most; the oldest make room."""
    replay_max_age: Count = 8
    """Steps after which a group is no longer replayed."""
    replay_max_uses: Count = 1
    """Times that a group is replayed, at most."""

    def largest_group(self, num_generations: int) -> int:
        """The size that no group exceeds under group_sizes=difficulty."""
        return self.max_generations or 2 * num_generations


class SamplerConfig(Settings):
    """Who draws the answers that are learnt from; see docs/sampler.md."""

    shorthand: ClassVar[str] = "engine"

    engine: Literal["local", "vllm"] = "local"
    """This process (local), or vLLM servers (vllm); `sampler=vllm` says the same."""
    url: list[Text] = []
    """vLLM servers, http://host:port, one or several; with sampler=vllm."""
    start: bool = False
    """Start a server on this machine for the run, and stop it with the run, instead of url."""
    command: Text = "vllm"
    """The vllm program of its own environment, for start."""
    options: list[Text] = []
    """More options of `vllm serve`, such as --dtype=bfloat16, for start."""
    start_seconds: Positive = 900.0
    """How long a server may take to come up, for start."""
    sleep: bool = False
    """Let servers give their GPU memory back while this process learns on the same GPUs."""
    api_key_env: Text = "VLLM_API_KEY"
    """Environment variable that holds the servers' key, if they want one."""
    adapters: Path | None = None
    """Folder for versions of the adapter, or of all weights, which all servers can read; none: in
    the run folder."""
    seconds: Positive = 600.0
    """How long one request may take."""
    load_seconds: Positive = 60.0
    """How long a server may take to load a version."""
    patience: NotNegative = 120.0
    """How long work waits for a server to come back where none is there."""
    connections: Count = 64
    """Prompts that a server is given at once, at most."""
    max_staleness: Annotated[int, Field(ge=0)] = 0
    """Steps that are drawn ahead while one is learnt from, by weights that are at most so many
    steps old; 0: a step is drawn by the weights that learn from it."""
    gap_exact: Annotated[float | None, Field(ge=0)] = None
    """Difference in nats up to which a token counts as drawn by the learner itself; none: by the
    model's number type."""
    gap_cap: Positive = 2.0
    """Beyond it a token weighs learner / sampler, at most this much."""
    gap_mask: Annotated[float | None, Field(gt=0)] = None
    """An answer whose mean difference is above this is dropped; none: by the number type."""
    gap_stop: Annotated[float | None, Field(gt=0)] = None
    """A step whose mean difference is above this ends the run, with the cause; none: by the number
    type."""


_GROUPS: Groups = {
    "Settings": (
        *("data", "model", "adapter", "steps", "out", "resume", "seed", "rewards"),
        *("learning_rate", "num_generations", "prompts_per_step", "max_completion_length"),
    ),
    "Sampling": (
        *("temperature", "temperature_schedule", "temperature_end", "max_prompt_length", "stop"),
        *("schedules", "sampler"),
    ),
    "Algorithm (docs/algorithms.md)": (
        *("algorithm", "advantage", "ratio", "aggregation", "epsilon", "epsilon_high", "beta"),
        *("kl", "kl_in", "kl_correction", "resample_rounds", "overlong_share"),
        *("reward_normalisation", "importance_cap", "entropy_coef"),
        *("gamma", "gae_lambda", "value_coef", "value_epsilon"),
    ),
    "Optimisation and machine": (
        *("device", "tuning", "lora", "quantization", "warmup_steps"),
        *("learning_rate_schedule", "weight_decay"),
        *("max_grad_norm", "num_iterations", "minibatches", "forward"),
        *("activation_checkpointing", "shard"),
    ),
    "What is written down": (
        *("save_steps", "rollout_log_steps", "track", "eval_batch_size", "eval_steps"),
    ),
}


class RunSettings(Settings):
    """What every run can be told, whatever it trains.

    unread: which of its settings nothing reads, and where.
    """

    unread: ClassVar[tuple[Unread, ...]] = ()

    out: Path | None = None
    """New run folder; none: runs/<task>-<timestamp>."""
    resume: Path | None = None
    """Run folder whose training goes on."""
    seed: Seed = 0
    """Seed of every random choice in the run."""
    steps: Count = 60
    """Training steps, counted from the beginning of the run."""
    save_steps: Count = 20
    """Steps from one checkpoint to the next."""
    track: list[Tracking] = []
    """Where metrics go besides metrics.jsonl: tensorboard, wandb, swanlab, trackio."""

    @model_validator(mode="after")
    def _one_folder(self) -> RunSettings:
        if self.out is not None and self.resume is not None:
            raise ValueError("out and resume exclude each other: a resumed run stays in its folder")
        return self


class TrainConfig(RunSettings):
    """What every run of GRPO can be told, whatever the task; a task adds its own settings to these.

    The defaults train on a laptop's CPU.
    """

    groups: ClassVar[Groups] = _GROUPS
    unread: ClassVar[tuple[Unread, ...]] = OF_TRAINING

    # What is trained on, and where it goes.
    data: Path | None = None
    """File to train on; what it holds depends on the task."""

    # What is trained.
    model: Text = "smollm2-135m-instruct"
    """The packaged model's alias, a hub id or a folder."""
    adapter: Path | None = None
    """Run folder, or a checkpoint in one, whose adapter training begins with; none: a fresh one."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where the model computes."""
    tuning: Literal["lora", "full"] = "lora"
    """What training moves: an adapter (lora), or all weights (full)."""
    quantization: Literal["none", "nf4"] = "none"
    """Number type of the frozen weights under an adapter: the model's own, or four bits (nf4, by
    bitsandbytes, on CUDA)."""
    lora: LoraConfig = LoraConfig()
    """The adapter that is trained."""
    schedules: SchedulesConfig = SchedulesConfig()
    """Curriculum, unequal groups and replay; all off by default."""
    sampler: SamplerConfig = SamplerConfig()
    """Who draws: this process, or vLLM servers."""

    # What is sampled and how it is scored.
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
    stop: list[Text] = []
    """Texts that end an answer, as the end token does; the answer keeps them, nothing follows. As
    JSON where they hold a comma or end in a blank: stop='["a, b"]'."""
    rewards: str = ""
    """Rewards, weighted as name:weight,name:weight; built in, or file.py:name, or module:name."""

    # The algorithm: a name for the choices below it, which win over it where they are given.
    algorithm: Algorithm = "grpo"
    """Preset of everything from here to overlong_share; see docs/algorithms.md."""
    advantage: Advantage = "group"
    """What a reward is compared with: mean and spread of its group (group), the group's mean only
    (centred), the group's others (leave_one_out), mean and spread of the batch (batch), the group's
    mean and the batch's spread (group_batch), or, token by token, what a value head expected
    (gae)."""
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
    """Whether the KL is a term of the loss or taken off each rollout's reward (with gae: each
    token's)."""
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
    engine; none: the sampler is the policy itself, and differs by rounding only."""
    entropy_coef: NotNegative = 0.0
    """Weight of the entropy bonus."""

    # The value head, which advantage=gae trains beside the adapter.
    gamma: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Discount of what comes one token later."""
    gae_lambda: Share = 0.95
    """How far an advantage looks ahead: one token (0), or to the end of the rollout (1)."""
    value_coef: Positive = 0.1
    """Weight of the value loss."""
    value_epsilon: Positive = 0.2
    """Values that move further than this from those before the step have no gradient."""

    # The optimisation.
    learning_rate: Positive = 3e-4
    """Peak learning rate of AdamW; with tuning=full 1e-5 unless it is given."""
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
    minibatches: Count = 1
    """Parts that the groups of a step are cut into; in every pass, each has an optimiser step of
    its own."""
    forward: Literal["auto", "packed", "tree", "rows"] = "auto"
    """Score trees of tokens, shared tokens once, as one row (packed) or in two passes (tree), score
    row by row (rows), or as is cheapest (auto); with rows, sampling goes row by row too."""
    activation_checkpointing: bool | None = None
    """Keep no activations inside layers for the backward pass but compute them again: less memory,
    more time; none: on CUDA only."""
    shard: Literal["off", "fsdp2"] = "off"
    """Cut the weights of the layers among several processes (fsdp2), the frozen ones or with
    tuning=full all, or keep them whole in each."""

    # What is written down, and evaluation.
    rollout_log_steps: Count = 10
    """Steps from one readable sample of rollouts to the next."""
    eval_batch_size: Count = 32
    """Questions answered at once in evaluation."""
    eval_steps: Annotated[int | None, Field(ge=1)] = None
    """Steps from one measurement on held-out data to the next, by which the best checkpoint is kept
    as best/; none: off."""

    @model_validator(mode="before")
    @classmethod
    def _fill_from_algorithm(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        name = given.get("algorithm")
        preset = ALGORITHMS.get(name, {}) if isinstance(name, str) else {}
        rate = {"learning_rate": FULL_RATE} if given.get("tuning") == "full" else {}
        return {**rate, **preset, **given}

    @model_validator(mode="after")
    def _choices_fit(self) -> TrainConfig:
        if self.num_generations == 1 and self.advantage not in ("batch", "gae"):
            raise ValueError(
                f"num_generations=1 leaves advantage={self.advantage} nothing to compare with: set "
                "num_generations to at least 2, or advantage=batch or gae"
            )
        if self.num_generations == 1 and self.resample_rounds > 0:
            raise ValueError(
                "resample_rounds replaces groups whose rewards are all equal, and with "
                "num_generations=1 all are: set it to at least 2, or resample_rounds to 0"
            )
        if self.advantage == "batch" and self.num_generations * self.prompts_per_step == 1:
            raise ValueError(
                "advantage=batch has nothing to compare with in a batch of one rollout: set "
                "prompts_per_step or num_generations to at least 2"
            )
        if self.beta > 0 and (self.kl, self.kl_in, self.kl_correction) == ("k1", "loss", "off"):
            raise ValueError(
                "kl=k1 in the loss has no gradient on average: set kl_correction=ratio, "
                "kl_in=reward, or another kl"
            )
        if self.shard == "fsdp2" and self.forward == "rows":
            raise ValueError(
                "shard=fsdp2 computes over token trees: set forward=auto, or shard=off"
            )
        if self.minibatches > self.prompts_per_step:
            raise ValueError(
                f"minibatches={self.minibatches} cuts prompts_per_step={self.prompts_per_step} "
                "groups into more parts than there are: set it to at most that"
            )
        if (self.temperature_schedule == "constant") != (self.temperature_end is None):
            raise ValueError(
                "temperature_schedule and temperature_end go together: set both, or neither"
            )
        if self.temperature_schedule == "variance" and self.num_generations == 1:
            raise ValueError(
                "temperature_schedule=variance goes by the groups whose rewards are all equal, and "
                "with num_generations=1 all are: set it to at least 2, or "
                "temperature_schedule=linear"
            )
        return self

    @model_validator(mode="after")
    def _trained_fits(self) -> TrainConfig:
        if self.quantization != "none" and (self.tuning == "full" or self.shard != "off"):
            raise ValueError(
                f"quantization={self.quantization} is for frozen weights that each process holds "
                "whole: use it with tuning=lora and shard=off"
            )
        if self.tuning == "lora":
            return self
        if self.lora != LoraConfig():
            raise ValueError(
                "lora.* settings are for the adapter, and tuning=full trains none: leave them out, "
                "or set tuning=lora"
            )
        if self.adapter is not None:
            raise ValueError(
                "tuning=full begins with a whole model: merge the adapter into one (memograd merge "
                "RUN --out FOLDER) and give model=FOLDER instead of adapter"
            )
        if self.sampler.max_staleness and self.shard != "off":
            raise ValueError(
                "sampler.max_staleness needs older weights to score what they drew, and with "
                "tuning=full shard=fsdp2 no process has them: use max_staleness=0, or shard=off"
            )
        return self

    @model_validator(mode="after")
    def _sampler_fits(self) -> TrainConfig:
        sampler = self.sampler
        if sampler.engine == "local" and sampler != SamplerConfig():
            raise ValueError(
                "sampler.* settings are for servers: set sampler=vllm too, or leave them out"
            )
        if sampler.engine == "vllm" and bool(sampler.url) == sampler.start:
            raise ValueError(
                "sampler=vllm needs servers: give sampler.url=http://host:port, or "
                "sampler.start=true, not both"
            )
        if sampler.max_staleness and self.temperature_schedule != "constant":
            raise ValueError(
                "sampler.max_staleness draws steps ahead, at the temperature that is known then: "
                "leave temperature_schedule constant, or max_staleness 0"
            )
        if sampler.max_staleness and sampler.sleep:
            raise ValueError(
                "sampler.sleep lets servers rest while this process learns, and "
                "sampler.max_staleness lets them draw then: choose one"
            )
        if sampler.options and not sampler.start:
            raise ValueError(
                "sampler.options are for a server that memograd starts: set sampler.start=true, or "
                "give them to the server of sampler.url yourself"
            )
        return self

    @model_validator(mode="after")
    def _schedules_fit(self) -> TrainConfig:
        if self.schedules.replay_groups > 0 and self.num_generations == 1:
            raise ValueError(
                "schedules.replay_groups replays groups whose rewards differ, and with "
                "num_generations=1 there are none: set it to at least 2, or replay_groups to 0"
            )
        smallest = self.schedules.min_generations
        largest = self.schedules.largest_group(self.num_generations)
        if self.schedules.group_sizes == "difficulty" and not (
            smallest <= self.num_generations <= largest
        ):
            raise ValueError(
                f"schedules.group_sizes=difficulty gives groups num_generations="
                f"{self.num_generations} rollouts on average, which must lie between "
                f"schedules.min_generations={smallest} and schedules.max_generations={largest}"
            )
        return self
