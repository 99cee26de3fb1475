"""The text task from end to end: a file of prompts, reward functions, any causal language model.

The held-out rows are measured before and after. `docs/text-task.md` is the user's guide.

Invariants: whatever is wrong with data, rewards, model or settings is found before there is a run
folder; nothing that is evaluated on is trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from memograd.config import TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.trainer import check_unmeasured
from memograd.policy.model_policy import ModelPolicy
from memograd.rewards import WeightedReward
from memograd.rollout.types import Message, Scenario
from memograd.tasks.base.policy import load_policy, room_for_prompt
from memograd.tasks.base.progress import console
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
    TextRow,
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
    train, evaluation = told_apart(config.data, config.text)
    files = (config.data, config.text.eval_data or config.data)
    rewards = rewards_of_rows(config, train, evaluation, files)
    policy = load_policy(config, checkpoint)
    limit = room_for_prompt(policy.context_length, config)
    kept = short_enough(
        (train, evaluation),
        string_prompts=config.text.string_prompts,
        encode=policy.encode,
        limit=limit,
        counted="tokens",
        mend="raise max_prompt_length, or lower max_completion_length",
    )
    return TextJob(policy, rewards, *kept, limit)


def rewards_of_rows(
    config: TrainConfig,
    train: Sequence[TextRow],
    evaluation: Sequence[TextRow],
    files: tuple[Path, Path],
    given: Sequence[str] = (),
) -> list[WeightedReward]:
    """The rewards of the settings, for rows that come from these `files`.

    given: columns that are no part of the rows. Raises BadInput where a reward cannot be called on
    them, or where the settings ask for measures and nothing is held out.
    """
    rewards = parse_rewards(config.rewards)
    for rows, file in zip((train, evaluation), files, strict=True):
        if rows:
            check_columns(rewards, rows[0].columns, f"the rows of {file}", given)
    if not evaluation:
        check_unmeasured(config)
    return rewards


def short_enough(
    parts: tuple[Sequence[TextRow], Sequence[TextRow]],
    *,
    string_prompts: str,
    encode: Callable[[str | Sequence[Message]], Sequence[int]],
    limit: int,
    counted: str,
    mend: str,
) -> tuple[list[Scenario], list[Scenario], list[Dropped]]:
    """The rows to train on, those to evaluate on, and what was left out of both for its length.

    counted, mend: what is counted, and what can be done, where all of a part would be left out,
    which is BadInput. See `text_scenarios` for the others.
    """
    kept: list[list[Scenario]] = []
    dropped: list[Dropped] = []
    for name, rows in zip(("train", "evaluate"), parts, strict=True):
        scenarios, too_long = text_scenarios(
            rows, string_prompts=string_prompts, encode=encode, limit=limit
        )
        if rows and not scenarios:
            raise BadInput(
                f"All {len(rows)} prompts to {name} on have more than {limit} {counted}, "
                f"{min(row.tokens for row in too_long)} at least; {mend}."
            )
        kept.append(scenarios)
        dropped += too_long
    return kept[0], kept[1], dropped


def make_job(config: TextTrainConfig, checkpoint: Path | None) -> Job[MeasuredRows]:
    """What is trained on which rows, and how it is measured."""
    job = prepare(config, checkpoint)
    return policy_job(
        job.policy,
        job.rewards,
        lambda world: job.train,
        config,
        held_out_rows(job.policy, job.evaluation, job.rewards, config),
        describe=partial(_describe, job),
    )


def _describe(job: TextJob, run: RunFolder) -> None:
    """Say what is trained on and by what, and write down which rows were left out."""
    policy = job.policy
    describe_rewards(job.rewards)
    describe_dropped(job.dropped, job.prompt_limit, run.path)
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
