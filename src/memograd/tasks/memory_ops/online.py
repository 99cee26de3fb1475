"""Learning from feedback: a user's judged answers move the policy, if it does not get worse by it.

    journal --(data/lifelog/from_journal)--> the user's own life log
    own log, as often as generated ones --(delta_qa, GRPO)--> a new head, from the current one on
    new head beside the current one, on feedback and logs that nobody is trained on --> adopt or not

A fixed share of the questions is held out for good, whatever answers they got: what once judged a
version is never trained on later, and no question is on both sides. Versions are kept in a folder
(`PolicyVersions`), whose log holds numbers and no texts.

Invariant: the current version changes only when the new one is not worse on held-out feedback, nor
by more than the tolerance on generated logs of held-out forms.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from memograd.data.lifelog import Lifelog
from memograd.data.lifelog.from_journal import is_held_out, lifelog_of_journal
from memograd.errors import BadInput
from memograd.memory import Memory
from memograd.memory.embedders import Embedder
from memograd.memory.manager.trained.files import PolicyVersions, TrainedHead
from memograd.tasks.memory_ops.baselines.deciders import ByHead
from memograd.tasks.memory_ops.baselines.measure import measure
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.learning.head import OperationHead
from memograd.tasks.memory_ops.material import (
    EmbeddedLog,
    embed_logs,
    evaluation_logs,
    training_logs,
)
from memograd.tasks.memory_ops.recipe import head_trainer, one_step
from memograd.tasks.memory_ops.settings import OnlineConfig, OperationsConfig


@dataclass(frozen=True)
class Scores:
    """How many questions can be answered, from 0 to 1.

    feedback: held-out feedback, None if none is held out. generated: logs of held-out forms.
    """

    feedback: float | None
    generated: float


@dataclass(frozen=True)
class Report:
    """What learning came to.

    before, after: of the version that was current and of the new one, which is current now if
    `adopted`. trained_on, held_out: answers with feedback that teaches something. left_out:
    feedback that does not, by the reason.
    """

    owner: str
    before_version: str
    after_version: str
    before: Scores
    after: Scores
    adopted: bool
    trained_on: int
    held_out: int
    left_out: Mapping[str, int]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def learn_from_feedback(
    memory: Memory, owner: str, policies: Path, config: OnlineConfig | None = None
) -> Report:
    """Train a new version on an owner's feedback and adopt it if it is not worse.

    owner: `user:alice`. policies: the folder of versions. Raises BadInput when there is no current
    version, no feedback that teaches anything, the memory has another embedder, or somebody else is
    learning there; then nothing changes.
    """
    config = config or OnlineConfig()
    began = time.perf_counter()
    versions = PolicyVersions(policies)
    versions.current  # noqa: B018 (refuses where there is none, before the folder is made)
    with versions.held():
        current = versions.load()
        embedder = memory.store.embedder
        _check_embedder(current, embedder)
        own = lifelog_of_journal(memory.store.journal.tail(owner), owner)
        train, judge = split_probes(own.log, config.held_out) if own.log else (None, None)
        if train is None or not train.probes:
            why = "; ".join(f"{count} {reason}" for reason, count in own.left_out.items())
            held = f"{len(judge.probes)} held out to judge by" if judge and judge.probes else ""
            raise BadInput(
                f"There is no feedback of {owner} to learn from"
                f" ({'; '.join(filter(None, (why, held))) or 'none was given'}): correct answers"
                " with memory.feedback or memograd memory feedback."
            )
        assert judge is not None
        start = versions.folder_of(current.version)
        operations = _operations_config(config, current, start, train)
        practice = embed_logs(training_logs(operations), embedder)
        unseen = embed_logs(evaluation_logs(operations), embedder)
        [own_train] = embed_logs([train], embedder)
        own_judge = embed_logs([judge], embedder) if judge.probes else []
        new = train_on([own_train] * len(practice) + practice, current, operations)
        before = score(current, own_judge, unseen, operations)
        after = score(new, own_judge, unseen, operations)
        adopted = is_not_worse(before, after, config.tolerance)
        about = {"learned": owner, "from": current.version}
        after_version = versions.save(replace(new, about=about))
        report = Report(
            owner=owner,
            before_version=current.version,
            after_version=after_version,
            before=before,
            after=after,
            adopted=adopted,
            trained_on=len(train.probes),
            held_out=len(judge.probes),
            left_out=own.left_out,
            seconds=round(time.perf_counter() - began, 1),
        )
        versions.log("learned" if adopted else "refused", **report.to_json())
        if adopted:
            versions.adopt(after_version)
    return report


def split_probes(log: Lifelog, held_out: float) -> tuple[Lifelog, Lifelog]:
    """The log with the questions to train on, and with those to judge by: by a hash of their texts.

    What held-out corrections say of the statements, which one replaced which, is kept from the log
    to train on.
    """
    judges = [is_held_out(probe.question.text, held_out) for probe in log.probes]
    held = tuple(probe for probe, judge in zip(log.probes, judges, strict=True) if judge)
    rest = tuple(probe for probe, judge in zip(log.probes, judges, strict=True) if not judge)
    corrected = {(probe.needed[0], old) for probe in rest for old in probe.misleading}
    statements = tuple(
        statement
        if statement.gold is None or (statement.id, statement.gold.target) in corrected
        else replace(statement, gold=None)
        for statement in log.statements
    )
    return replace(log, statements=statements, probes=rest), replace(log, probes=held)


def train_on(
    material: list[EmbeddedLog], start: TrainedHead, config: OperationsConfig
) -> TrainedHead:
    """A head that began as `start` and went through `config.steps` steps on these logs."""
    head = OperationHead.from_trained(start)
    trainer = head_trainer(config, head)
    while trainer.step < config.steps:
        one_step(trainer, material, config)
    return head.trained(start.embedder, start.about)


def score(
    head: TrainedHead,
    feedback: Sequence[EmbeddedLog],
    generated: Sequence[EmbeddedLog],
    config: OperationsConfig,
) -> Scores:
    """How many of the held-out questions can be answered from the memories that a head keeps."""
    standard = AnswerStandard.of(config)

    def answerable(logs: Sequence[EmbeddedLog]) -> float:
        return measure("head", lambda: ByHead(head), logs, standard).score

    return Scores(answerable(feedback) if feedback else None, answerable(generated))


def is_not_worse(before: Scores, after: Scores, tolerance: float) -> bool:
    """The guard: feedback not worse at all, generated logs by no more than a tolerance."""
    if (after.feedback or 0.0) < (before.feedback or 0.0):
        return False
    return after.generated >= before.generated - tolerance


def _operations_config(
    config: OnlineConfig, current: TrainedHead, start: Path, own: Lifelog
) -> OperationsConfig:
    """The settings of memory-ops for some more steps from the current version on."""
    return OperationsConfig(
        languages=[own.language],  # type: ignore[list-item]
        logs=config.logs,
        eval_logs=config.eval_logs,
        embedder=current.embedder,
        policy=start,
        steps=config.steps,
        logs_per_step=config.logs_per_step,
        learning_rate=config.learning_rate,
        seed=config.seed,
    )


def _check_embedder(head: TrainedHead, embedder: Embedder) -> None:
    if (head.embedder, head.shape.dimension) != (embedder.name, embedder.dimension):
        raise BadInput(
            f"The policy {head.version} was trained with the embedder {head.embedder!r}, the memory"
            f" has {embedder.name!r}: open it with the first, or adopt a policy trained with"
            f" embedder={embedder.name}."
        )
