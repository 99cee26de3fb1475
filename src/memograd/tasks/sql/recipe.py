"""The SQL agent from end to end: a database, questions about it, any chat model.

Attempts are episodes that memograd plays, or, where `served.agent` names one, those of an agent of
any framework, through the gateway; questions, rewards and measures are the same. A run measures the
held-out questions before and after, and what it began with if that was an adapter.
`warm_start_rows` writes gold attempts that `memograd sft` learns from. `docs/sql-agent.md` is the
user's guide.

Invariants: no evidence of a held-out question is evidence of one that is trained on; every gold
statement was run; what is wrong with database or questions is found before a model is loaded.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from memograd.data.record_files import as_lines, check_new, write_new
from memograd.errors import BadInput, need_packages
from memograd.grpo import RunFolder
from memograd.rollout.types import Rollout
from memograd.tasks.agent.recipe import AgentJob, assemble
from memograd.tasks.agent.served import Serving, check_served
from memograd.tasks.base.progress import console
from memograd.tasks.base.recipe import HeldOut, Job, Recipe, located, policy_job
from memograd.tasks.sql.measure import MeasuredSql, measure_sql, report_sql
from memograd.tasks.sql.questions import (
    LeftOut,
    SqlQuestion,
    first_by_hash,
    gold_attempts,
    make_rows,
    read_questions,
    split_questions,
)
from memograd.tasks.sql.sample.build import sample_database, write_sample
from memograd.tasks.sql.sample.templates import write_sample_questions
from memograd.tasks.sql.sandbox import Sandbox
from memograd.tasks.sql.settings import SqlTrainConfig
from memograd.tasks.text.measure import describe_dropped, describe_rewards

SAMPLE = "the sample's own questions"


@dataclass(frozen=True)
class SqlJob:
    """An agent's job over a database; `left_out` are questions that cannot be scored."""

    agent: AgentJob
    sandbox: Sandbox
    left_out: list[LeftOut]


def settled(config: SqlTrainConfig) -> SqlTrainConfig:
    """The given settings with absolute paths.

    Raises:
        BadInput: the package that parses SQL is missing, or a served agent does not go with them.
    """
    need_packages("The SQL agent", ["sqlglot"], "sql")
    if config.served.agent is not None:
        check_served(config)
    return located(config)


def prepare(config: SqlTrainConfig, checkpoint: Path | None) -> SqlJob:
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


def open_database(config: SqlTrainConfig) -> Sandbox:
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


def questions(config: SqlTrainConfig) -> tuple[list[SqlQuestion], list[SqlQuestion]]:
    """Questions to train on and questions to measure on.

    Raises:
        BadInput: they cannot be read, or some are on both sides.
    """
    known = read_questions(config.data) if config.data else _sample_questions()
    if config.sql.apart_from is not None:
        known = _apart_from(known, config.sql.apart_from)
    if config.text.eval_data is None:
        return split_questions(known, config.text.eval_fraction)
    held_out = read_questions(config.text.eval_data)
    _check_apart(known, held_out)
    return known, held_out


def _apart_from(known: Sequence[SqlQuestion], path: Path) -> list[SqlQuestion]:
    """Those of the questions that share nothing with the questions of the file."""
    others = read_questions(path)
    shared = {id(question) for question, _, _ in _shared(known, others)}
    apart = [question for question in known if id(question) not in shared]
    if not apart:
        raise BadInput(
            f"All {len(known)} questions share a statement or evidence with {path}; nothing is "
            "left to train on, so leave --apart-from out or give other questions."
        )
    console.print(f"{len(shared)} questions left out that are not apart from {path}")
    return apart


def _sample_questions() -> list[SqlQuestion]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.jsonl"
        write_sample_questions(path)
        return read_questions(path)


def _check_apart(train: Sequence[SqlQuestion], held_out: Sequence[SqlQuestion]) -> None:
    shared = list(_shared(train, held_out))
    if not shared:
        return
    told = "".join(
        f"\n  {question.place} has the {what} of {other.place}" for question, other, what in shared
    )
    count = len({id(question) for question, _, _ in shared})
    raise BadInput(
        f"{count} questions that are trained on share a statement or evidence with held-out ones, "
        "so the evaluation would say nothing about new questions; leave them out by --apart-from "
        f"{_file_of(held_out[0])}, or take them out of one file.{told}"
    )


def _shared(
    train: Sequence[SqlQuestion], held_out: Sequence[SqlQuestion]
) -> Iterator[tuple[SqlQuestion, SqlQuestion, str]]:
    """Every pair of a training and a held-out question that share something, and what."""
    asked: defaultdict[tuple[str, ...], list[SqlQuestion]] = defaultdict(list)
    for question in held_out:
        for mark in _marks(question):
            asked[mark].append(question)
    for question in train:
        told: dict[str, tuple[SqlQuestion, str]] = {}
        for mark, what in _marks(question).items():
            for other in asked[mark]:
                told.setdefault(other.id, (other, what))
        yield from ((question, other, what) for other, what in told.values())


