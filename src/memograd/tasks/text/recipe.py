"""The text task from end to end: a file of prompts, reward functions, any causal language model.

The held-out rows are measured before and after. `docs/text-task.md` is the user's guide.

Invariants: whatever is wrong with data, rewards, model or settings is found before there is a run
folder; nothing that is evaluated on is trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.trainer import check_unmeasured
from memograd.policy.model_policy import ModelPolicy
from memograd.rewards import WeightedReward
from memograd.rollout.types import Scenario
from memograd.tasks.base.policy import load_policy, room_for_prompt
from memograd.tasks.base.recipe import (
    Job,
    Recipe,
    check_columns,
    located,
    parse_rewards,
    policy_job,
)
from memograd.tasks.text.measure import (
    MeasuredRows,
    describe_dropped,
    describe_rewards,
    held_out_rows,
)
from memograd.tasks.text.rows import (
    Dropped,
    text_scenarios,
    told_apart,
)
from memograd.tasks.text.settings import TextTrainConfig


@dataclass(frozen=True)
class TextJob:
    """Everything that is trained and measured; `dropped` are the rows left out for their length."""

    policy: ModelPolicy
    rewards: list[WeightedReward]
    train: list[Scenario]
    evaluation: list[Scenario]
    dropped: list[Dropped]
    prompt_limit: int


def prepare(config: TextTrainConfig, checkpoint: Path | None) -> TextJob:
    """Read data and rewards and open the policy, with the checkpoint's adapter if there is one.

    Raises:
        BadInput: something is missing or does not fit, or no prompt is short enough.
    """
    if config.data is None:
        raise BadInput("The text task needs rows to train on; give --data FILE.jsonl.")
    if not config.rewards:
        raise BadInput(
            "The text task needs rewards: give --rewards my_rewards.py:name, or a built-in one "
            "such as exact_match."
        )
    rewards = parse_rewards(config.rewards)
    train, evaluation = told_apart(config.data, config.text)
    check_columns(rewards, train[0].columns, f"the rows of {config.data}")
    if evaluation:
        file = config.text.eval_data or config.data
        check_columns(rewards, evaluation[0].columns, f"the rows of {file}")
    else:
        check_unmeasured(config)
    policy = load_policy(config, checkpoint)
    limit = room_for_prompt(policy.context_length, config)
    kept, dropped = [], []
    for name, part in (("train", train), ("evaluate", evaluation)):
        scenarios, too_long = text_scenarios(
            part, string_prompts=config.text.string_prompts, encode=policy.encode, limit=limit
        )
        if part and not scenarios:
            raise BadInput(
                f"All {len(part)} prompts to {name} on have more than {limit} tokens, "
                f"{min(row.tokens for row in too_long)} at least; raise max_prompt_length, or "
                "lower max_completion_length."
            )
        kept.append(scenarios)
        dropped += too_long
    return TextJob(policy, rewards, kept[0], kept[1], dropped, limit)


console = Console(markup=False, highlight=False, soft_wrap=True)


def make_job(config: TextTrainConfig, checkpoint: Path | None) -> Job[MeasuredRows]:
    """What is trained on which rows, and how it is measured."""
    job = prepare(config, checkpoint)
    return policy_job(
        job.policy,
        job.rewards,
        lambda world: job.train,
        config,
        held_out_rows(job.policy, job.evaluation, job.rewards, config, console),
        describe=partial(_describe, job),
    )


def _describe(job: TextJob, run: RunFolder) -> None:
    """Say what is trained on and by what, and write down which rows were left out."""
    policy = job.policy
    describe_rewards(job.rewards, console)
    describe_dropped(job.dropped, job.prompt_limit, run.path, console)
    if policy.tokenizer.chat_template and any(one.text is not None for one in job.train):
        console.print(
            f"string prompts are continued as they stand; {policy.name} has a chat template, which "
            "text.string_prompts=chat would put them in"
        )
    console.print(
        f"training {policy.name} on {len(job.train)} prompts, "
        f"{len(job.evaluation)} held out, on {policy.device.type}"
    )


RECIPE: Recipe[TextTrainConfig, MeasuredRows] = Recipe(make_job, console, located)
