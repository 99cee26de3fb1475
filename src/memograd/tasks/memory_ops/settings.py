"""The settings of memory-ops: of training (`OperationsConfig`), measuring (`OperationsEvaluation`)
and learning from feedback (`OnlineConfig`).

Invariants: resolved settings survive their JSON form unchanged, so `config.json` is the whole
recipe of a run; what does not fit is one sentence that names the setting.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator

from memograd.config.settings import (
    Count,
    Groups,
    NotNegative,
    Positive,
    RunSettings,
    Seed,
    Settings,
    Share,
    Text,
)
from memograd.config.unread import Unread
from memograd.tasks.registry import Option, Task

Ks = Annotated[list[Count], Field(min_length=1)]
Budgets = Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(min_length=1)]


class OperationsEvaluation(Settings):
    """On what a policy is measured, beside whom, and how far."""

    data: list[Path] = []
    """Files to measure on: life logs or conversations with questions; none: the run's own."""
    out: Path | None = None
    """Folder for the tables; none: the run's, or a folder in it where data are given."""
    heads: list[Text] = []
    """Other trained heads for the table, each NAME=FOLDER."""
    ks: Ks = [5, 10]
    """Numbers of items found for which evidence recall is measured."""
    budgets: Budgets = [1.0, 0.5, 0.25]
    """Shares of all tokens that the memory may hold, a table each; 1 is no limit."""
    limit_logs: Annotated[int | None, Field(ge=1)] = None
    """Measure on the first so many logs only."""
    manager_model: Annotated[str | None, Field(min_length=1)] = None
    """Chat model that decides by prompt: endpoint, or a local model; slow."""
    reader: Annotated[str | None, Field(min_length=1)] = None
    """Chat model that answers from what was found: endpoint, or a local model."""
    limit_questions: Count = 60
    """Questions that the reader answers per method, spread over all."""
    judge: Literal["strict", "lenient"] | None = None
    """Prompt by which the configured endpoint judges the reader's answers."""


class OnlineConfig(Settings):
    """Everything that learning from feedback can be told."""

    steps: Count = 12
    """Training steps; each walks through logs_per_step logs."""
    logs: Count = 8
    """Generated logs that are mixed in, so that what was learnt before is not forgotten."""
    eval_logs: Count = 6
    """Generated logs of held-out forms that the new version is judged on."""
    logs_per_step: Count = 4
    """Logs in a step, the user's own among them as often as generated ones."""
    learning_rate: Positive = 3e-4
    """Peak learning rate of AdamW; falls to a tenth in a cosine."""
    held_out: Share = 0.25
    """Share of the feedback that is never trained on and judges every new version."""
    tolerance: Share = 0.005
    """How much worse than now, in answerable questions, a new version may be on generated logs;
    on held-out feedback it may not be worse at all."""
    seed: Seed = 0
    """Seed of every random choice."""


DecisionAlgorithm = Literal["grpo", "reinforce", "ppo", "dqn", "supervised"]


_COMPARED: Final = "only algorithm=grpo compares operations, or walks, with each other"
_CLIPPED: Final = "the loss of algorithm=dqn, and of supervised, has neither ratio nor entropy"

