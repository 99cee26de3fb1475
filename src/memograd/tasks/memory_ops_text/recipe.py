"""memory-ops-text from end to end: a language model learns the decision of the operation head.

It writes `ADD`, `NONE`, `UPDATE 2` or `DELETE 1`. A scenario is one state of a memory: the related
items, numbered from 1, and one new statement. It knows what every operation is worth there
(`delta_qa`), so a reward is a look-up, whatever the model says, and the gold operation, where the
log has one, is the row for SFT. G answers to one state are a group.

    memograd.tasks.memory_ops_text:worth:1,well_formed:0.1,gold_operation:0

`train` makes a run folder (or goes on with one); the held-out scenarios come from logs in other
words. `warm_start_rows` writes gold operations for `memograd sft`.

Invariants: NONE is worth exactly 0, by the same rule as all others; what is no operation of this
state is worth no more than the worst that is; a run that was killed and resumed gives the numbers
of the run that never stopped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from memograd.data.lifelog import Lifelog, LifelogSettings, generate_in_languages
from memograd.data.record_files import as_lines, check_new, write_new
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.memory.embedders.load import check_embedder, load_embedder
from memograd.memory.manager.trained.observation import ADD, NONE, SLOTS
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
from memograd.tasks.memory_construct.recipe import check_none_in_common
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import EVAL_SEED, EmbeddedLog, embed_logs, logs_of_files
from memograd.tasks.memory_ops.walk import Point, Walk
from memograd.tasks.memory_ops_text.settings import OpsTextTrainConfig
from memograd.tasks.text.measure import MeasuredRows, describe_rewards, held_out_rows

NOT_AN_OPERATION: Final = 0.1
"""What saying no operation costs below the worst of them."""

COLUMNS: Final = ("operations", "gold")
"""What rewards can read of a decision; see `decision_scenarios`."""

Completion = Sequence[Mapping[str, str]] | str

_OPERATION = re.compile(r"(ADD|NONE)|(UPDATE|DELETE)\s+#?([1-9][0-9]?)")
_TASK: Final = {
    "en": (
        "You keep a memory for later questions. Decide about the new statement; answer with one"
        " of\nADD (a new fact)\nUPDATE number (it replaces that item)\nDELETE number (that item"
        " is to be forgotten)\nNONE (nothing worth keeping)"
    ),
    "zh": (
        "你为以后的提问保管记忆。对新的陈述做决定，只回答其中一个：\nADD（新的事实）\n"
        "UPDATE 编号（替换该条）\nDELETE 编号（忘掉该条）\nNONE（不值得记）"
    ),
}
_HEADINGS: Final = {
    "en": ("Memory:", "(empty)", "New statement:"),
    "zh": ("记忆：", "（空）", "新的陈述："),
}


def operation_named(action: int) -> str:
    """How a model says the action of that number (`observation`)."""
    if action in (ADD, NONE):
        return "ADD" if action == ADD else "NONE"
    place = action - 2
    return f"UPDATE {place + 1}" if place < SLOTS else f"DELETE {place - SLOTS + 1}"


def said_operation(answer: str) -> str | None:
    """The operation that an answer says, in the form of `operation_named`; None if it says none."""
    found = _OPERATION.fullmatch(answer.strip().rstrip(".。"))
    if found is None:
        return None
    return found[1] or f"{found[2]} {int(found[3])}"


def decision_scenarios(log: EmbeddedLog, standard: AnswerStandard) -> list[Scenario]:
    """A scenario for every statement of a log, in the states that the gold operations lead to.

    Where a log has no gold operations, the best one by `delta_qa` is gone on with. Columns:
    `operations`, what each allowed one is worth, and `gold` (None where unknown).
    """
    walk = Walk(log, standard, asks=False)
    scenarios = []
    while not walk.over:
        point, rewards_A = walk.point, walk.rewards()
        allowed = np.flatnonzero(point.observation.allowed_A)
        gold = walk.gold_action()
        scenarios.append(
            Scenario(
                id=f"{log.log.id}/{point.number}",
                messages=prompt_of(point, log.log.language),
                columns={
                    "operations": {
                        operation_named(int(action)): float(rewards_A[action]) for action in allowed
                    },
                    "gold": None if gold is None else operation_named(gold),
                },
            )
        )
        walk.take(int(allowed[rewards_A[allowed].argmax()]) if gold is None else gold)
    return scenarios


def prompt_of(point: Point, language: str) -> tuple[Message, ...]:
    """What the model is shown of a decision."""
    known = "zh" if language == "zh" else "en"
    memory, empty, new = _HEADINGS[known]
    items = [f"{number} {hit.record.text}" for number, hit in enumerate(point.hits, start=1)]
    listed = "\n".join(items) or empty
    return (
        Message(role="system", content=_TASK[known]),
        Message(role="user", content=f"{memory}\n{listed}\n\n{new}\n{point.fact.text}"),
    )


def worth(
    completions: Sequence[Completion], operations: Sequence[Mapping[str, float]]
) -> list[float]:
    """What the operation that was said does for the later questions."""
    values = []
    for completion, known in zip(completions, operations, strict=True):
        said = said_operation(_text(completion))
        worst = min(known.values()) - NOT_AN_OPERATION
        values.append(known.get(said, worst) if said is not None else worst)
    return values


def well_formed(
    completions: Sequence[Completion], operations: Sequence[Mapping[str, float]]
) -> list[float]:
    """1 for an operation that is possible in this state."""
    return [
        float(said_operation(_text(completion)) in known)
        for completion, known in zip(completions, operations, strict=True)
    ]


def gold_operation(
    completions: Sequence[Completion], gold: Sequence[str | None]
) -> list[float | None]:
    """1 for the gold operation; does not apply where it is unknown."""
    return [
        None if one is None else float(said_operation(_text(completion)) == one)
        for completion, one in zip(completions, gold, strict=True)
    ]


def _text(completion: Completion) -> str:
    return completion if isinstance(completion, str) else completion[-1]["content"]


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
