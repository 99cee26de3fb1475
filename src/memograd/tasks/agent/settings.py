"""What `memograd train agent` and `memograd train served-agent` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from memograd.config.settings import Count, Positive, Settings, Text
from memograd.rewards import ENVIRONMENT
from memograd.tasks.text.settings import RowsTrainConfig


class ChatTemplateConfig(Settings):
    """How a model is shown its tools."""

    chat_template: Path | None = None
    """Jinja file of a chat template that shows tools; none: the model's own, or a built-in one for
    models that mark their turns with <|im_start|>."""


class EpisodesConfig(ChatTemplateConfig):
    """What an agent acts in, and how far it may go in one attempt."""

    environment: Text | None = None
    """Class of the environment, file.py:Name or module:Name; several by commas, chosen by the rows'
    column environment."""
    max_turns: Count = 8
    """Actions in an episode, at most."""
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    """Tokens of an episode's conversation, at most; none: the model's context length."""
    max_seconds: Annotated[float | None, Field(gt=0)] = None
    """Wall time for a step's episodes, looked at between turns; a run with this limit cannot be
    repeated to the bit."""
    max_failed_turns: Annotated[int | None, Field(ge=1)] = None
    """Turns in a row whose tool calls may fail, at most; none: no limit."""


class ServedConfig(Settings):
    """The agent of your own that is trained through the gateway, and how it runs."""

    agent: Text | None = None
    """An async function, file.py:name or module:name, or a program, exec:python my_agent.py."""
    optimize_agents: list[Text] = []
    """Names of the agents whose calls are trained; empty: all."""
    concurrency: Count = 8
    """Attempts that run at once."""
    seconds: Positive = 600.0
    """Time of one attempt, at most."""
    retries: Annotated[int, Field(ge=0)] = 1
    """Further tries for an attempt that failed."""
    ends: list[Text] = [
        "MaxTurnsExceeded",
        "ModelBehaviorError",
        "GraphRecursionError",
        "context_length_exceeded",
    ]
    """Exceptions (or codes of OpenAI's errors) with which an attempt is over, and not failed, where
    no reward is the agent's own."""
    store: Text | None = None
    """Where calls are written down, as a URL; none: traces.db in the run folder."""


class AgentTrainConfig(RowsTrainConfig):
    """Everything that `memograd train agent` can be told."""

    episodes: EpisodesConfig = EpisodesConfig()
    """The environment, and the limits of an attempt."""


class ServedTrainConfig(RowsTrainConfig):
    """Everything that `memograd train served-agent` can be told."""

    served: ServedConfig = ServedConfig()
    """The agent, and how it runs."""
    episodes: ChatTemplateConfig = ChatTemplateConfig()
    """How the model is shown tools."""
    rewards: str = ENVIRONMENT
    """Rewards, weighted as name:weight,name:weight; environment is what the agent says itself."""
    max_completion_length: Count = 256
    """Tokens of one call's answer, at most."""
