"""memory-ops-text from end to end: a language model learns the decision of the operation head.

One statement, one memory, one answer of a word or two; G answers to one state are a group, and what
each is worth is known beforehand. `train` makes a run folder (or goes on with one); the held-out
scenarios come from logs in other words. `warm_start_rows` writes gold operations for `memograd
sft`. Invariant: a run that was killed and resumed gives the numbers of the run that never stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from memograd.data.lifelog import Lifelog, LifelogSettings, generate_in_languages
from memograd.data.record_files import as_lines, check_new, write_new
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.memory.embedders.load import check_embedder, load_embedder
from memograd.policy.model_policy import ModelPolicy
from memograd.rewards import WeightedReward
from memograd.rollout.types import Scenario
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
from memograd.tasks.memory_construct.setup import check_none_in_common
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.logs import EVAL_SEED, logs_of_files
from memograd.tasks.memory_ops.material import embed_logs
from memograd.tasks.memory_ops_text.decisions import COLUMNS, decision_scenarios
from memograd.tasks.memory_ops_text.settings import OpsTextTrainConfig
from memograd.tasks.text.measure import MeasuredRows, describe_rewards, held_out_rows


def make_job(config: OpsTextTrainConfig, checkpoint: Path | None) -> Job[MeasuredRows]:
    """What is trained on which decisions, and how it is measured."""
    rewards = parse_rewards(config.rewards)
    check_columns(rewards, COLUMNS, "decisions")
    check_embedder(config.build.embedder)
    known, held_out = scenarios(config)
    if not known or not held_out:
        raise BadInput("There is no statement to train on, or none to measure on; give other logs.")
    policy = load_policy(config, checkpoint)
    _check_lengths(policy, [*known, *held_out], config)
    return policy_job(
        policy,
        rewards,
        lambda world: known,
        config,
        held_out_rows(policy, held_out, rewards, config),
        describe=partial(_describe, policy, rewards, known, held_out),
    )


def _check_lengths(
    policy: ModelPolicy, decisions: Sequence[Scenario], config: OpsTextTrainConfig
) -> None:
    """Refuse a decision whose prompt is longer than the settings allow or the model takes."""
    limit = room_for_prompt(policy.context_length, config)
    for one in decisions:
        size = len(policy.encode(one.prompt))
        if size > limit:
            raise BadInput(
                f"The decision {one.id} is shown in {size} tokens, and a prompt may have {limit}: "
                "raise max_prompt_length where it is set, lower max_completion_length, take a "
                "model with a longer context, or leave out statements of that length."
            )


def scenarios(config: OpsTextTrainConfig) -> tuple[list[Scenario], list[Scenario]]:
    """Decisions to train on, and decisions of other logs to measure on.

    Raises:
        BadInput: files cannot be read, or there is nothing to measure on.
    """
    build = config.build
    eval_data = config.text.eval_data
    held_out: list[Lifelog] = []
    if config.data is None:
        told, asked = LifelogSettings(split="train"), LifelogSettings(split="test")
        known = generate_in_languages(build.logs, config.seed, build.languages, told)
        held_out = generate_in_languages(build.eval_logs, EVAL_SEED, build.languages, asked)
    else:
        known = logs_of_files([config.data])
        if eval_data is None:
            if len(known) < 2:
                raise BadInput(
                    f"{config.data} holds one log; name another file with text.eval_data."
                )
            known, held_out = known[:-1], known[-1:]
            check_none_in_common(known, held_out, config.data)
    if eval_data is not None:
        held_out = logs_of_files([eval_data])
        check_none_in_common(known, held_out, eval_data)
    embedder = load_embedder(build.embedder)
    standard = AnswerStandard(top_k=build.top_k, misled_cost=build.misled_cost)
    made = [decision_scenarios(log, standard) for log in embed_logs([*known, *held_out], embedder)]
    return (
        [one for of_log in made[: len(known)] for one in of_log],
        [one for of_log in made[len(known) :] for one in of_log],
    )


def warm_start_rows(config: OpsTextTrainConfig, out: Path) -> int:
    """Write prompt and gold operation of every training statement into the new file `out`.

    Returns how many. Raises:
        BadInput: the data have no gold operations, or `out` is taken.
    """
    check_new(out)
    known, _ = scenarios(located(config))
    rows = [
        {"messages": [*one.messages, {"role": "assistant", "content": one.columns["gold"]}]}
        for one in known
        if one.columns["gold"] is not None
    ]
    if not rows:
        raise BadInput("The data have no gold operations to learn from; use generated logs.")
    write_new(out, as_lines(rows))
    return len(rows)


def _describe(
    policy: ModelPolicy,
    rewards: list[WeightedReward],
    known: list[Scenario],
    held_out: list[Scenario],
    run: RunFolder,
) -> None:
    """Say what is trained on and by what."""
    describe_rewards(rewards)
    console.print(
        f"training {policy.name} on {len(known)} decisions, {len(held_out)} held out, on "
        f"{policy.device.type}"
    )


RECIPE: Recipe[OpsTextTrainConfig, MeasuredRows] = Recipe(make_job, console, located)
