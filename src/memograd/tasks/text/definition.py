"""The task `text`: prompts of any kind, reward functions, any causal language model."""

from __future__ import annotations

from typing import Final

from memograd.tasks.registry import Option, Task
from memograd.tasks.text.settings import TextTrainConfig

ROWS_TO_EVALUATE: Final = Option(
    "--eval", "text.eval_data", "FILE", "Rows to evaluate on; else a part of --data."
)
MODEL: Final = Option("--model", "model", "MODEL", "A causal language model: hub id or folder.")

TASK: Final = Task(
    name="text",
    summary="Train a model on prompts of any kind by reward functions.",
    settings=TextTrainConfig,
    recipe="memograd.tasks.text.recipe",
    options=(
        Option("--data", "data", "FILE", "Rows to train on: JSONL, each with a prompt."),
        ROWS_TO_EVALUATE,
        Option("--rewards", "rewards", "SPEC", "What is rewarded; see below."),
        MODEL,
    ),
    examples=(
        "memograd train text --data prompts.jsonl --rewards my_rewards.py:exact,length:0.2",
        "memograd train text --data sums.jsonl --rewards numeric_match --model ./qwen",
        "memograd train text --config run.toml --eval held-out.jsonl steps=100",
        "memograd train text resume=runs/my-run steps=200",
    ),
    notes=(
        "Rewards, by commas, a weight behind a colon:\n"
        "  exact_match                    a built-in reward\n"
        "  'length(low=40, high=60):0.2'  one with settings\n"
        "  my_rewards.py:exact,polite     functions of a Python file\n"
        "  my_package.rewards:exact       functions of a module",
    ),
)
