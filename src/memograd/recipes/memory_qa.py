"""memory-qa from end to end: remember conversations, train on questions, measure on others.

`train` makes a run folder (or goes on with one), `evaluate` measures it beside the baselines,
`demo` does all of it on a small case and shows before and after. The command line calls these.

Invariant: what is measured was never trained on (whole conversations are held out). Tested in
`tests/recipes/test_memory_qa.py`. May import every room below the recipes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from memograd.config import TrainConfig
from memograd.data import Conversation, select_conversations
from memograd.errors import BadInput
from memograd.evaluation import plot_curves
from memograd.grpo import RunFolder
from memograd.grpo.trainer import Trainer
from memograd.policy.language_model import LanguageModel
from memograd.recipes.memory_qa_measure import (
    METHODS,
    TRAINED,
    UNTRAINED,
    ask,
    print_examples,
    publish,
)
from memograd.recipes.memory_qa_setup import (
    MemoryQASetup,
    available_conversations,
    choose_split,
)
from memograd.recipes.progress import training_progress
from memograd.rewards import parse_rewards

console = Console(markup=False, highlight=False, soft_wrap=True)

CHANGEABLE_ON_RESUME = {"steps", "save_steps", "rollout_log_steps", "eval_batch_size", "device"}
DEMO_STEPS = 30


def train(config: TrainConfig) -> Path:
    """Train on `config.train`, measuring `config.eval` before and after; returns the run folder.

    With `config.resume`, the run in that folder goes on from its last complete checkpoint; only
    the settings in `CHANGEABLE_ON_RESUME` may differ from those it began with.
    """
    resumed = config.resume is not None
    out = config.out or Path("runs") / f"memory-qa-{time.strftime('%Y%m%d-%H%M%S')}"
    run = checkpoint = None
    if config.resume is not None:
        run = RunFolder.open(config.resume)
        config = _resumed_config(run, config)
        checkpoint = run.latest_checkpoint()
    else:
        RunFolder.check_free(out)
    rewards = parse_rewards(config.rewards)
    split = choose_split(
        available_conversations(config.data, config.seed), config.train, config.eval
    )
    policy = _load_policy(config, checkpoint)
    if run is None:
        # Made last, so that bad input leaves nothing behind; says what was chosen, not "the rest".
        config = config.model_copy(
            update={
                "data": config.data.resolve() if config.data else None,
                "train": [conversation.id for conversation in split.train],
                "eval": [conversation.id for conversation in split.eval],
            }
        )
        run = RunFolder.create(out, config.model_dump_json(indent=2))
    setup = MemoryQASetup(config, policy, run.path / "memory.db")
    new_turns = setup.remember([*split.train, *split.eval])
    console.print(f"memory: {new_turns} new turns of {_names([*split.train, *split.eval])}")
    scenarios = setup.scenarios(split.train)
    before = ask(policy, setup, split.eval, config, UNTRAINED, console)
    console.print(
        f"training {policy.name} on {len(scenarios)} questions of {_names(split.train)}, "
        f"on {policy.device.type}"
    )
    with training_progress(console, total=config.steps) as on_step:
        trainer = Trainer(policy, scenarios, rewards, config, run, on_step=on_step)
        if checkpoint is not None:
            trainer.restore(checkpoint)
            console.print(f"going on after step {trainer.step} ({checkpoint.name})")
        if resumed:
            run.truncate_metrics(trainer.step)
        trainer.train()
    plot_curves(run.metrics_path, run.path / "curves.png")
    after = ask(policy, setup, split.eval, config, TRAINED, console)
    publish([before, after], split.eval, run.path, console)
    return run.path


def evaluate(run: Path, data: Path | None, conversations: list[str], baselines: bool) -> None:
    """Measure the trained policy of `run`; tables go to the terminal and into the run folder.

    `conversations` are ids in `data`, or in the run's own data. Where none are named, they are all
    of `data`, or the run's evaluation set. Those it was trained on are refused. `baselines` adds
    the methods without memory, with the last turns only, and the trained policy without memory.
    """
    folder = RunFolder.open(run)
    config = TrainConfig.model_validate_json(folder.config_json)
    checkpoint = folder.latest_checkpoint()
    if checkpoint is None:
        raise BadInput(f"{run} has no complete checkpoint yet; train it first (resume={run})")
    available = available_conversations(data or config.data, config.seed)
    everything = [conversation.id for conversation in available]
    chosen = select_conversations(
        available, conversations or (config.eval if data is None else everything)
    )
    trained_on = {conversation.id for conversation in chosen}.intersection(config.train)
    if trained_on:
        raise BadInput(
            f"{run} was trained on {', '.join(sorted(trained_on))}; measuring on it would say "
            "nothing about new conversations"
        )
    policy = _load_policy(config, checkpoint)
    setup = MemoryQASetup(config, policy, run / "memory.db")
    setup.remember(chosen)
    methods = list(METHODS) if baselines else [UNTRAINED, TRAINED]
    answered = [ask(policy, setup, chosen, config, method, console) for method in methods]
    publish(answered, chosen, run, console)


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


def _load_policy(config: TrainConfig, checkpoint: Path | None) -> LanguageModel:
    if checkpoint is not None:
        return LanguageModel.load_adapter(
            config.model, checkpoint, device=config.device, forward=config.forward
        )
    return LanguageModel.load(
        config.model,
        lora=config.lora,
        device=config.device,
        seed=config.seed,
        forward=config.forward,
    )


def _resumed_config(run: RunFolder, config: TrainConfig) -> TrainConfig:
    """The settings the run began with, and those given now that may change."""
    began = TrainConfig.model_validate_json(run.config_json)
    if config.data is not None:
        config = config.model_copy(update={"data": config.data.resolve()})
    given = config.model_fields_set - {"resume"}
    refused = sorted(
        name
        for name in given - CHANGEABLE_ON_RESUME
        if getattr(config, name) != getattr(began, name)
    )
    if refused:
        raise BadInput(
            f"a resumed run keeps its settings, but {', '.join(refused)} would change "
            f"{run.path / 'config.json'}; only {', '.join(sorted(CHANGEABLE_ON_RESUME))} may"
        )
    return began.model_copy(update={name: getattr(config, name) for name in given})


def _names(conversations: Sequence[Conversation]) -> str:
    return ", ".join(conversation.id for conversation in conversations)
