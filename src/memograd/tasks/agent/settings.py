"""What `memograd train agent` and `memograd train served-agent` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from memograd.config.settings import Count, Positive, Settings, Text
from memograd.rewards import ENVIRONMENT
from memograd.tasks.registry import Option, Task
from memograd.tasks.text.settings import MODEL, ROWS_TO_EVALUATE, RowsTrainConfig


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


AGENT: Final = Task(
    name="agent",
    summary="Train a model to act over several turns, with tools.",
    settings=AgentTrainConfig,
    recipe="memograd.tasks.agent.recipe",
    options=(
        Option(
            "--environment",
            "episodes.environment",
            "FILE:CLASS",
            "What the agent acts in; see below.",
        ),
        Option("--data", "data", "FILE", "JSONL rows: a prompt, and what reset is given."),
        ROWS_TO_EVALUATE,
        Option("--rewards", "rewards", "SPEC", "Rewards beside the environment's own."),
        MODEL,
    ),
    examples=(
        "memograd train agent --environment my_env.py:GuessNumber --data rows.jsonl",
        "memograd train agent --environment my_env.py:GuessNumber --data rows.jsonl \\\n"
        "      --rewards environment:0.5,my_rewards.py:polite episodes.max_turns=5",
        "memograd train agent resume=runs/my-run steps=200",
    ),
    notes=(
        "An environment is a class as TRL's environment_factory takes it:\n"
        "  reset(**row)     begins an attempt; may return a text for the prompt\n"
        "  public methods   are the tools, with type hints and a docstring\n"
        "  get_reward()     what the attempt was worth: the reward named environment",
    ),
)

SERVED_AGENT: Final = Task(
    name="served-agent",
    summary="Train the model behind an agent that only knows a base URL.",
    settings=ServedTrainConfig,
    recipe="memograd.tasks.agent.served",
    options=(
        Option("--agent", "served.agent", "FILE:FUNCTION", "The agent; see below."),
        Option("--data", "data", "FILE", "JSONL rows, each with a prompt: its tasks."),
        ROWS_TO_EVALUATE,
        Option(
            "--rewards", "rewards", "SPEC", "What is rewarded; else what the agent says itself."
        ),
        MODEL,
    ),
    examples=(
        "memograd train served-agent --agent my_agent.py:run --data rows.jsonl",
        "memograd train served-agent --agent 'exec:python my_agent.py' --data rows.jsonl",
        "memograd train served-agent --agent team.py:run --data rows.jsonl \\\n"
        "      served.optimize_agents=writer",
        "memograd train served-agent resume=runs/my-run steps=200",
    ),
    notes=(
        "An agent is an async function, or a program (docs/gateway.md):\n"
        "  async def run(task: dict, base_url: str, api_key: str) -> float | None",
    ),
    extra="train,gateway",
)
