"""The commands that train: `train`, `evaluate` and `demo`, each over a verb of `memograd.tasks`.

The recipes, and torch with them, arrive when a command runs.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from memograd.cli.help import epilog, setting_lines
from memograd.config import load_config
from memograd.config.load import load_settings
from memograd.errors import BadInput
from memograd.tasks.memory_ops.settings import OperationsEvaluation

app = typer.Typer()
train_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    train_app,
    name="train",
    help="Train a policy on a task.",
    epilog=epilog(
        "Examples:\n"
        "  memograd train memory-qa --help\n"
        "  memograd train memory-qa steps=20\n"
        "  memograd train text --data prompts.jsonl --rewards my_rewards.py:exact\n"
        "  memograd train agent --environment my_env.py:GuessNumber --data rows.jsonl"
    ),
)


@train_app.command(
    "memory-qa",
    epilog=epilog(
        "Examples:\n"
        "  memograd train memory-qa --data locomo.json --train conv-26 --eval conv-30\n"
        "  memograd train memory-qa --config run.toml steps=100 lora.r=32\n"
        "  memograd train memory-qa resume=runs/my-run steps=200",
        setting_lines(),
    ),
)
def train_memory_qa(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings that win over the file and options."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Conversations (docs/data.md); else generated ones."),
    ] = None,
    train: Annotated[
        str | None, typer.Option(metavar="IDS", help="Conversations to train on: conv-26,conv-30.")
    ] = None,
    evaluate: Annotated[
        str | None, typer.Option("--eval", metavar="IDS", help="Conversations to evaluate on.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in a TOML file.")
    ] = None,
) -> None:
    """Train a model to answer from what is remembered."""
    options = {"data": data, "train": train, "eval": evaluate}
    overrides = [f"{key}={value}" for key, value in options.items() if value is not None]
    resolved = load_config(config, [*overrides, *(settings or [])])
    memory_qa = recipe("tasks.memory_qa.recipe")

    run = memory_qa.train(resolved)
    say_where(run)


@train_app.command(
    "text",
    epilog=epilog(
        "Examples:\n"
        "  memograd train text --data prompts.jsonl --rewards my_rewards.py:exact,length:0.2\n"
        "  memograd train text --data sums.jsonl --rewards numeric_match --model ./qwen\n"
        "  memograd train text --config run.toml --eval held-out.jsonl steps=100\n"
        "  memograd train text resume=runs/my-run steps=200",
        "Rewards, by commas, a weight behind a colon:\n"
        "  exact_match                    a built-in reward\n"
        "  'length(low=40, high=60):0.2'  one with settings\n"
        "  my_rewards.py:exact,polite     functions of a Python file\n"
        "  my_package.rewards:exact       functions of a module",
        setting_lines(),
    ),
)
def train_text(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings that win over the file and options."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rows to train on: JSONL, each with a prompt."),
    ] = None,
    evaluate: Annotated[
        Path | None,
        typer.Option("--eval", metavar="FILE", help="Rows to evaluate on; else a part of --data."),
    ] = None,
    rewards: Annotated[
        str | None, typer.Option(metavar="SPEC", help="What is rewarded; see below.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A causal language model: hub id or folder.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in a TOML file.")
    ] = None,
) -> None:
    """Train a model on prompts of any kind by reward functions."""
    options = {"data": data, "text.eval_data": evaluate, "rewards": rewards, "model": model}
    overrides = [f"{key}={value}" for key, value in options.items() if value is not None]
    resolved = load_config(config, [*overrides, *(settings or [])])
    text = recipe("tasks.text.recipe")

    run = text.train(resolved)
    say_where(run)


@train_app.command(
    "agent",
    epilog=epilog(
        "Examples:\n"
        "  memograd train agent --environment my_env.py:GuessNumber --data rows.jsonl\n"
        "  memograd train agent --environment my_env.py:GuessNumber --data rows.jsonl \\\n"
        "      --rewards environment:0.5,my_rewards.py:polite episodes.max_turns=5\n"
        "  memograd train agent resume=runs/my-run steps=200",
        "An environment is a class as TRL's environment_factory takes it:\n"
        "  reset(**row)     begins an attempt; may return a text for the prompt\n"
        "  public methods   are the tools, with type hints and a docstring\n"
        "  get_reward()     what the attempt was worth: the reward named environment",
        setting_lines(),
    ),
)
def train_agent(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings that win over the file and options."),
    ] = None,
    environment: Annotated[
        str | None, typer.Option(metavar="FILE:CLASS", help="What the agent acts in; see below.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSONL rows: a prompt, and what reset is given."),
    ] = None,
    evaluate: Annotated[
        Path | None,
        typer.Option("--eval", metavar="FILE", help="Rows to evaluate on; else a part of --data."),
    ] = None,
    rewards: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="Rewards beside the environment's own."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A causal language model: hub id or folder.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in a TOML file.")
    ] = None,
) -> None:
    """Train a model to act over several turns, with tools."""
    options = {
        "episodes.environment": environment,
        "data": data,
        "text.eval_data": evaluate,
        "rewards": rewards,
        "model": model,
    }
    overrides = [f"{key}={value}" for key, value in options.items() if value is not None]
    resolved = load_config(config, [*overrides, *(settings or [])])
    agent = recipe("tasks.agent.recipe")

    run = agent.train(resolved)
    say_where(run)


@train_app.command(
    "sql",
    epilog=epilog(
        "Examples:\n"
        "  memograd train sql --ci-fast\n"
        "  memograd train sql --agent examples/sql/agent_openai.py:run --ci-fast\n"
        "  memograd train sql --model Qwen/Qwen2.5-0.5B-Instruct steps=100\n"
        "  memograd train sql --db medical.sqlite --data questions.jsonl adapter=runs/sft\n"
        "  memograd train sql resume=runs/my-run steps=200",
        "Rewards, unless --rewards names others (docs/sql-agent.md):\n"
        "  memograd.tasks.sql.rewards:execution:1,evidence:0.5,valid_sql:0.1",
        setting_lines(),
    ),
)
def train_sql(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings that win over the file and options."),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", help="SQLite file to ask; else the medical sample."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Questions with gold SQL; else the sample's own."),
    ] = None,
    evaluate: Annotated[
        Path | None,
        typer.Option("--eval", metavar="FILE", help="Questions to measure on; else held-out ones."),
    ] = None,
    rewards: Annotated[
        str | None, typer.Option(metavar="SPEC", help="What is rewarded; see below.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A causal language model: hub id or folder.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in a TOML file.")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:FUNCTION",
            help="An agent of your own that asks, through the gateway; else memograd's.",
        ),
    ] = None,
    ci_fast: Annotated[
        bool, typer.Option("--ci-fast", help="One small step, to see that everything works.")
    ] = False,
) -> None:
    """Train a model to answer questions by asking a database in SQL."""
    options = {
        "served.agent": agent,
        "sql.database": database,
        "data": data,
        "text.eval_data": evaluate,
        "rewards": rewards,
        "model": model,
    }
    sql = recipe("tasks.sql.recipe")
    overrides = [*(sql.CI_FAST if ci_fast else ())]
    overrides += [f"{key}={value}" for key, value in options.items() if value is not None]
    resolved = load_config(config, [*overrides, *(settings or [])])

    run = sql.train(resolved)
    say_where(run)


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd evaluate --run runs/my-run\n"
        "  memograd evaluate --run runs/my-sql-run --data more-questions.jsonl\n"
        "  memograd evaluate --run runs/my-run --data locomo.json --conversation conv-30\n"
        "  memograd evaluate --run runs/my-run --baselines\n"
        "  memograd evaluate --policy heads/ours --data locomo.json,logs.jsonl ks=10\n"
        "  memograd evaluate --run runs/ops --with supervised=runs/sup/final budgets=0.5",
        "For policies over memory operations (train memory-ops) only:",
        setting_lines(OperationsEvaluation),
    )
)
def evaluate(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings for memory-ops; see below."),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Folder of a training run.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of a head alone, without its run.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Conversations, rows or questions, as in training; else its own. Several, by"
            " commas, for memory-ops.",
        ),
    ] = None,
    conversation: Annotated[
        str, typer.Option(metavar="IDS", help="Conversations to ask about; else the run's own.")
    ] = "",
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines",
            help="Also measure other prompts: no memory, last turns (memory-ops: always).",
        ),
    ] = False,
    others: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME=DIR", help="Another trained head for the table."),
    ] = None,
) -> None:
    """Measure a run before and after training, on what it was not trained on."""
    if (run is None) == (policy is None):
        raise BadInput("Say what is measured: --run RUN, or --policy DIR for a head alone.")
    conversations = [name.strip() for name in conversation.split(",") if name.strip()]
    files = [name.strip() for name in (data or "").split(",") if name.strip()]
    if run is not None and not settings and not others and len(files) < 2:
        given = Path(files[0]) if files else None
        recipe("tasks.evaluate").evaluate(run, given, conversations, baselines)
        return
    typed = [f"data={','.join(files)}"] if files else []
    typed += [f"heads={','.join(others)}"] if others else []
    options = load_settings(OperationsEvaluation, None, [*typed, *(settings or [])])
    measuring = recipe("tasks.memory_ops.evaluate")
    measure = measuring.evaluate_head if run is None else measuring.evaluate_run
    measure(run or policy, options, conversations=conversations)


@app.command(epilog=epilog("Examples:\n  memograd demo\n  memograd demo --steps 10 --out demo-run"))
def demo(
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Life logs or conversations; else generated ones."),
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="Training steps.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="New folder of the run.")] = None,
) -> None:
    """Train what a memory keeps for two minutes, show before and after."""
    recipe("tasks.memory_ops.demo").demo(data, steps, out)


@app.command(
    "demo-lm",
    epilog=epilog("Examples:\n  memograd demo-lm\n  memograd demo-lm --steps 3 --out demo-run"),
)
def demo_lm(
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Conversations (docs/data.md); else generated ones."),
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="Training steps.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="New folder of the run.")] = None,
) -> None:
    """Train a language model to answer from a memory, show before and after."""
    recipe("tasks.memory_qa.recipe").demo(data, steps, out)


def say_where(run: Path) -> None:
    """Say where the run is, once: of several processes (torchrun), the first one speaks."""
    if os.environ.get("RANK", "0") == "0":
        typer.echo(f"The run is in {run}")


def recipe(name: str) -> ModuleType:
    """One of the recipes, which need the training libraries."""
    try:
        return importlib.import_module(f"memograd.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("memograd"):
            raise
        raise BadInput(
            f"This command needs the package {error.name}; run pip install 'memograd[train]'."
        ) from error