_UNREAD: Final = (
    Unread(("logs",), lambda c: bool(c.data), "it is of generated logs, and data names others"),
    Unread(
        ("eval_logs",),
        lambda c: bool(c.eval_data),
        "it is of generated logs, and eval_data names others",
    ),
    Unread(
        ("languages",),
        lambda c: bool(c.data and c.eval_data),
        "it is of generated logs, and data and eval_data name others",
    ),
    Unread(("num_generations", "advantage"), lambda c: c.algorithm != "grpo", _COMPARED),
    Unread(
        ("explore",),
        lambda c: c.algorithm != "grpo" or c.credit != "delta_qa",
        "only algorithm=grpo with credit=delta_qa explores beside its policy",
    ),
    Unread(
        ("trials",),
        lambda c: c.algorithm in ("grpo", "supervised"),
        "only algorithm=reinforce, ppo and dqn try operations by it",
    ),
    Unread(("clip", "entropy_coef"), lambda c: c.algorithm in ("dqn", "supervised"), _CLIPPED),
    Unread(
        ("gamma",),
        lambda c: c.algorithm in ("grpo", "supervised"),
        "only algorithm=reinforce, ppo and dqn count later rewards",
    ),
    Unread(
        ("gae_lambda",),
        lambda c: c.algorithm != "ppo" or c.gamma == 0,
        "only algorithm=ppo with gamma above 0 looks ahead by it",
    ),
    Unread(
        ("epsilon", "epsilon_decay", "epsilon_min"),
        lambda c: c.algorithm != "dqn",
        "only algorithm=dqn takes random operations by it",
    ),
    Unread(
        ("change_cost",),
        lambda c: c.reward != "delta_qa",
        "it is a part of reward=delta_qa",
    ),
)


