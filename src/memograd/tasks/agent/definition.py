"""The task `agent`: an environment with tools, rows to reset it with, any chat model."""

from __future__ import annotations

from typing import Final

from memograd.tasks.agent.settings import AgentTrainConfig
from memograd.tasks.registry import Option, Task
from memograd.tasks.text.definition import MODEL, ROWS_TO_EVALUATE

TASK: Final = Task(
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
