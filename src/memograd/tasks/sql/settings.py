"""What `memograd train sql` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from memograd.config.settings import Count, Settings
from memograd.config.unread import Unread
from memograd.tasks.agent.settings import (
    AgentTrainConfig,
    EpisodesConfig,
    ServedConfig,
    ServedTrainConfig,
)
from memograd.tasks.registry import Option, Task
from memograd.tasks.text.settings import MODEL

DEFAULT_REWARDS = "memograd.tasks.sql.rewards:execution:1,evidence:0.5,valid_sql:0.1"


class SqlConfig(Settings):
    """What the SQL agent asks, and how much of it is measured."""

    database: Path | None = None
    """SQLite file that is asked; none: the medical sample that comes with memograd."""
    apart_from: Path | None = None
    """Questions of which none may share a statement or evidence with one that is trained on: those
    that do are left out of training."""
    max_eval: Annotated[int | None, Field(ge=1)] = None
    """Held-out questions to measure on, at most; none: all of them."""


class SqlEpisodesConfig(EpisodesConfig):
    """How far an attempt at a question may go."""

    environment: Literal["memograd.tasks.sql.tool:SqlEnvironment"] = (
        "memograd.tasks.sql.tool:SqlEnvironment"
    )
    """The database's own tool."""
    max_turns: Count = 4
    """Actions of an attempt, at most."""


class SqlTrainConfig(AgentTrainConfig, ServedTrainConfig):
    """Everything that `memograd train sql` can be told."""

    unread: ClassVar[tuple[Unread, ...]] = (
        *AgentTrainConfig.unread,
        Unread(
            tuple(f"served.{name}" for name in ServedConfig.model_fields if name != "agent"),
            lambda c: c.served.agent is None,
            "memograd's own agent plays, where served.agent names none",
        ),
        Unread(
            ("episodes.max_turns", "episodes.max_seconds", "episodes.max_failed_turns"),
            lambda c: c.served.agent is not None,
            "the agent of served.agent ends its attempts itself",
        ),
    )

    data: Path | None = None
    """Questions with gold SQL; none: the sample's own."""
    sql: SqlConfig = SqlConfig()
    """The database, and how much is measured."""
    episodes: SqlEpisodesConfig = SqlEpisodesConfig()
    """How far an attempt may go."""
    rewards: str = DEFAULT_REWARDS
    """Rewards, weighted as name:weight,name:weight; built in, or file.py:name, or module:name."""
    max_completion_length: Count = 160
    """Tokens of an action, at most."""


CI_FAST: Final = (
    *("steps=1", "prompts_per_step=1", "num_generations=2", "max_completion_length=32"),
    *("sql.max_eval=2", "rollout_log_steps=1", "warmup_steps=0"),
)

TASK: Final = Task(
    name="sql",
    summary="Train a model to answer questions by asking a database in SQL.",
    settings=SqlTrainConfig,
    recipe="memograd.tasks.sql.recipe",
    options=(
        Option("--db", "sql.database", "FILE", "SQLite file to ask; else the medical sample."),
        Option("--data", "data", "FILE", "Questions with gold SQL; else the sample's own."),
        Option("--eval", "text.eval_data", "FILE", "Questions to measure on; else held-out ones."),
        Option(
            "--apart-from",
            "sql.apart_from",
            "FILE",
            "Leave out training questions that share evidence or a statement with FILE's.",
        ),
        Option("--rewards", "rewards", "SPEC", "What is rewarded; see below."),
        MODEL,
        Option(
            "--agent",
            "served.agent",
            "FILE:FUNCTION",
            "An agent of your own that asks, through the gateway; else memograd's.",
        ),
    ),
    examples=(
        "memograd train sql --ci-fast",
        "memograd train sql --agent examples/sql/agent_openai.py:run --ci-fast",
        "memograd train sql --model Qwen/Qwen2.5-0.5B-Instruct steps=100",
        "memograd train sql --db medical.sqlite --data questions.jsonl adapter=runs/sft",
        "memograd train sql resume=runs/my-run steps=200",
    ),
    notes=(f"Rewards, unless --rewards names others (docs/sql-agent.md):\n  {DEFAULT_REWARDS}",),
    presets={"--ci-fast": ("One small step, to see that everything works.", CI_FAST)},
    extra="train,sql",
)
