"""memory-construct from end to end: a language model learns what to write down, chunk by chunk.

`train` makes a run folder (or goes on with one) and measures held-out cases before and after,
beside memories that need no training; `warm_start_rows` writes gold answers that `memograd sft`
learns from. The command line calls them as `memograd train memory-construct` and `memograd data
construct-rows`; `docs/memory-construct.md` is the user's guide.

Generated logs to measure on share no wording, no name and some not even the attributes with those
to train on. Questions are answered from the memory by words alone, or, where `build.reader` asks
for it, by a model: the policy's own base, its adapter off, or another one.

Invariants: no case that is measured is trained on; every case that is trained on asks something at
every length that it is cut to; settings that do not go with the drawing are refused before there is
a run folder; within a run the same question over the same notes has one answer; a run that was
killed and resumed gives the numbers of the run that never stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final

from memograd.data.conversation import ConstructionCase
from memograd.data.lifelog import Lifelog, LifelogSettings, generate_in_languages
from memograd.data.mem_alpha import load_mem_alpha
from memograd.data.record_files import as_lines, check_new, write_new
from memograd.data.splits import HasTurns, Told, in_common, told_in
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.trainer import check_unmeasured
from memograd.memory.embedders.load import check_embedder, load_embedder
from memograd.policy.loading import check_model
from memograd.policy.model_policy import ModelPolicy
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.tool_calls import read_template, use_tool_template
from memograd.rollout.types import Scenario
from memograd.tasks.base.policy import load_policy, room_for_prompt
from memograd.tasks.base.progress import console
from memograd.tasks.base.reading import BaseModelChat, Reader, local_chat
from memograd.tasks.base.recipe import (
    HeldOut,
    Job,
    Recipe,
    located,
    parse_rewards,
    policy_job,
)
from memograd.tasks.memory_construct.case import BuildCase, case_of_construction, case_of_log
from memograd.tasks.memory_construct.drawing import ConstructDrawing, Speaker
from memograd.tasks.memory_construct.measure import Reading, baselines, build, gold_answers, report
from memograd.tasks.memory_construct.memory_book import Texts
from memograd.tasks.memory_construct.settings import ConstructConfig, ConstructTrainConfig
from memograd.tasks.memory_construct.walk import (
    BookWalk,
    NoteReader,
    Rules,
    tools_of,
)
from memograd.tasks.memory_ops.material import EVAL_SEED, logs_of_files

BASE: Final = "base"
ANSWERS: Final = "reader.jsonl"
UNTRAINED, WARM, TRAINED = "untrained", "warm start", "trained"
EVAL_PARTS: Final = 10
"""Of so many cases of one file, every last one is measured on, where no other file is named."""


@dataclass(frozen=True)
class ConstructJob:
    """Everything that is trained and measured. silent: cases left out because they ask nothing."""

    config: ConstructTrainConfig
    policy: ModelPolicy
    speaker: Speaker
    texts: Texts
    train: list[BuildCase]
    evaluation: list[BuildCase]
    silent: int
    reader: Reader | None

    @property
    def scenarios(self) -> list[Scenario]:
        """The cases to train on, as the trainer knows them."""
        return [
            Scenario(
                id=case.id,
                messages=BookWalk(case, self.texts, self.speaker.rules).view.messages,
                columns={"chunks": [chunk.text for chunk in case.chunks]},
            )
            for case in self.train
        ]

    def drawing(self) -> ConstructDrawing:
        """Walks to learn from, as the settings say."""
        known = {case.id: case for case in self.train}
        return ConstructDrawing(
            self.speaker, known, self.texts, num_generations=self.config.num_generations
        )

    def measure(self, label: str) -> Reading:
        """What the policy makes of the held-out cases as it is now."""
        batch = self.config.eval_batch_size
        return build(self.speaker, self.evaluation, self.texts, batch, label).reading(label)

    def report(self, before: Reading, after: Reading, folder: Path) -> None:
        """Compare with the model that training began with, which a warm start makes another one."""
        built = {**baselines(self.evaluation, self.texts, self.speaker.rules), UNTRAINED: before}
        if self.config.adapter is not None:
            with self.policy.at_start():
                built[WARM] = self.measure(WARM)
        began = WARM if WARM in built else UNTRAINED
        report({**built, TRAINED: after}, folder, compared_with=began)

    def describe(self, run: RunFolder) -> None:
        """Say what is trained on and how it is given credit."""
        settings = self.config.build
        if self.silent:
            told = "they ask nothing about their first chunks"
            console.print(f"{self.silent} cases left out: {told}")
        unjudged = sum(case.unjudged for case in self.train)
        if unjudged:
            console.print(f"{unjudged} questions left out: words alone cannot judge them")
        asked = sum(len(case.asked) for case in self.evaluation)
        if self.reader is not None:
            console.print(f"questions are answered by {self.reader.name}")
        console.print(
            f"training {self.policy.name} on {len(self.train)} cases, credit {settings.credit}, "
            f"{settings.chunks_at(1)} to {settings.chunks} chunks each; measured by {asked} "
            f"questions about {len(self.evaluation)} held-out cases, on {self.policy.device.type}"
        )

    def opened(self, folder: Path) -> AbstractContextManager[object]:
        """Within this block what a reader answers is kept in the run folder, so that nothing is
        answered twice, also after a kill."""
        return self.reader.kept_in(folder / ANSWERS) if self.reader else nullcontext()


def settled(config: ConstructTrainConfig) -> ConstructTrainConfig:
    """The given settings with absolute paths, and with what this task chooses.

    Raises:
        BadInput: a setting asks for what this task cannot do.
    """
    config = located(config)
    if config.resume is not None:
        return config
    schedules = config.schedules
    if (
        config.resample_rounds
        or schedules.curriculum != "off"
        or schedules.group_sizes != "constant"
        or schedules.replay_groups
    ):
        raise BadInput(
            "memory-construct has several groups a case, which resample_rounds and schedules do "
            "not go with: set resample_rounds=0 and leave schedules out."
        )
    if config.num_generations < 2:
        raise BadInput("memory-construct compares answers: set num_generations to at least 2.")
    given = config.model_fields_set
    if config.build.credit == "local" and config.algorithm == "grpo" and "advantage" not in given:
        # Answers that keep the same questions answerable differ by hundredths (r3, r4): divided by
        # their spread, that would count as much as a question that is lost.
        return config.model_copy(update={"advantage": "centred"})
    return config


def prepare(config: ConstructTrainConfig, checkpoint: Path | None) -> ConstructJob:
    """Read or generate the cases, open the policy and make the drawing.

    Raises:
        BadInput: something is missing or does not fit.
    """
    construct = config.build
    check_embedder(construct.embedder)
    if construct.reader not in (None, BASE):
        check_model(construct.reader)
    if construct.format == "tools" and config.episodes.chat_template is not None:
        read_template(config.episodes.chat_template)
    known, held_out = cases(config)
    evaluation = [case for case in held_out if case.asked]
    if not evaluation:
        check_unmeasured(config)
    asking = [case for case in known if case.first_chunks(construct.chunks_at(1)).asked]
    if not asking:
        raise BadInput(
            "No case asks anything about its first chunks: raise build.chunks or build.logs."
        )
    policy = load_policy(config, checkpoint)
    reader = open_reader(construct.reader, policy, config.device) if construct.reader else None
    speaker = speaker_for([*asking, *held_out], policy, config, reader)
    texts = Texts(load_embedder(construct.embedder))
    silent = len(known) - len(asking)
    return ConstructJob(config, policy, speaker, texts, asking, evaluation, silent, reader)


def speaker_for(
    read: Sequence[BuildCase],
    policy: ModelPolicy,
    config: ConstructTrainConfig,
    reader: NoteReader | None = None,
) -> Speaker:
    """The policy as one who answers the views of these cases.

    Raises:
        BadInput: a chunk is too long for the model, or it cannot be shown tools.
    """
    if config.build.format == "tools":
        use_tool_template(policy.tokenizer, config.episodes.chat_template)
    _check_length(policy, read, config)
    return Speaker(
        policy,
        ChatIds(policy.tokenizer, end_ids=policy.end_ids),
        Rules(config.build, reader),
        max_completion_length=config.max_completion_length,
    )


def cases(config: ConstructTrainConfig) -> tuple[list[BuildCase], list[BuildCase]]:
    """Cases to train on and cases to measure on, cut to `build.chunks`.

    Raises:
        BadInput: files cannot be read, or have cases in common.
    """
    construct = config.build
    eval_data = config.text.eval_data
    held_out: list[BuildCase] = []
    if config.data is None:
        told = LifelogSettings(split="train", questions=construct.questions)
        asked = LifelogSettings(split="test")
        languages = construct.languages
        lives = generate_in_languages(construct.logs, config.seed, languages, told)
        others = generate_in_languages(construct.eval_logs, EVAL_SEED, languages, asked)
        known = [_of_log(log, construct) for log in lives]
        held_out = [_of_log(log, construct) for log in others]
    else:
        known = _of_file(config.data, construct)
        if eval_data is None:
            if len(known) < 2:
                raise BadInput(
                    f"{config.data} holds one case; name another file with text.eval_data."
                )
            kept = max(1, len(known) // EVAL_PARTS)
            known, held_out = known[:-kept], known[-kept:]
            again = set(
                in_common(map(told_of, held_out), map(told_of, known))
            )  # as some sets have it
            known = [case for case in known if case.id not in again]
            if not known:
                raise BadInput(
                    f"All cases of {config.data} say the same, so none is left to train on: name"
                    " another file with text.eval_data."
                )
    if eval_data is not None:
        held_out = _of_file(eval_data, construct)
        check_none_in_common(known, held_out, eval_data)
    return known, held_out


def check_none_in_common(
    known: Sequence[BuildCase | Lifelog], held_out: Sequence[BuildCase | Lifelog], eval_data: Path
) -> None:
    """Raise BadInput where what is measured was trained on."""
    if common := sorted(in_common(map(told_of, known), map(told_of, held_out))):
        raise BadInput(
            f"{eval_data} has {', '.join(common)} in common with what is trained on, which "
            "says nothing about others; take it out of one of them."
        )


def told_of(one: BuildCase | HasTurns) -> Told:
    """A case, log or conversation as `in_common` compares it."""
    if isinstance(one, BuildCase):
        return one.id, [chunk.text for chunk in one.chunks]
    return told_in(one)


def _of_file(path: Path, construct: ConstructConfig) -> list[BuildCase]:
    if path.suffix == ".parquet":
        public: list[ConstructionCase] = load_mem_alpha(path)
        return [case_of_construction(case) for case in public]
    return [_of_log(log, construct) for log in logs_of_files([path])]


def _of_log(log: Lifelog, construct: ConstructConfig) -> BuildCase:
    case = case_of_log(log, turns_per_chunk=construct.turns_per_chunk)
    return case.first_chunks(construct.chunks)


def _check_length(
    policy: ModelPolicy, read: Sequence[BuildCase], config: ConstructTrainConfig
) -> None:
    """Refuse a chunk that leaves no room in a prompt for the memory, or for an answer."""
    limit = room_for_prompt(policy.context_length, config)
    # The view counts by estimate, which is rather too high; 200 tokens are instructions and marks.
    around = config.build.view_tokens + 200
    for case in read:
        for number, chunk in enumerate(case.chunks):
            size = policy.count_tokens(chunk.text)
            if size + around > limit:
                raise BadInput(
                    f"Chunk {number} of {case.id} has {size} tokens, and with {around} for memory "
                    f"and instructions that is more than the {limit} that a prompt may have with "
                    f"{policy.name}: lower build.turns_per_chunk, build.view_tokens or "
                    "max_completion_length, or raise max_prompt_length where it is set."
                )


def open_reader(named: str, policy: ModelPolicy, device: str) -> Reader:
    """The reader of that name: `base` is the policy's own base model.

    Raises:
        BadInput: there is no such model.
    """
    if named == BASE:
        return Reader(BaseModelChat(policy, f"{BASE}:{policy.name}"))
    return Reader(local_chat(named, device))


def make_job(config: ConstructTrainConfig, checkpoint: Path | None) -> Job[Reading]:
    """What is trained on which cases, and how it is measured."""
    job = prepare(config, checkpoint)
    return policy_job(
        job.policy,
        parse_rewards(config.rewards),
        lambda world: job.scenarios,
        config,
        HeldOut(
            job.evaluation,
            Reading,
            measure=job.measure,
            score=lambda reading: mean(reading.result.per_item["answerable"]),
            report=job.report,
        ),
        describe=job.describe,
        drawing=job.drawing(),
        opened=job.opened,
        before_alone=True,
    )


def warm_start_rows(config: ConstructTrainConfig, out: Path) -> int:
    """Write prompt and gold answer of every training chunk into the new file `out`; how many.

    Raises:
        BadInput: the data have no gold operations, or `out` is taken.
    """
    check_new(out)
    known, _ = cases(settled(config))
    rules, tools = Rules(config.build), tools_of(config.build.format)
    texts = Texts(load_embedder(config.build.embedder))
    rows = []
    for case in known:
        for prompt, said in gold_answers(BookWalk(case, texts, rules)):
            messages = [*prompt, {"role": "assistant", "content": said}]
            rows.append({"messages": messages, **({"tools": tools} if tools else {})})
    write_new(out, as_lines(rows))
    return len(rows)


RECIPE: Recipe[ConstructTrainConfig, Reading] = Recipe(make_job, console, settled)
