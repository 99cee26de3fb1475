"""memory-qa from end to end: remember conversations, train on questions, measure on others.

`RECIPE` is how a run of it is made (`tasks.base.life`), `evaluate` measures one beside the
baselines, `demo` does all of it on a small case and shows before and after.

Invariant: what is measured was never trained on (whole conversations are held out).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Final

from memograd.config.load import stored_values
from memograd.data import Conversation, ConversationSplit, select_conversations
from memograd.data.splits import Told, in_common, told_in
from memograd.errors import BadInput
from memograd.evaluation.metrics import PolicyAnswers
from memograd.grpo import RunFolder
from memograd.grpo.distributed import World
from memograd.grpo.resume import begun, stored_config
from memograd.grpo.run_folder import unnamed
from memograd.policy.model_policy import ModelPolicy
from memograd.rollout.types import Scenario
from memograd.tasks.base.life import train_task
from memograd.tasks.base.policy import REWARD_MODEL, load_policy
from memograd.tasks.base.progress import console
from memograd.tasks.base.recipe import (
    Evaluation,
    HeldOut,
    Job,
    Recipe,
    check_columns,
    located,
    parse_rewards,
    policy_job,
)
from memograd.tasks.memory_qa.measure import (
    EVERY,
    TRAINED,
    UNTRAINED,
    WARM_START,
    WITH_ADAPTER,
    ask,
    print_examples,
    report_results,
)
from memograd.tasks.memory_qa.scenarios import question_columns
from memograd.tasks.memory_qa.settings import MemoryQATrainConfig
from memograd.tasks.memory_qa.setup import (
    MemoryQASetup,
    available_conversations,
    check_keeping,
    choose_split,
    thinned,
)

TASK: Final = "memory-qa"
MEMORY = "memory.db"
DEMO_STEPS = 20
SHARED: Final = {
    *("data", "train", "eval", "model", "device", "seed", "lora", "memory"),
    "max_completion_length",
}
"""Settings that supervised fine-tuning on this task has too."""


@dataclass(frozen=True)
class QAJob:
    """A policy, the conversations that it is trained and measured on, and their memory."""

    config: MemoryQATrainConfig
    policy: ModelPolicy
    split: ConversationSplit
    setups: dict[str, MemoryQASetup]  # the one setup, once the run folder is there

    @property
    def setup(self) -> MemoryQASetup:
        return self.setups["opened"]

    @contextmanager
    def opened(self, folder: Path) -> Iterator[None]:
        """Within this block the memory is that of the run folder."""
        self.setups["opened"] = MemoryQASetup(self.config, self.policy, folder / MEMORY)
        yield

    def describe(self, run: RunFolder) -> None:
        """Remember the conversations, and say what is trained on."""
        known = [*self.split.train, *self.split.eval]
        new_turns = self.setup.remember(known)
        count = sum(len(one.questions) for one in self.split.train)
        console.print(f"memory: {new_turns} new turns of {_names(known)}")
        console.print(
            f"training {self.policy.name} on {count} questions of {_names(self.split.train)}, "
            f"on {self.policy.device.type}"
        )

    def scenarios(self, world: World) -> Sequence[Scenario]:
        """The training questions; rank 0 has the memory."""
        return world.led(lambda: self.setup.scenarios(self.split.train))

    def measure(self, label: str) -> PolicyAnswers:
        """Ask the held-out questions of the policy as it is now."""
        method = self.before if label == "before training" else TRAINED
        return ask(self.policy, self.setup, self.split.eval, self.config, method)

    @property
    def before(self) -> str:
        """What the policy is called that training began with."""
        return UNTRAINED if self.config.adapter is None else WARM_START

    def report(self, before: PolicyAnswers, after: PolicyAnswers, folder: Path) -> None:
        """Both sides in tables; beside a warm start stands the model without it."""
        answered = [before, after]
        if self.config.adapter is not None:
            with self.policy.untrained():
                alone = ask(self.policy, self.setup, self.split.eval, self.config, UNTRAINED)
            answered.insert(0, alone)
        report_results(answered, self.split.eval, folder, compared_with=self.before)


def settled(config: MemoryQATrainConfig) -> MemoryQATrainConfig:
    """The given settings with absolute paths; bad rewards are refused."""
    if config.resume is None:
        parse_rewards(config.rewards)
    return located(config)


def make_job(config: MemoryQATrainConfig, checkpoint: Path | None) -> Job[PolicyAnswers]:
    """What is trained on which questions, and how it is measured."""
    chosen = choose_split(
        available_conversations(config.data, config.seed), config.train, config.eval
    )
    split = ConversationSplit(
        thinned(chosen.train, config.max_train, config.seed),
        thinned(chosen.eval, config.max_eval, config.seed),
    )
    rewards = parse_rewards(config.rewards)
    first = next(one for one in split.train if one.questions)
    check_columns(rewards, question_columns(first, first.questions[0]), "questions")
    if checkpoint is None:
        check_keeping(config.memory, split.eval)
    policy = load_policy(config, checkpoint)
    if checkpoint is None:
        # What else can be wrong is found here, before the folder is made.
        MemoryQASetup(config, policy, Path(MEMORY)).check([*split.train, *split.eval])
    ids = {"train": [one.id for one in split.train], "eval": [one.id for one in split.eval]}
    config = config.model_copy(update=ids)
    job = QAJob(config, policy, split, {})
    made = policy_job(
        policy,
        rewards,
        job.scenarios,
        config,
        HeldOut(
            split.eval,
            PolicyAnswers,
            measure=job.measure,
            score=lambda answered: mean(answered.report.scores["locomo_f1"]),
            report=job.report,
        ),
        describe=job.describe,
        opened=job.opened,
    )
    # Whoever measures the run later must know what it was trained on.
    return replace(made, settings=config)


def evaluate(run: Path, asked: Evaluation) -> None:
    """Measure the trained policy of `run`; tables go to the terminal and into the run folder.

    `asked.conversations` are ids in `asked.data`, or in the run's own data. Where none are named,
    they are those of the data that it was not trained on, or the run's evaluation set. Those it was
    trained on are refused. What is measured on other data goes into a subfolder. Baselines are the
    methods without memory, with the last turns only, and the trained policy without memory.
    """
    folder = RunFolder.open(run)
    config, data = _config(folder), asked.data
    checkpoint = folder.trained_checkpoint()
    if data is None and not config.train:
        raise BadInput(
            f"{run} was not trained on conversations; name some to ask about with --data FILE"
        )
    available = available_conversations(data or config.data, config.seed)
    known = _known(config)
    conversations = list(asked.conversations)
    if not conversations:
        seen = set(in_common(known, map(told_in, available)))
        unseen = [entry.id for entry in available if entry.id not in seen]
        conversations = config.eval if data is None else unseen
    chosen = select_conversations(available, conversations)
    if data is None and conversations == config.eval:
        chosen = thinned(chosen, config.max_eval, config.seed)
    _refuse_seen(run, known, chosen)
    check_keeping(config.memory, chosen)
    policy = load_policy(config, checkpoint)
    results = asked.open_results(run)
    setup = MemoryQASetup(config, policy, results / MEMORY)
    setup.remember(chosen)
    began = UNTRAINED if config.adapter is None else WARM_START
    methods = list(EVERY) if asked.baselines else [UNTRAINED, TRAINED]
    if began == WARM_START:
        methods.insert(methods.index(UNTRAINED) + 1, WARM_START)
    answered = []
    for method in methods:
        with _as_it_was(policy, method):
            answered.append(ask(policy, setup, chosen, config, method))
    report_results(answered, chosen, results, compared_with=began)


def policy_to_measure(
    run: Path, chosen: Sequence[Conversation]
) -> tuple[MemoryQATrainConfig, Path]:
    """The settings and the latest checkpoint of a run that is measured on these conversations.

    Raises:
        BadInput: it has none yet, or was trained on one of them.
    """
    folder = RunFolder.open(run)
    checkpoint = folder.trained_checkpoint()
    config = _config(folder)
    _refuse_seen(run, _known(config), chosen)
    return config, checkpoint


def _refuse_seen(run: Path, known: Sequence[Told], chosen: Sequence[Conversation]) -> None:
    trained_on = in_common(known, map(told_in, chosen))
    if trained_on or not chosen:
        names = ", ".join(sorted(trained_on)) or "all of it"
        raise BadInput(
            f"{run} was trained on {names}; measuring on it would say nothing about new "
            "conversations, so choose others with --conversation"
        )


def _as_it_was(policy: ModelPolicy, method: str) -> AbstractContextManager[None]:
    if method in WITH_ADAPTER:
        return nullcontext()
    return policy.at_start() if method == WARM_START else policy.untrained()


def _config(run: RunFolder) -> MemoryQATrainConfig:
    """The settings of a run of this task, or of another that asks with the same memory (sft)."""
    if not begun(run).recipe and run.task in ("", TASK):
        return stored_config(run, MemoryQATrainConfig)
    if begun(run).recipe == REWARD_MODEL:
        raise BadInput(
            "This run trained a reward model, which answers no questions; measure it with "
            "memograd reward-model evaluate."
        )
    values = stored_values(run.config_json)
    shared = {key: values[key] for key in SHARED & values.keys()}
    if values.get("task") != TASK:  # trained on no conversations
        shared = {key: shared[key] for key in ("model", "device", "seed", "lora") if key in shared}
    return MemoryQATrainConfig.model_validate_json(json.dumps(shared))


def _known(config: MemoryQATrainConfig) -> list[Told]:
    """What a run was trained on; by their ids alone where its data are no longer there."""
    if not config.train:
        return []
    try:
        available = available_conversations(config.data, config.seed)
        return [told_in(one) for one in select_conversations(available, config.train)]
    except BadInput:
        console.print(f"{config.data} has changed or is gone: what it was is known by ids alone")
        return [(name, ()) for name in config.train]


def demo(data: Path | None, steps: int | None, out: Path | None) -> None:
    """Train for a few minutes and show, before and after, a conversation it never saw."""
    config = MemoryQATrainConfig(
        data=data,
        steps=steps or DEMO_STEPS,
        out=out or unnamed("demo"),
    )
    run = train_task(TASK, RECIPE, config)
    print_examples(run)
    for label, name in (
        ("adapter", "final"),
        ("metrics", "metrics.jsonl"),
        ("curves", "curves.png"),
        ("rollouts", "rollouts"),
        ("tables", "evaluation.md"),
    ):
        console.print(f"{label:<9} {run / name}")


def _names(conversations: Sequence[Conversation]) -> str:
    return ", ".join(conversation.id for conversation in conversations)


RECIPE: Recipe[MemoryQATrainConfig, PolicyAnswers] = Recipe(
    make_job, console, settled, evaluate, or_unsaid=True
)
