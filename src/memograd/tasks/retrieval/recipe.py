"""retrieval from end to end: conversations to rows, a ranker trained and judged, one file.

    run = train(RetrievalConfig(data=[...]))     run/final/ranker.json is what `ranking=` takes

Invariants: a run that was stopped and resumed gives the weights of the run that never stopped; what
judges a ranker was never trained on, whole conversations at a time.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from memograd.data import Conversation, load_any
from memograd.data.splits import in_common, told_in
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.resume import stored_config
from memograd.grpo.trainer import Stage
from memograd.memory.embedders import Embedder
from memograd.memory.embedders.load import check_embedder, open_embedder
from memograd.memory.search.ranker.files import RANKER_FILE, Ranker, load_ranker, save_ranker
from memograd.tasks.base.progress import console
from memograd.tasks.base.reading import Reader, local_chat
from memograd.tasks.base.recipe import Evaluation, Job, Recipe, located
from memograd.tasks.base.steps import TrainingBySteps, check_began_with, environment, one_process
from memograd.tasks.retrieval.dialogues import (
    Dialogue,
    memories_of_dialogues,
    read_dialogues,
    sittings_of,
)
from memograd.tasks.retrieval.learning import (
    beside_fusion,
    fit_newer,
    fit_probability,
    guard,
    items_part,
    turns_part,
)
from memograd.tasks.retrieval.material import MemoryMaterial, Row, rows_of, told_of
from memograd.tasks.retrieval.settings import RetrievalConfig
from memograd.tasks.retrieval.trainer import RankerTrainer

TASK: Final = "retrieval"
STATE_FILE: Final = "trainer_state.npz"
ANSWERS: Final = "reader.jsonl"

NO_ANSWERS: Final = (
    "No question of data has a right answer beside its evidence, so reward=answer can learn"
    " nothing: give `answer`, or take reward=evidence."
)


@dataclass(frozen=True)
class Source:
    """The conversations of a file; single: one question each, so several are one memory."""

    name: str
    conversations: tuple[Conversation, ...]
    single: bool


def sources_of(files: Sequence[Path]) -> list[Source]:
    """What the files hold. Raises BadInput for a file without a question with evidence."""
    sources = []
    for path in files:
        conversations = tuple(load_any(path))
        if not any(question.evidence for one in conversations for question in one.questions):
            raise BadInput(
                f"No question in {path} says which turns answer it, so a ranker can learn nothing"
                " from it: give conversations whose questions have evidence."
            )
        single = all(
            len(one.questions) + len(one.adversarial_questions) == 1
            and one.speakers == ("user", "assistant")
            for one in conversations
        )
        sources.append(Source(path.name, conversations, single))
    return sources


def memories_of(
    sources: Sequence[Source], together: Sequence[int], seed: int
) -> list[MemoryMaterial]:
    """The memories that these conversations are told to; single ones in every size."""
    memories: list[MemoryMaterial] = []
    for source in sources:
        told = source.conversations
        if source.single:
            order = np.random.default_rng(seed).permutation(len(told)).tolist()
            told = tuple(told[at] for at in order)
        for size in together if source.single else (1,):
            name = f"single, {size} together" if source.single else "long"
            memories += told_of(told, set_name=name, group=source.name, together=size)
    return memories


@dataclass(frozen=True)
class DialogueFiles:
    """Written dialogues, and sittings of conversations that memories hear beside them.

    changing: the dialogues as told to those that did not notice every change, from which the newer
    of two is learnt.
    """

    dialogues: list[list[Dialogue]]
    changing: list[list[Dialogue]]
    sittings: list[Dialogue]

    @classmethod
    def of(cls, config: RetrievalConfig) -> DialogueFiles:
        """What the files say; raises BadInput for one that cannot be read."""
        return cls(
            [read_dialogues(path) for path in config.dialogues],
            [read_dialogues(path, left_open=True) for path in config.dialogues],
            [one for path in config.beside for talk in load_any(path) for one in sittings_of(talk)],
        )

    def memories(
        self, embedder: Embedder, seed: int, *, left_open: bool = False
    ) -> list[MemoryMaterial]:
        """The memories that hear it."""
        told = self.changing if left_open else self.dialogues
        return memories_of_dialogues(told, self.sittings, embedder, seed=seed, cut=left_open)


def generated(config: RetrievalConfig) -> list[Source]:
    """Life logs, for who has no data: `logs` of them."""
    from memograd.data.lifelog.generate import generate_lifelogs

    logs = generate_lifelogs(config.logs, config.seed)
    return [Source("generated", tuple(log.conversation() for log in logs), single=False)]


def split(sources: Sequence[Source], config: RetrievalConfig) -> tuple[list[Source], list[Source]]:
    """What is trained on and what judges: of every source, whole conversations by the seed.

    Raises BadInput where eval_data holds a conversation of data.
    """
    if config.eval_data:
        judging = sources_of(config.eval_data)
        if seen := _seen(sources, judging):
            raise BadInput(
                f"eval_data holds {', '.join(seen[:5])}, which data holds too, and a ranker is not"
                " judged by what it was trained on: take it out of one of them."
            )
        return list(sources), judging
    kept, held = [], []
    for source in sources:
        told = source.conversations
        order = np.random.default_rng(config.seed).permutation(len(told)).tolist()
        count = round(config.held_out * len(told)) if len(told) > 1 else 0
        if config.held_out and len(told) > 1:
            count = max(count, 1)
        chosen = set(order[:count])
        parts = [
            tuple(one for at, one in enumerate(told) if (at in chosen) == judges)
            for judges in (False, True)
        ]
        kept.append(replace(source, conversations=parts[0]))
        if parts[1]:
            held.append(replace(source, conversations=parts[1]))
    if config.held_out and not held:
        raise BadInput(
            "There is one conversation only, so none can be held out to judge the ranker: give"
            " more conversations, or eval_data."
        )
    return kept, held


def _seen(trained: Sequence[Source], measured: Sequence[Source]) -> list[str]:
    """Ids of the conversations to measure on that are trained on, too."""
    told = [
        [told_in(one) for of in some for one in of.conversations] for some in (trained, measured)
    ]
    return in_common(*told)


@dataclass
class RankerTraining(TrainingBySteps):
    """Trains a ranker on rows.

    changes: what is learnt from which of two items that answer the same is wanted.
    """

    config: RetrievalConfig
    trainer: RankerTrainer
    rows: list[Row]
    held: list[Row]
    changes: list[Row]
    embedder: str

    @property
    def step(self) -> int:
        """Steps that are done."""
        return self.trainer.step

    def restore(self, checkpoint: Path) -> None:
        """Go on from `checkpoint`."""
        with np.load(checkpoint / STATE_FILE) as state:
            self.trainer.load(dict(state))

    def one_step(self) -> dict[str, Any]:
        """Move the weights once."""
        began = time.perf_counter()
        measured = self.trainer.advance()
        return {
            "step": self.trainer.step,
            **measured,
            "seconds": {"learn": round(time.perf_counter() - began, 4)},
            # What the curves of every task are drawn from.
            "reward_mean": measured.get("reward_turns"),
            "reward_std": None,
            "reward_normalised_mean": None,
            "reward_normalised_std": None,
            "loss": measured.get("loss_turns"),
        }

    def write(self, folder: Path) -> None:
        """The ranker, and what training goes on from."""
        save_ranker(self.ranker(), folder / RANKER_FILE)
        np.savez(folder / STATE_FILE, **self.trainer.state())

    def ranker(self) -> Ranker:
        """The ranker as it stands, with its probabilities and what held-out questions say."""
        turns, items = self.trainer.linear(0), self.trainer.linear(1)
        judged = guard(self.held, turns, items, self.config.top_k)
        made_from = {
            "run": self.stage.run.path.name,
            "step": self.trainer.step,
            "algorithm": self.config.algorithm,
            "reward": self.config.reward,
            "seed": self.config.seed,
            "questions": self.trainer.questions,
            "held_out": judged,
        }
        return Ranker(
            self.embedder,
            turns,
            items,
            fit_probability(turns, self.rows, turns_part),
            fit_probability(items, self.rows, items_part),
            fit_newer(items, self.changes),
            made_from,
        )


def recipe_with(embedder: Embedder | None = None) -> Recipe[RetrievalConfig, None]:
    """The recipe with an embedder of your own; by default the one that the settings name."""

    def make_job(config: RetrievalConfig, checkpoint: Path | None) -> Job[None]:
        _check_before_loading(config, embedder)
        heard = DialogueFiles.of(config)
        sources = sources_of(config.data) if config.data else generated(config)
        to_train, to_judge = (
            memories_of(part, config.together, config.seed) for part in split(sources, config)
        )
        if config.reward == "answer" and not _answers(to_train):
            raise BadInput(NO_ANSWERS)
        reader = embedder or open_embedder(config.embedder)
        told = heard.memories(reader, config.seed)
        changing = heard.memories(reader, config.seed, left_open=True)
        rows: list[Row] = []
        held: list[Row] = []
        changes: list[Row] = []

        def describe(run: RunFolder) -> None:
            check_began_with(run, fingerprint([*to_train, *told, *changing, *to_judge]))
            console.print(
                f"embedding {len(to_train) + len(told)} memories to train on, {len(to_judge)} to"
                " judge by"
            )
            unread = {path.name for path in config.turns_only}
            for row in rows_of(to_train, reader, strangers=config.strangers):
                rows.append(replace(row, items=None) if row.group in unread else row)
            rows.extend(rows_of(told, reader))
            beside = {path.name for path in config.beside}
            changes.extend(row for row in rows if row.group in beside)
            changes.extend(rows_of(changing, reader))
            held.extend(rows_of(to_judge, reader))

        def training(stage: Stage) -> RankerTraining:
            trainer = RankerTrainer(rows, config, _reader(config, stage.run))
            if config.reward == "answer" and not trainer.questions:
                raise BadInput(NO_ANSWERS)
            return RankerTraining(stage, config, trainer, rows, held, changes, reader.name)

        return Job(
            training=training,
            environment=lambda: environment("numpy"),
            describe=describe,
            share=one_process(TASK),
            finish=_report,
            describe_step=lambda metrics: "  ".join(
                f"{name} {value:.4f}" for name, value in metrics.items() if isinstance(value, float)
            ),
        )

    return Recipe(make_job, console, settled, evaluate)


def _check_before_loading(config: RetrievalConfig, embedder: Embedder | None) -> None:
    """Raise BadInput for an embedder or a reader that is not there, while nothing is loaded yet."""
    if embedder is None:
        check_embedder(config.embedder)
    if config.reward == "answer":
        from memograd.policy.loading import check_model

        check_model(config.reader)


def _answers(memories: Sequence[MemoryMaterial]) -> bool:
    """Whether a question with evidence has a right answer."""
    return any(
        asking.evidence and asking.asked is not None and asking.asked.answer
        for told in memories
        for asking in told.asked
    )


def _reader(config: RetrievalConfig, run: RunFolder) -> Reader | None:
    """Who answers where answers are the reward; what was answered is kept in the run folder."""
    if config.reward == "evidence":
        return None
    return Reader(local_chat(config.reader, "auto"), cache=run.path / ANSWERS)


def _report(folder: Path) -> None:
    """Say whether the ranker may be used, and write it down."""
    judged = load_ranker(folder / "final").made_from["held_out"]
    (folder / "held_out.json").write_text(json.dumps(judged, indent=1) + "\n", encoding="utf-8")
    if not judged["questions"]:
        console.print("nothing is held out, so nothing says whether the ranker beats rank fusion")
        return
    for name, found in (("turns", judged), ("items", judged.get("items"))):
        if found:
            values = [f"{one} {found[one]}" for one in found if one not in ("sets", "items")]
            console.print(f"held-out questions, {name}: {', '.join(values)}")
    console.print(
        f"use it with ranking={folder / 'final'}"
        if judged["adopted"]
        else "it does not beat rank fusion, so a memory will not adopt it"
    )


def evaluate(run: Path, asked: Evaluation) -> None:
    """Measure the ranker of a run beside rank fusion, on other data if some are given."""
    asked.check_by_data(run, TASK)
    ranker = load_ranker(run / "final")
    config = stored_config(RunFolder.open(run), RetrievalConfig)
    if asked.data is None:
        console.print(json.dumps(ranker.made_from["held_out"], indent=1))
        return
    sources = sources_of([asked.data])
    _refuse_seen(run, config, sources)
    memories = memories_of(sources, config.together, config.seed)
    rows = list(rows_of(memories, open_embedder(ranker.embedder)))
    measured = {
        "turns": beside_fusion(rows, turns_part, ranker.turns, config.top_k),
        "items": beside_fusion(rows, items_part, ranker.items, config.top_k),
    }
    console.print(json.dumps(measured, indent=1))


def _refuse_seen(run: Path, config: RetrievalConfig, measured: Sequence[Source]) -> None:
    """Raise BadInput where the run was trained on some of what is to be measured on."""
    try:
        trained, _ = split(sources_of(config.data) if config.data else generated(config), config)
    except BadInput as error:
        console.print(f"nobody can tell whether it was trained on this: {error}")
        return
    if seen := _seen(trained, measured):
        raise BadInput(
            f"{run} was trained on {', '.join(seen[:5])}; measuring on it would say nothing about"
            " other conversations, so give others with --data."
        )


def settled(config: RetrievalConfig) -> RetrievalConfig:
    """The same settings for any working directory; those of a resumed run as they were given."""
    return located(config)


def fingerprint(memories: Sequence[MemoryMaterial]) -> str:
    """SHA-256 of everything that is told and asked."""
    digest = hashlib.sha256()
    for told in memories:
        for conversation in told.conversations:
            for turn in conversation:
                digest.update(f"{turn.id}\0{turn.index_text()}\0".encode())
        for item in told.items or ():
            digest.update(f"{item.id}\0{item.text}\0".encode())
        for asking in told.asked:
            digest.update(f"{asking.text}\0{sorted(asking.evidence)}\0".encode())
    return digest.hexdigest()


RECIPE: Final[Recipe[RetrievalConfig, None]] = recipe_with()
