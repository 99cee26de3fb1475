"""The task `sql`: a database, questions about it, any chat model."""

from __future__ import annotations

from typing import Final

from memograd.tasks.registry import Option, Task
from memograd.tasks.sql.settings import DEFAULT_REWARDS, SqlTrainConfig
from memograd.tasks.text.definition import MODEL

CI_FAST: Final = (
    *("steps=1", "prompts_per_step=1", "num_generations=2", "max_completion_length=32"),
    *("episodes.max_turns=2", "sql.max_eval=2", "rollout_log_steps=1", "warmup_steps=0"),
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
