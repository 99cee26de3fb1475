"""`memograd optimize TASK`: prompts instead of weights, by DSPy's optimisers over the gateway.

The room, and DSPy and torch with it, arrives when the command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memograd.cli.help import epilog, setting_paragraphs
from memograd.cli.training import GivenSettings, SettingsFile, room, told
from memograd.optimize.settings import OptimizeConfig

app = typer.Typer(no_args_is_help=True)


@app.callback()
def optimize() -> None:
    """Optimise prompts beside weights (needs memograd[gateway,optimize])."""


@app.command(
    "memory-qa",
    epilog=epilog(
        "Examples:\n"
        "  memograd optimize memory-qa --optimizer simba --data locomo.json --budget 200\n"
        "  memograd optimize memory-qa --optimizer bootstrap,simba --data locomo.json \\\n"
        "      --train conv-26 --eval conv-30 --run runs/my-run\n"
        "  memograd optimize memory-qa --optimizer gepa --data locomo.json \\\n"
        "      prompt.model=gpt-5-mini evaluation.model=gpt-5-mini\n"
        "  memograd optimize memory-qa --program simba-0.json --data locomo.json",
        "Environment:\n"
        "  MEMOGRAD_PROMPT_KEY      key of the server behind prompt.url\n"
        "  MEMOGRAD_EVALUATION_KEY  key of the server behind evaluation.url",
        *setting_paragraphs(OptimizeConfig),
    ),
)
def memory_qa(
    settings: GivenSettings = None,
    optimizer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="bootstrap, simba, miprov2, gepa; several by commas."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="CALLS", help="Calls of the answering model, an optimiser and seed."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="FILE", help="Conversations (docs/data.md).")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(metavar="IDS", help="Conversations to optimise on, by commas."),
    ] = None,
    evaluate: Annotated[
        list[str] | None,
        typer.Option("--eval", metavar="IDS", help="Conversations to measure on, by commas."),
    ] = None,
    program: Annotated[
        list[str] | None,
        typer.Option(metavar="FILES", help="Saved programs to measure, by commas."),
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option(metavar="RUNS", help="Trained runs to measure, by commas.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New folder of programs and table.")
    ] = None,
    config: SettingsFile = None,
) -> None:
    """Optimise the prompt that answers from a memory, and measure it beside trained weights."""
    lists = {
        "optimizer": optimizer,
        "train": train,
        "eval": evaluate,
        "program": program,
        "run": run,
    }
    options = {
        **{"budget": budget, "data": data, "out": out},
        # An option that is given twice means both.
        **{name: ",".join(values) for name, values in lists.items() if values},
    }
    resolved = told(OptimizeConfig, options, settings, config)
    folder = room("optimize.memory_qa", "gateway,optimize").optimize(resolved)
    typer.echo(f"Programs and table are in {folder}")