class OperationsConfig(RunSettings):
    """Everything that training an operation head can be told; the defaults take minutes."""

    unread: ClassVar[tuple[Unread, ...]] = _UNREAD
    groups: ClassVar[Groups] = {
        "Settings": (
            *("data", "eval_data", "languages", "logs", "eval_logs", "steps", "out", "resume"),
            *("seed", "embedder", "policy", "algorithm", "reward"),
        ),
        "What is rewarded": (
            *("credit", "view", "top_k", "misled_cost", "token_cost", "change_cost"),
        ),
        "How it learns": (
            *("logs_per_step", "num_generations", "trials", "explore", "advantage", "passes"),
            *("minibatch", "learning_rate", "weight_decay", "clip", "entropy_coef", "gamma"),
            *("gae_lambda", "epsilon", "epsilon_decay", "epsilon_min"),
        ),
        "Network": ("width", "layers", "heads"),
        "What is written down": ("save_steps", "track"),
    }

    # What is trained on, and where it goes.
    data: list[Path] = []
    """Files to train on: life logs, or conversations with questions; none: generated logs."""
    eval_data: list[Path] = []
    """Files to evaluate on; none: generated logs of held-out forms."""
    languages: Annotated[list[Literal["en", "zh"]], Field(min_length=1)] = ["en"]
    """Languages of generated logs."""
    logs: Count = 96
    """Generated logs to train on."""
    eval_logs: Count = 12
    """Generated logs to evaluate on."""
    view: Literal["statements", "turns"] = "statements"
    """What a fact says: what a reader writes down, or the raw turn."""
    embedder: Text = "minilm"
    """e5, minilm, st:<model id or folder>: whose vectors the policy reads; e5 for Chinese."""
    policy: Path | None = None
    """Trained head that training begins with; none: a fresh one."""

    # The network.
    width: Annotated[int, Field(ge=8)] = 96
    """Width of the Transformer; a multiple of heads."""
    layers: Count = 2
    """Layers of the Transformer."""
    heads: Count = 4
    """Attention heads."""

    # How it learns.
    algorithm: DecisionAlgorithm = "grpo"
    """grpo compares operations on the same state; reinforce, ppo, dqn try one a state; supervised
    copies the gold operations of the logs."""
    credit: Literal["delta_qa", "trajectory", "mem_alpha_original"] = "delta_qa"
    """What a decision is rewarded by: its own effect on later questions, or one reward shared by
    the whole walk (all questions answered), or that of Mem-alpha."""
    steps: Count = 60
    """Training steps; each walks through logs_per_step logs."""
    logs_per_step: Count = 4
    """Logs in a step."""
    num_generations: Annotated[int, Field(ge=2)] = 16
    """Operations tried on the same state (grpo), or walks through the same log (trajectory)."""
    trials: Count = 1
    """Operations tried on the same state (reinforce, ppo, dqn); more than one needs gamma=0, since
    a walk goes on from one of them only."""
    explore: Share = 0.25
    """Share of the group drawn evenly over the kinds of operation, not from the policy (grpo)."""
    advantage: Literal["group", "centred", "leave_one_out"] = "centred"
    """What a reward is compared with: mean and spread of its group, or its mean, or its others."""
    passes: Count = 3
    """Optimisation passes over the decisions of a step."""
    minibatch: Count = 256
    """Decisions in one gradient."""
    learning_rate: Positive = 2e-3
    """Peak learning rate of AdamW; falls to a tenth in a cosine."""
    weight_decay: NotNegative = 0.3
    """Decoupled weight decay of AdamW."""
    clip: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """The probability ratio is clipped to 1 plus or minus this (grpo, reinforce, ppo)."""
    entropy_coef: NotNegative = 0.003
    """Weight of the entropy bonus."""
    gamma: Share = 0.0
    """What later rewards of a walk count (reinforce, ppo, dqn); delta_qa already looks ahead."""
    gae_lambda: Share = 0.95
    """Trade of bias for variance in PPO's advantages (arXiv:1506.02438)."""
    epsilon: Share = 1.0
    """Share of random operations at first (dqn)."""
    epsilon_decay: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Factor of epsilon after each step (dqn)."""
    epsilon_min: Share = 0.05
    """Least share of random operations (dqn)."""

    # What is rewarded.
    reward: Text = "delta_qa"
    """What one operation earns: delta_qa, by later questions; opportunity_cost, at once; or your
    own calculate_reward(action, new_fact, retrieved_facts), as FILE.py or FILE.py:FUNCTION."""
    top_k: Count = 5
    """Items that a question may find."""
    misled_cost: Share = 0.5
    """What one misleading item that is found takes of an answer."""
    token_cost: NotNegative = 0.004
    """What one token more in the memory costs, in answered questions."""
    change_cost: NotNegative = 0.02
    """What any change of the memory costs, in answered questions."""

    @model_validator(mode="after")
    def _fits(self) -> OperationsConfig:
        if self.width % self.heads:
            raise ValueError(
                f"width={self.width} is not a multiple of heads={self.heads}: choose one that is"
            )
        if self.trials > 1 and self.gamma > 0:
            raise ValueError(
                f"trials={self.trials} tries operations whose later rewards nobody sees, and"
                f" gamma={self.gamma:g} counts them: set trials=1 or gamma=0"
            )
        if self.credit != "delta_qa" and self.algorithm != "grpo":
            raise ValueError(
                f"credit={self.credit} compares whole walks, which only algorithm=grpo does: "
                "choose credit=delta_qa or algorithm=grpo"
            )
        if self.reward != "delta_qa" and self.algorithm == "supervised":
            raise ValueError(
                f"reward={self.reward} moves nothing with algorithm=supervised, which copies gold"
                " operations: leave one of them out"
            )
        if self.reward != "delta_qa" and self.credit != "delta_qa":
            raise ValueError(
                f"credit={self.credit} rewards whole walks, but reward={self.reward} is of single"
                " operations: leave one of them out"
            )
        return self


TASK: Final = Task(
    name="memory-ops",
    summary="Train what a memory adds, updates, deletes and ignores, by later questions.",
    settings=OperationsConfig,
    recipe="memograd.tasks.memory_ops.recipe",
    options=(
        Option("--data", "data", "FILES", "Logs or conversations to train on; else generated."),
        Option("--eval", "eval_data", "FILES", "What to measure on."),
    ),
    examples=(
        "memograd train memory-ops",
        "memograd train memory-ops languages=en,zh embedder=e5 logs=64 steps=60",
        "memograd train memory-ops --data my-logs.jsonl --eval others.jsonl",
        "memograd train memory-ops algorithm=ppo steps=80",
        "memograd train memory-ops resume=runs/my-run steps=200",
    ),
    notes=(
        "The trained policy is the folder final of the run:\n"
        '  Memory.open("memories/", policy="runs/my-run/final", embedder="minilm")',
    ),
)
