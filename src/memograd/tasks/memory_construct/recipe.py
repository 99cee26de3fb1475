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

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Final

from memograd.data import Question
from memograd.data.conversation import ConstructionCase
from memograd.data.lifelog import Lifelog, LifelogSettings, generate_in_languages
from memograd.data.mem_alpha import load_mem_alpha
from memograd.data.record_files import as_lines, check_new, write_new
from memograd.data.splits import Told, in_common, told_in
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.trainer import check_unmeasured
from memograd.memory.embedders.load import check_embedder, load_embedder
from memograd.memory.language import Language
from memograd.policy.loading import check_model
from memograd.policy.model_policy import ModelPolicy
from memograd.rewards import WeightedReward
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
    with_section,
)
from memograd.tasks.memory_construct.case import BuildCase, case_of_construction, case_of_log
from memograd.tasks.memory_construct.credit import CREDITS, CreditWeights
from memograd.tasks.memory_construct.drawing import ConstructDrawing, DrawingPlan, Speaker
from memograd.tasks.memory_construct.measure import Reading, baselines, build, gold_answers, report
from memograd.tasks.memory_construct.memory_book import Texts
from memograd.tasks.memory_construct.settings import ConstructConfig, ConstructTrainConfig
from memograd.tasks.memory_construct.walk import (
    BookWalk,
    NoteReader,
    Rules,
    Standard,
    ViewLimits,
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

    policy: ModelPolicy
    speaker: Speaker
    texts: Texts
    rewards: list[WeightedReward]
    train: list[BuildCase]
    evaluation: list[BuildCase]
    drawing: ConstructDrawing
    silent: int
    reader: RunReader | None

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


def settled(config: ConstructTrainConfig) -> ConstructTrainConfig:
    """The given settings with absolute paths, and with what this task chooses.

    Raises:
        BadInput: a setting asks for what this task cannot do.
    """
    config = with_section(
        located(config),
        "build",
        reader=lambda name: str(Path(name).resolve()) if Path(name).is_dir() else name,
    )
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
    rewards = parse_rewards(config.rewards)
    check_embedder(construct.embedder)
    if construct.reader not in (None, BASE):
        check_model(construct.reader)
    if construct.format == "tools" and config.episodes.chat_template is not None:
        read_template(config.episodes.chat_template)
    known, held_out = cases(config)
    evaluation = [case for case in held_out if case.asked]
    if not evaluation:
        check_unmeasured(config)
    asking = [case for case in known if case.first_chunks(chunks_at(construct, 1)).asked]
    if not asking:
        raise BadInput(
            "No case asks anything about its first chunks: raise build.chunks or build.logs."
        )
    policy = load_policy(config, checkpoint)
    reader = open_reader(construct.reader, policy, config.device) if construct.reader else None
    speaker = speaker_for([*asking, *held_out], policy, config, reader)
    texts = Texts(load_embedder(construct.embedder))
    drawing = ConstructDrawing(
        speaker,
        {case.id: case for case in asking},
        texts,
        DrawingPlan(
            CREDITS[construct.credit],
            weights_of(construct),
            walks=construct.walks,
            chunks=lambda step: chunks_at(construct, step),
        ),
        num_generations=config.num_generations,
    )
    return ConstructJob(
        policy,
        speaker,
        texts,
        rewards,
        asking,
        evaluation,
        drawing,
        silent=len(known) - len(asking),
        reader=reader,
    )


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
    rules = rules_of(config.build, reader)
    if rules.form == "tools":
        use_tool_template(policy.tokenizer, config.episodes.chat_template)
    _check_length(policy, read, config)
    return Speaker(
        policy,
        ChatIds(policy.tokenizer, end_ids=policy.end_ids),
        rules,
        max_completion_length=config.max_completion_length,
    )


def chunks_at(construct: ConstructConfig, step: int) -> int:
    """How many chunks of a case are read at a step (from 1): the curriculum over length."""
    if construct.first_chunks is None:
        return construct.chunks
    return min(construct.chunks, construct.first_chunks + (step - 1) // construct.grow_every)


def rules_of(construct: ConstructConfig, reader: NoteReader | None = None) -> Rules:
    """How the settings walk through cases; reader: who answers their questions."""
    return Rules(
        construct.format,
        ViewLimits(construct.view_items, construct.view_tokens),
        Standard(construct.top_k, construct.token_budget, construct.misled_cost, reader),
    )


def weights_of(construct: ConstructConfig) -> CreditWeights:
    """What the settings weigh."""
    return CreditWeights(
        construct.compression_weight, construct.content_weight, construct.global_weight
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
            again = set(in_common(map(_told, held_out), map(_told, known)))  # as some sets have it
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
    if common := sorted(in_common(map(_told, known), map(_told, held_out))):
        raise BadInput(
            f"{eval_data} has {', '.join(common)} in common with what is trained on, which "
            "says nothing about others; take it out of one of them."
        )


def _told(one: BuildCase | Lifelog) -> Told:
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


class RunReader:
    """A `NoteReader`, whose answers are kept in `reader.jsonl` of a run folder while that is open,
    so that nothing is answered twice, also after a kill."""

    def __init__(self, chat: BaseModelChat) -> None:
        self._chat = chat
        self._reader = Reader(chat)

    @property
    def name(self) -> str:
        """The model's."""
        return self._chat.name

    @contextmanager
    def opened(self, folder: Path) -> Iterator[None]:
        """Within this block answers are looked up and kept in the file of the folder."""
        self._reader = Reader(self._chat, cache=folder / ANSWERS)
        try:
            yield
        finally:
            self._reader = Reader(self._chat)

    def answer(self, question: Question, notes: Sequence[str], language: Language) -> str:
        """As of `NoteReader`."""
        return self._reader.answer(question, notes, language)


def open_reader(named: str, policy: ModelPolicy, device: str) -> RunReader:
    """The reader of that name: `base` is the policy's own base model.

    Raises:
        BadInput: there is no such model.
    """
    if named == BASE:
        return RunReader(BaseModelChat(policy, f"{BASE}:{policy.name}"))
    return RunReader(local_chat(named, device))


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
