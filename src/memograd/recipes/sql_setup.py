"""What a job of the SQL agent needs before it can begin: a database, questions, and an agent's job.

Invariants: no evidence of a held-out question is evidence of one that is trained on; every gold
statement was run; what is wrong with database or questions is found before a model is loaded.
Tested in `tests/recipes/test_sql.py`. May import every room below the recipes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memograd.config import TrainConfig
from memograd.errors import BadInput
from memograd.recipes.agent_setup import AgentJob, assemble, located_episodes
from memograd.recipes.serving import located_served
from memograd.tasks.sql.questions import (
    Question,
    first_by_hash,
    read_questions,
    split_questions,
)
from memograd.tasks.sql.rewards import DEFAULT_REWARDS
from memograd.tasks.sql.rows import LeftOut, make_rows
from memograd.tasks.sql.sample.build import sample_database
from memograd.tasks.sql.sample.templates import write_sample_questions
from memograd.tasks.sql.sandbox import Sandbox

ENVIRONMENT = "memograd.tasks.sql.tool:SqlEnvironment"
SAMPLE = "the sample's own questions"
ACTION_TOKENS = 160
TURNS = 4
"""Tokens of an action and actions of an attempt, where the settings do not say."""


@dataclass(frozen=True)
class SqlJob:
    """An agent's job over a database; `left_out` are questions that cannot be scored."""

    agent: AgentJob
    sandbox: Sandbox
    left_out: list[LeftOut]


def settled(config: TrainConfig) -> TrainConfig:
    """The given settings with absolute paths, and with what this task chooses where they say
    nothing: the environment, the rewards, the length of an action and of an attempt."""
    config = located_served(located_episodes(config))
    sql = config.sql
    if sql.database is not None:
        sql = sql.model_copy(update={"database": sql.database.resolve()})
    if config.resume is not None:
        return config if sql == config.sql else config.model_copy(update={"sql": sql})
    episodes = config.episodes.model_copy(update={"environment": ENVIRONMENT})
    if "max_turns" not in episodes.model_fields_set:
        episodes = episodes.model_copy(update={"max_turns": TURNS})
    update: dict[str, Any] = {"sql": sql, "episodes": episodes}
    for name, value in (("rewards", DEFAULT_REWARDS), ("max_completion_length", ACTION_TOKENS)):
        if name not in config.model_fields_set:
            update[name] = value
    return config.model_copy(update=update)


def prepare(config: TrainConfig, checkpoint: Path | None) -> SqlJob:
    """Open the database, read and split the questions, and assemble the agent's job.

    Raises:
        BadInput: something is missing or does not fit.
    """
    sandbox = open_database(config)
    train, evaluation = questions(config)
    if config.sql.max_eval is not None:
        evaluation = first_by_hash(evaluation, config.sql.max_eval)
    train_rows, left_out = make_rows(train, sandbox)
    evaluation_rows, also_left_out = make_rows(evaluation, sandbox)
    file = config.data or Path(SAMPLE)
    agent = assemble(
        config,
        checkpoint,
        train_rows,
        evaluation_rows,
        (file, config.text.eval_data or file),
    )
    return SqlJob(agent, sandbox, [*left_out, *also_left_out])


def open_database(config: TrainConfig) -> Sandbox:
    """The database of the settings, or the sample.

    Raises:
        BadInput: it cannot be asked, or the sample's questions would be put to another database.
    """
    if config.sql.database is None:
        return Sandbox(sample_database())
    if config.data is None:
        raise BadInput(
            f"There are no questions about {config.sql.database}; give some with --data FILE.jsonl."
        )
    return Sandbox(config.sql.database)


def questions(config: TrainConfig) -> tuple[list[Question], list[Question]]:
    """Questions to train on and questions to measure on.

    Raises:
        BadInput: they cannot be read, or some are on both sides.
    """
    known = read_questions(config.data) if config.data else _sample_questions()
    if config.text.eval_data is None:
        return split_questions(known, config.text.eval_fraction)
    held_out = read_questions(config.text.eval_data)
    _check_apart(known, held_out)
    return known, held_out


def _sample_questions() -> list[Question]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.jsonl"
        write_sample_questions(path)
        return read_questions(path)


def _check_apart(train: Sequence[Question], held_out: Sequence[Question]) -> None:
    trained_on = {mark: question for question in train for mark in _marks(question)}
    for question in held_out:
        for mark, what in _marks(question).items():
            if mark in trained_on:
                raise BadInput(
                    f"{question.place} has the {what} of {trained_on[mark].place}, which is "
                    "trained on; take it out of one of them, or the evaluation says nothing about "
                    "new questions."
                )


def _marks(question: Question) -> dict[tuple[str, ...], str]:
    """What makes two questions the same, and what each is called."""
    marks: dict[tuple[str, ...], str] = {(" ".join(question.sql.split()),): "gold statement"}
    return marks | {(one.table, one.row_id, one.field): "evidence" for one in question.evidence}
