"""memory-qa from end to end: remember conversations, train on questions, measure on others.

`train` makes a run folder (or goes on with one), `evaluate` measures it beside the baselines,
`demo` does all of it on a small case and shows before and after. The command line calls these.

Invariant: what is measured was never trained on (whole conversations are held out).
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from memograd.config import TrainConfig
from memograd.data import Conversation, select_conversations
from memograd.data.splits import Told, in_common, told_in
from memograd.errors import BadInput
from memograd.evaluation import plot_curves
from memograd.grpo import RunFolder
from memograd.grpo.distributed import World
from memograd.grpo.resume import check_task, resumed_config, stored_config, stored_settings
from memograd.grpo.trackers import check_trackers, open_trackers
from memograd.grpo.trainer import Trainer
from memograd.policy.language_model import LanguageModel
from memograd.tasks.base.policy import load_policy
from memograd.tasks.base.progress import training_progress
from memograd.tasks.base.ranks import held, joined_ranks, share_weights
from memograd.tasks.base.rewards import parse_rewards
from memograd.tasks.base.starting_adapter import settings_with_adapter
from memograd.tasks.memory_qa.measure import (
    METHODS,
    TRAINED,
    UNTRAINED,
    ask,
    print_examples,
    report_results,
)
from memograd.tasks.memory_qa.setup import (
    MemoryQASetup,
    available_conversations,
    choose_split,
)

console = Console(markup=False, highlight=False, soft_wrap=True)

TASK = "memory-qa"
MEMORY = "memory.db"
DEMO_STEPS = 20


def train(config: TrainConfig) -> Path:
    """Train on `config.train`, measuring `config.eval` before and after; returns the run folder.

    With `config.resume`, the run in that folder goes on from its last complete checkpoint; only
    the settings in `grpo.resume.CHANGEABLE` may differ from those it began with.
    """
    if config.resume is not None:
        began = RunFolder.open(config.resume)
        check_task(began, TASK, or_unsaid=True)
        device = stored_config(began).device
        with joined_ranks(device, console) as world, held(began, world) as run:
            config = world.led(lambda: resumed_config(run, config))
            checkpoint = world.led(run.latest_checkpoint)
            return _train_in(world, run, config, checkpoint, resumed=True)
    with joined_ranks(config.device, console) as world:
        out = world.led(lambda: _free_folder(config))
        config, policy = world.guarded(lambda: _settled(config, out))
        with held(world.led(lambda: _new_run(out, config, policy)), world) as run:
            return _train_in(world, run, config, None, resumed=False, policy=policy)


def _free_folder(config: TrainConfig) -> Path:
    out = config.out or Path("runs") / f"{TASK}-{time.strftime('%Y%m%d-%H%M%S')}"
    RunFolder.check_free(out)
    return out


def _settled(config: TrainConfig, out: Path) -> tuple[TrainConfig, LanguageModel]:
    """The settings with what the task chose and paths made absolute, and the policy.

    What can be wrong is found here, before the folder is made, so that bad input leaves nothing.
    """
    config = settings_with_adapter(config)
    parse_rewards(config.rewards)
    check_trackers(config.track)
    split = choose_split(
        available_conversations(config.data, config.seed), config.train, config.eval
    )
    policy = load_policy(config, None)
    setup = MemoryQASetup(config, policy, out / MEMORY)
    setup.check([*split.train, *split.eval])
    setup.check_unseen(split.eval)
    config = config.model_copy(
        update={
            "data": config.data.resolve() if config.data else None,
            "model": str(Path(config.model).resolve())
            if Path(config.model).is_dir()
            else config.model,
            "train": [conversation.id for conversation in split.train],
            "eval": [conversation.id for conversation in split.eval],
        }
    )
    return config, policy


def _new_run(out: Path, config: TrainConfig, policy: LanguageModel) -> RunFolder:
    run = RunFolder.create(out, config.model_dump_json(indent=2), task=TASK)
    (run.path / "environment.json").write_text(json.dumps(policy.environment(), indent=2))
    return run


def _train_in(
    world: World,
    run: RunFolder,
    config: TrainConfig,
    checkpoint: Path | None,
    *,
    resumed: bool,
    policy: LanguageModel | None = None,
) -> Path:
    """Train in a folder that is ours; `policy` if it is loaded already. Rank 0 has the memory."""
    trackers = world.guarded(lambda: open_trackers(config, run))
    rewards = parse_rewards(config.rewards)
    split = choose_split(
        available_conversations(config.data, config.seed), config.train, config.eval
    )
    policy = policy or world.guarded(lambda: load_policy(config, checkpoint))
    share_weights(policy, config, world)
    setup = MemoryQASetup(config, policy, run.path / MEMORY)
    new_turns = world.led(lambda: setup.remember([*split.train, *split.eval]))
    console.print(f"memory: {new_turns} new turns of {_names([*split.train, *split.eval])}")
    scenarios = world.led(lambda: setup.scenarios(split.train))
    before = world.led(lambda: ask(policy, setup, split.eval, config, UNTRAINED, console))
    console.print(
        f"training {policy.name} on {len(scenarios)} questions of {_names(split.train)}, "
        f"on {policy.device.type}"
    )
    with training_progress(console, total=config.steps) as on_step:
        trainer = world.guarded(
            lambda: Trainer(
                policy,
                scenarios,
                rewards,
                config,
                run,
                on_step=on_step,
                trackers=trackers,
                world=world,
            )
        )
        if checkpoint is not None:
            world.guarded(lambda: trainer.restore(checkpoint))
            console.print(f"going on after step {trainer.step} ({checkpoint.name})")
        elif resumed:
            console.print("there is no complete checkpoint yet: starting over from the first step")
        if resumed:
            world.guarded(lambda: run.truncate_metrics(trainer.step))
        trainer.train()

    def measure_again() -> None:
        plot_curves(run.metrics_path, run.path / "curves.png")
        after = ask(policy, setup, split.eval, config, TRAINED, console)
        report_results([before, after], split.eval, run.path, console)

    world.led(measure_again)
    return run.path


def evaluate(run: Path, data: Path | None, conversations: list[str], baselines: bool) -> None:
    """Measure the trained policy of `run`; tables go to the terminal and into the run folder.

    `conversations` are ids in `data`, or in the run's own data. Where none are named, they are
    those of `data` that it was not trained on, or the run's evaluation set. Those it was trained on
    are refused. What is measured on other data goes into a subfolder. `baselines` adds the
    methods without memory, with the last turns only, and the trained policy without memory.
    """
    folder = RunFolder.open(run)
    settings = stored_settings(folder)
    config = settings if isinstance(settings, TrainConfig) else settings.as_train_config()
    checkpoint = folder.latest_checkpoint()
    if checkpoint is None:
        raise BadInput(f"{run} has no complete checkpoint yet; train it first (resume={run})")
    if data is None and not config.train:
        raise BadInput(
            f"{run} was not trained on conversations; name some to ask about with --data FILE"
        )
    available = available_conversations(data or config.data, config.seed)
    known = _known(config)
    if not conversations:
        seen = set(in_common(known, map(told_in, available)))
        unseen = [entry.id for entry in available if entry.id not in seen]
        conversations = config.eval if data is None else unseen
    chosen = select_conversations(available, conversations)
    trained_on = in_common(known, map(told_in, chosen))
    if trained_on or not chosen:
        names = ", ".join(sorted(trained_on)) or "all of it"
        raise BadInput(
            f"{run} was trained on {names}; measuring on it would say nothing about new "
            "conversations, so choose others with --conversation"
        )
    policy = load_policy(config, checkpoint)
    results = run if data is None else run / f"evaluation-{data.stem}"
    setup = MemoryQASetup(config, policy, results / MEMORY)
    setup.check_unseen(chosen)
    results.mkdir(exist_ok=True)
    setup.remember(chosen)
    methods = list(METHODS) if baselines else [UNTRAINED, TRAINED]
    answered = [ask(policy, setup, chosen, config, method, console) for method in methods]
    report_results(answered, chosen, results, console)


def _known(config: TrainConfig) -> list[Told]:
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
    run = train(
        TrainConfig(
            data=data,
            steps=steps or DEMO_STEPS,
            out=out or Path("runs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}",
        )
    )
    print_examples(run, console)
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
