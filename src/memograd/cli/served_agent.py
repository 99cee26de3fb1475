"""`memograd train served-agent`: unchanged agents of any framework, trained through the gateway.

The command is a few lines over `memograd.tasks.agent.served`. The recipes, and torch with them,
arrive when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memograd.cli.help import epilog, setting_lines
from memograd.cli.training import recipe, say_where, train_app
from memograd.config import load_config


@train_app.command(
    "served-agent",
    epilog=epilog(
        "Examples:\n"
        "  memograd train served-agent --agent my_agent.py:run --data rows.jsonl\n"
        "  memograd train served-agent --agent 'exec:python my_agent.py' --data rows.jsonl\n"
        "  memograd train served-agent --agent team.py:run --data rows.jsonl \\\n"
        "      served.optimize_agents=writer\n"
        "  memograd train served-agent resume=runs/my-run steps=200",
        "An agent is an async function, or a program (docs/gateway.md):\n"
        "  async def run(task: dict, base_url: str, api_key: str) -> float | None",
        setting_lines(),
    ),
)
def train_served_agent(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings that win over the file and options."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="FILE:FUNCTION", help="The agent; see below.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSONL rows, each with a prompt: its tasks.")
    ] = None,
    evaluate: Annotated[
        Path | None,
        typer.Option("--eval", metavar="FILE", help="Rows to evaluate on; else a part of --data."),
    ] = None,
    rewards: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="What is rewarded; else what the agent says itself."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A causal language model: hub id or folder.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in a TOML file.")
    ] = None,
) -> None:
    """Train the model behind an agent that only knows a base URL."""
    options = {
        "served.agent": agent,
        "data": data,
        "text.eval_data": evaluate,
        "rewards": rewards,
        "model": model,
    }
    overrides = [f"{key}={value}" for key, value in options.items() if value is not None]
    resolved = load_config(config, [*overrides, *(settings or [])])
    say_where(recipe("tasks.agent.served").train(resolved))