def _file_of(question: SqlQuestion) -> str:
    return question.place.rpartition(":")[0]


def _marks(question: SqlQuestion) -> dict[tuple[str, ...], str]:
    """What makes two questions the same, and what each is called."""
    marks: dict[tuple[str, ...], str] = {(" ".join(question.sql.split()),): "gold statement"}
    return marks | {(one.table, one.row_id, one.field): "evidence" for one in question.evidence}


SHOWN = 3


def make_job(config: SqlTrainConfig, checkpoint: Path | None) -> Job[MeasuredSql]:
    """What is trained on which questions, and how it is measured."""
    serving = None if config.served.agent is None else Serving(config)
    sql = prepare(config, checkpoint)
    job = sql.agent

    def attempts(label: str) -> list[Rollout]:
        if serving is None:
            return job.play(config, label)
        return serving.play(job.evaluation, label)

    def report(before: MeasuredSql, after: MeasuredSql, folder: Path) -> None:
        warm_start = None
        if config.adapter is not None:
            with job.policy.at_start():
                warm_start = measure_sql(job, lambda: attempts("warm start"))
        report_sql(before, after, job, folder, warm_start)

    return policy_job(
        job.policy,
        job.rewards,
        lambda world: job.train,
        config,
        HeldOut(
            job.evaluation,
            MeasuredSql,
            measure=lambda label: measure_sql(job, lambda: attempts(label)),
            score=lambda attempted: attempted.episodes.measured.score,
            report=report,
        ),
        describe=partial(_describe, sql, config),
        opened=partial(serving.opened, job.policy, job.rewards) if serving else nullcontext,
        before_alone=True,
        drawing=serving or job.drawing(config),
    )


def warm_start_rows(config: SqlTrainConfig, out: Path, share: float) -> None:
    """Write gold attempts at `share` of the training questions into the new file `out`.

    Which questions depends on their ids alone. Held-out questions are never among them.

    Raises:
        BadInput: database or questions cannot be used, or `out` is taken.
    """
    if not 0 < share <= 1:
        raise BadInput(f"--share must lie above 0 and be at most 1, not {share:g}.")
    check_new(out)
    config = settled(config)
    sandbox = open_database(config)
    known, held_out = questions(config)
    chosen = first_by_hash(known, max(1, round(share * len(known))))
    chats, left_out = gold_attempts(chosen, sandbox)
    if not chats:
        raise BadInput(f"None of {len(chosen)} questions can be learnt: {left_out[0].reason}.")
    write_new(out, as_lines(chats))
    console.print(
        f"{len(chats)} gold attempts at {len(known)} training questions, {len(held_out)} held out; "
        f"{len(left_out)} left out"
    )
    for one in left_out[:SHOWN]:
        console.print(f"  {one.id}: {one.reason}")


def write_sample_files(folder: Path) -> tuple[Path, Path]:
    """Write the sample database and its questions into `folder`, to look at or to change.

    Raises:
        BadInput: one of the files is there already, or the folder cannot be made.
    """
    database, asked = folder / "medical.sqlite", folder / "questions.jsonl"
    for path in (database, asked):
        check_new(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"The folder {folder} cannot be made ({error.strerror}); choose another."
        ) from error
    write_sample(database)
    write_sample_questions(asked)
    return database, asked


def _describe(sql: SqlJob, config: SqlTrainConfig, run: RunFolder) -> None:
    """Say what is trained on and by what, and write down which questions were left out."""
    job = sql.agent
    describe_rewards(job.rewards)
    describe_dropped(job.dropped, job.prompt_limit, run.path)
    if sql.left_out:
        listing = [{"id": one.id, "reason": one.reason} for one in sql.left_out]
        text = json.dumps(listing, indent=2, ensure_ascii=False)
        (run.path / "left_out.json").write_text(text, encoding="utf-8")
        console.print(
            f"{len(sql.left_out)} questions left out, see left_out.json; the first: "
            f"{sql.left_out[0].reason}"
        )
    if job.template_note is not None:
        console.print(job.template_note)
    played = config.served.agent or f"at most {job.limits.max_turns} turns each"
    console.print(
        f"training {job.policy.name} on {len(job.train)} questions about "
        f"{sql.sandbox.database.name}, {len(job.evaluation)} held out, {played}, on "
        f"{job.policy.device.type}"
    )


RECIPE: Recipe[SqlTrainConfig, MeasuredSql] = Recipe(make_job, console, settled)
