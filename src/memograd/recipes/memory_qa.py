"""memory-qa from end to end: remember conversations, train on questions, measure on others.

`train` makes a run folder (or goes on with one), `evaluate` measures it beside the baselines,
`demo` does all of it on a small case and shows before and after. The command line calls these.

Invariant: what is measured was never trained on (whole conversations are held out). Tested in
`tests/recipes/test_memory_qa_runs.py`. May import every room below the recipes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from memograd.config import TrainConfig
from memograd.data import Conversation, select_conversations
from memograd.errors import BadInput
from memograd.evaluation import plot_curves
from memograd.grpo import RunFolder
from memograd.grpo.run_folder import checkpoint_step
from memograd.grpo.trainer import Trainer
from memograd.policy.language_model import LanguageModel
from memograd.recipes.memory_qa_measure import (
    METHODS,
    TRAINED,
    UNTRAINED,
    ask,
    print_examples,
    report_results,
)
from memograd.recipes.memory_qa_setup import (
    MemoryQASetup,
    available_conversations,
    choose_split,
)
from memograd.recipes.progress import training_progress
from memograd.rewards import parse_rewards

console = Console(markup=False, highlight=False, soft_wrap=True)

CHANGEABLE_ON_RESUME = {"steps", "save_steps", "rollout_log_steps", "eval_batch_size"}
MEMORY = "memory.db"
DEMO_STEPS = 20


def train(config: TrainConfig) -> Path:
    """Train on `config.train`, measuring `config.eval` before and after; returns the run folder.

    With `config.resume`, the run in that folder goes on from its last complete checkpoint; only
    the settings in `CHANGEABLE_ON_RESUME` may differ from those it began with.
    """
    if config.resume is not None:
        run = RunFolder.open(config.resume)
        with run.lock():
            config = _resumed_config(run, config)
            return _train_in(run, config, run.latest_checkpoint(), resumed=True)
    out = config.out or Path("runs") / f"memory-qa-{time.strftime('%Y%m%d-%H%M%S')}"
    RunFolder.check_free(out)
    parse_rewards(config.rewards)
    split = choose_split(
        available_conversations(config.data, config.seed), config.train, config.eval
    )
    # Whatever can be wrong is found before the folder is made, so that bad input leaves nothing.
    policy = _load_policy(config, None)
    MemoryQASetup(config, policy, out / MEMORY).check([*split.train, *split.eval])
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
    run = RunFolder.create(out, config.model_dump_json(indent=2))
    (run.path / "environment.json").write_text(json.dumps(policy.environment(), indent=2))
    with run.lock():
        return _train_in(run, config, None, resumed=False, policy=policy)


def _train_in(
    run: RunFolder,
    config: TrainConfig,
    checkpoint: Path | None,
    *,
    resumed: bool,
    policy: LanguageModel | None = None,
) -> Path:
    """Train in a folder that is ours; `policy` if it is loaded already."""
    rewards = parse_rewards(config.rewards)
    split = choose_split(
        available_conversations(config.data, config.seed), config.train, config.eval
    )
    policy = policy or _load_policy(config, checkpoint)
    setup = MemoryQASetup(config, policy, run.path / MEMORY)
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
        elif resumed:
            console.print("there is no complete checkpoint yet: starting over from the first step")
        if resumed:
            run.truncate_metrics(trainer.step)
        trainer.train()
    plot_curves(run.metrics_path, run.path / "curves.png")
    after = ask(policy, setup, split.eval, config, TRAINED, console)
    report_results([before, after], split.eval, run.path, console)
    return run.path


def evaluate(run: Path, data: Path | None, conversations: list[str], baselines: bool) -> None:
    """Measure the trained policy of `run`; tables go to the terminal and into the run folder.

    `conversations` are ids in `data`, or in the run's own data. Where none are named, they are
    those of `data` that it was not trained on, or the run's evaluation set. Those it was trained on
    are refused. What is measured on other data goes into a subfolder. `baselines` adds the
    methods without memory, with the last turns only, and the trained policy without memory.
    """
    folder = RunFolder.open(run)
    config = _stored_config(folder)
    checkpoint = folder.latest_checkpoint()
    if checkpoint is None:
        raise BadInput(f"{run} has no complete checkpoint yet; train it first (resume={run})")
    available = available_conversations(data or config.data, config.seed)
    if not conversations:
        unseen = [entry.id for entry in available if entry.id not in config.train]
        conversations = config.eval if data is None else unseen
    chosen = select_conversations(available, conversations)
    trained_on = {conversation.id for conversation in chosen}.intersection(config.train)
    if trained_on or not chosen:
        names = ", ".join(sorted(trained_on)) or "all of it"
        raise BadInput(
            f"{run} was trained on {names}; measuring on it would say nothing about new "
            "conversations, so choose others with --conversation"
        )
    policy = _load_policy(config, checkpoint)
    results = run if data is None else run / f"evaluation-{data.stem}"
    results.mkdir(exist_ok=True)
    setup = MemoryQASetup(config, policy, results / MEMORY)
    setup.remember(chosen)
    methods = list(METHODS) if baselines else [UNTRAINED, TRAINED]
    answered = [ask(policy, setup, chosen, config, method, console) for method in methods]
    report_results(answered, chosen, results, console)


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


def _stored_config(run: RunFolder) -> TrainConfig:
    try:
        return TrainConfig.model_validate_json(run.config_json)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(
            f"{run.path / 'config.json'} does not fit this version of memograd: "
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from error


def _resumed_config(run: RunFolder, config: TrainConfig) -> TrainConfig:
    """The settings the run began with and those given now that may change; written down again."""
    began = _stored_config(run)
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
    resumed = began.model_copy(update={name: getattr(config, name) for name in given})
    checkpoint = run.latest_checkpoint()
    if checkpoint is not None and checkpoint_step(checkpoint) > resumed.steps:
        raise BadInput(
            f"{checkpoint} is at step {checkpoint_step(checkpoint)} already, beyond "
            f"steps={resumed.steps}; ask for more"
        )
    run.replace_config(resumed.model_dump_json(indent=2))
    return resumed


def _names(conversations: Sequence[Conversation]) -> str:
    return ", ".join(conversation.id for conversation in conversations)
