"""memory-construct from end to end: a language model learns what to write down, chunk by chunk.

`train` makes a run folder (or goes on with one) and measures held-out cases before and after,
beside memories that need no training; `warm_start_rows` writes gold answers that `memograd sft`
learns from. The command line calls them as `memograd train memory-construct` and `memograd data
construct-rows`; `docs/memory-construct.md` is the user's guide.

Invariant: a run that was killed and resumed gives the numbers of the run that never stopped.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import mean

from memograd.data.record_files import as_lines, check_new, write_new
from memograd.grpo import RunFolder
from memograd.memory.embedders.load import load_embedder
from memograd.tasks.base.progress import console
from memograd.tasks.base.recipe import HeldOut, Job, Recipe, policy_job
from memograd.tasks.memory_construct.measure import Reading, baselines, build, gold_answers, report
from memograd.tasks.memory_construct.memory_book import Texts
from memograd.tasks.memory_construct.settings import ConstructTrainConfig
from memograd.tasks.memory_construct.setup import (
    ConstructJob,
    cases,
    chunks_at,
    prepare,
    rules_of,
    settled,
)
from memograd.tasks.memory_construct.view import tools_of
from memograd.tasks.memory_construct.walk import BookWalk

UNTRAINED, WARM, TRAINED = "untrained", "warm start", "trained"


def make_job(config: ConstructTrainConfig, checkpoint: Path | None) -> Job[Reading]:
    """What is trained on which cases, and how it is measured."""
    job = prepare(config, checkpoint)
    return policy_job(
        job.policy,
        job.rewards,
        lambda world: job.scenarios,
        config,
        HeldOut(
            job.evaluation,
            Reading,
            measure=partial(measure, job, config),
            score=lambda reading: mean(reading.result.per_item["answerable"]),
            report=partial(_report, job, config),
        ),
        describe=partial(_describe, job, config),
        drawing=job.drawing,
        opened=nullcontext if job.reader is None else job.reader.opened,
        before_alone=True,
    )


def measure(job: ConstructJob, config: ConstructTrainConfig, label: str) -> Reading:
    """What the policy makes of the held-out cases as it is now."""
    built = build(job.speaker, job.evaluation, job.texts, config.eval_batch_size, label)
    return built.reading(label)


def warm_start_rows(config: ConstructTrainConfig, out: Path) -> int:
    """Write prompt and gold answer of every training chunk into the new file `out`; how many.

    Raises:
        BadInput: the data have no gold operations, or `out` is taken.
    """
    check_new(out)
    known, _ = cases(settled(config))
    rules, tools = rules_of(config.build), tools_of(config.build.format)
    texts = Texts(load_embedder(config.build.embedder))
    rows = []
    for case in known:
        for prompt, said in gold_answers(BookWalk(case, texts, rules)):
            messages = [*prompt, {"role": "assistant", "content": said}]
            rows.append({"messages": messages, **({"tools": tools} if tools else {})})
    write_new(out, as_lines(rows))
    return len(rows)


def _report(
    job: ConstructJob, config: ConstructTrainConfig, before: Reading, after: Reading, folder: Path
) -> None:
    """Compare with the model that training began with, which a warm start makes another one."""
    built = {**baselines(job.evaluation, job.texts, job.speaker.rules), UNTRAINED: before}
    if config.adapter is not None:
        with job.policy.at_start():
            built[WARM] = measure(job, config, WARM)
    began = WARM if WARM in built else UNTRAINED
    report({**built, TRAINED: after}, folder, compared_with=began)


def _describe(job: ConstructJob, config: ConstructTrainConfig, run: RunFolder) -> None:
    """Say what is trained on and how it is given credit."""
    construct = config.build
    if job.silent:
        console.print(f"{job.silent} cases left out: they ask nothing about their first chunks")
    unjudged = sum(case.unjudged for case in job.train)
    if unjudged:
        console.print(f"{unjudged} questions left out: words alone cannot judge them")
    asked = sum(len(case.asked) for case in job.evaluation)
    if job.reader is not None:
        console.print(f"questions are answered by {job.reader.name}")
    console.print(
        f"training {job.policy.name} on {len(job.train)} cases, credit {construct.credit}, "
        f"{chunks_at(construct, 1)} to {construct.chunks} chunks each; measured by {asked} "
        f"questions about {len(job.evaluation)} held-out cases, on {job.policy.device.type}"
    )


RECIPE: Recipe[ConstructTrainConfig, Reading] = Recipe(make_job, console, settled)
