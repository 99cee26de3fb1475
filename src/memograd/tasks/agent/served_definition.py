"""The task `served-agent`: unchanged agents of any framework, trained through the gateway."""

from __future__ import annotations

from typing import Final

from memograd.tasks.agent.settings import ServedTrainConfig
from memograd.tasks.registry import Option, Task
from memograd.tasks.text.definition import MODEL, ROWS_TO_EVALUATE

TASK: Final = Task(
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
