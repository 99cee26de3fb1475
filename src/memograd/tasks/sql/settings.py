"""What `memograd train sql` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from memograd.config.settings import Count, Settings
from memograd.tasks.agent.settings import AgentTrainConfig, EpisodesConfig, ServedTrainConfig

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
