"""The SQL agent from end to end: a database, questions about it, any chat model.

Attempts are episodes that memograd plays, or, where `served.agent` names one, those of an agent of
any framework, through the gateway; questions, rewards and measures are the same.

`train` makes a run folder (or goes on with one) and measures the held-out questions before and
after, and what the run began with if that was an adapter; `warm_start_rows` writes gold attempts
that `memograd sft` learns from. The command line calls them as `memograd train sql` and
`memograd sql`; `docs/sql-agent.md` is the user's guide.

Invariant: a run that was killed and resumed gives the numbers of the run that never stopped.
Tested in `tests/recipes/test_sql.py`. May import every room below the recipes.
"""

from __future__ import annotations

import importlib.util
import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from rich.console import Console

from memograd.config import TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.drawing import Episodes
from memograd.recipes.agent_measure import play
from memograd.recipes.job import Job, train_job
from memograd.recipes.rows_report import describe_dropped, describe_rewards
from memograd.recipes.serving import Serving
from memograd.recipes.sql_measure import MeasuredSql, measure_sql, report_sql
from memograd.recipes.sql_setup import SqlJob, open_database, prepare, questions, settled
from memograd.rollout.types import Rollout
from memograd.tasks.sql.questions import first_by_hash
from memograd.tasks.sql.sample.build import write_sample
from memograd.tasks.sql.sample.templates import write_sample_questions
from memograd.tasks.sql.trajectories import gold_attempts

console = Console(markup=False, highlight=False, soft_wrap=True)

TASK = "sql"
SHOWN = 3
CI_FAST = (
    *("steps=1", "prompts_per_step=1", "num_generations=2", "max_completion_length=32"),
    *("episodes.max_turns=2", "sql.max_eval=2", "rollout_log_steps=1", "warmup_steps=0"),
)
"""Settings of `--ci-fast`: one small step, to see that everything works; own settings win."""


def train(config: TrainConfig) -> Path:
    """Train on the questions of `config.data` over `config.sql.database`; returns the run folder.

    With `config.resume`, the run in that folder goes on from its last complete checkpoint.
    """
    _need_sqlglot()
    return train_job(settled(config), TASK, make_job, console)


def make_job(config: TrainConfig, checkpoint: Path | None) -> Job[MeasuredSql]:
    """What is trained on which questions, and how it is measured."""
    serving = None if config.served.agent is None else Serving(config)
    sql = prepare(config, checkpoint)
    job = sql.agent

    def attempts(label: str) -> list[Rollout]:
        if serving is None:
            return play(job, config, label, console)
        return serving.play(job.evaluation, label, console)

    def report(before: MeasuredSql, after: MeasuredSql, folder: Path) -> None:
        warm_start = None
        if config.adapter is not None:
            with job.policy.at_start():
                warm_start = measure_sql(job, lambda: attempts("warm start"))
        report_sql(before, after, job, folder, console, warm_start)

    return Job(
        policy=job.policy,
        rewards=job.rewards,
        train=job.train,
        describe=partial(_describe, sql, config),
        measure=(
            (lambda label: measure_sql(job, lambda: attempts(label))) if job.evaluation else None
        ),
        report=report,
        opened=partial(serving.opened, job.policy, job.rewards) if serving else nullcontext,
        before_alone=True,
        drawing=serving
        or Episodes(
            job.policy,
            job.chat,
            job.task,
            limits=job.limits,
            num_generations=config.num_generations,
            max_completion_length=config.max_completion_length,
        ),
    )


def warm_start_rows(config: TrainConfig, out: Path, share: float) -> None:
    """Write gold attempts at `share` of the training questions into the new file `out`.

    Which questions depends on their ids alone. Held-out questions are never among them.

    Raises:
        BadInput: database or questions cannot be used, or `out` is taken.
    """
    _need_sqlglot()
    if not 0 < share <= 1:
        raise BadInput(f"--share must lie above 0 and be at most 1, not {share:g}.")
    _check_new(out)
    config = settled(config)
    sandbox = open_database(config)
    known, held_out = questions(config)
    chosen = first_by_hash(known, max(1, round(share * len(known))))
    chats, left_out = gold_attempts(chosen, sandbox)
    if not chats:
        raise BadInput(f"None of {len(chosen)} questions can be learnt: {left_out[0].reason}.")
    lines = "".join(json.dumps(chat, ensure_ascii=False) + "\n" for chat in chats)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(lines, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{out} cannot be written ({error.strerror}); choose another.") from error
    console.print(
        f"{len(chats)} gold attempts at {len(known)} training questions, {len(held_out)} held out; "
        f"{len(left_out)} left out"
    )
    for one in left_out[:SHOWN]:
        console.print(f"  {one.id}: {one.reason}")


def write_sample_files(folder: Path) -> tuple[Path, Path]:
    """Write the sample database and its questions into `folder`, to look at or to change.

    Raises:
        BadInput: one of the files is there already.
    """
    database, asked = folder / "medical.sqlite", folder / "questions.jsonl"
    for path in (database, asked):
        _check_new(path)
    folder.mkdir(parents=True, exist_ok=True)
    write_sample(database)
    write_sample_questions(asked)
    return database, asked


def _check_new(path: Path) -> None:
    if path.exists():
        raise BadInput(f"{path} is there already; choose another name, or remove it.")


def _need_sqlglot() -> None:
    if importlib.util.find_spec("sqlglot") is None:
        raise BadInput("The SQL agent needs the package sqlglot; run pip install 'memograd[sql]'.")


def _describe(sql: SqlJob, config: TrainConfig, run: RunFolder) -> None:
    """Say what is trained on and by what, and write down which questions were left out."""
    job = sql.agent
    describe_rewards(job.rewards, console)
    describe_dropped(job.dropped, job.prompt_limit, run.path, console)
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
