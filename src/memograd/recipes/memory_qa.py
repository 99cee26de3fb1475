"""memory-qa from end to end: remember conversations, train on questions, measure on others.

`train` makes a run folder (or goes on with one), `evaluate` measures it beside the baselines,
`demo` does all of it on a small case and shows before and after. The command line calls these
three.

Invariant: what is measured was never trained on (whole conversations are held out), and all methods
of a table answer the same questions. Tested in `tests/recipes/test_memory_qa.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console

from memograd.config import TrainConfig
from memograd.data import Conversation
from memograd.errors import BadInput
from memograd.evaluation import (
    compare_reports,
    plot_curves,
    print_reports,
    reports_to_json,
    reports_to_markdown,
)
from memograd.evaluation.harness import Answered, evaluate_policy
from memograd.grpo import RunFolder
from memograd.grpo.trainer import Trainer
from memograd.policy.language_model import LanguageModel
from memograd.recipes.memory_qa_setup import MemoryQASetup, choose_conversations
from memograd.recipes.progress import counting_progress, training_progress
from memograd.rewards import parse_rewards
from memograd.tasks import MemoryView

console = Console()

UNTRAINED = "retrieved memory, untrained"
TRAINED = "retrieved memory, trained"
BASELINES = {
    "no memory, untrained": (MemoryView.NONE, False),
    "last turns, untrained": (MemoryView.LAST, False),
    UNTRAINED: (MemoryView.RETRIEVED, False),
    "no memory, trained": (MemoryView.NONE, True),
    TRAINED: (MemoryView.RETRIEVED, True),
}
"""Method name -> what the prompt shows, and whether the trained adapter is on."""

CHANGEABLE_ON_RESUME = {"steps", "save_steps", "rollout_log_steps", "eval_batch_size", "device"}
DEMO_STEPS = 30


def train(config: TrainConfig) -> Path:
    """Train on `config.train`, then measure `config.eval` before and after; returns the run folder.

    With `config.resume`, the run in that folder goes on from its last complete checkpoint; only
    the settings in `CHANGEABLE_ON_RESUME` may differ from those it began with.
    """
    resumed = config.resume is not None
    if config.resume is None:
        run = None
        path = config.out or Path("runs") / f"memory-qa-{time.strftime('%Y%m%d-%H%M%S')}"
        RunFolder.check_free(path)
    else:
        run = RunFolder.open(config.resume)
        path = config.resume
        config = _resumed_config(run, config)
    rewards = parse_rewards(config.rewards)
    split = choose_conversations(config.data, config.train, config.eval, seed=config.seed)
    checkpoint = run.latest_checkpoint() if run else None
    if checkpoint is None:
        policy = LanguageModel.load(
            config.model,
            lora=config.lora,
            device=config.device,
            seed=config.seed,
            forward=config.forward,
        )
    else:
        policy = LanguageModel.load_adapter(
            config.model, checkpoint, device=config.device, forward=config.forward
        )
    # The folder is made last, so that bad input leaves nothing behind.
    run = run or RunFolder.create(path, config.model_dump_json(indent=2))
    setup = MemoryQASetup(config, policy, run.path / "memory.db")
    count = setup.remember([*split.train, *split.eval])
    console.print(f"memory: {count} new turns of {_names([*split.train, *split.eval])}")
    scenarios = setup.scenarios(split.train)
    console.print(
        f"training {policy.name} on {len(scenarios)} questions of {_names(split.train)}, "
        f"on {policy.device.type}"
    )
    with training_progress(console, done=0, total=config.steps) as on_step:
        trainer = Trainer(policy, scenarios, rewards, config, run, on_step=on_step)
        if checkpoint is not None:
            trainer.restore(checkpoint)
            console.print(f"going on after step {trainer.step} ({checkpoint.name})")
        if resumed:
            run.truncate_metrics(trainer.step)
        trainer.train()
    plot_curves(run.metrics_path, run.path / "curves.png")
    _measure(policy, setup, split.eval, config, [UNTRAINED, TRAINED], run.path)
    return run.path


def evaluate(run: Path, data: Path | None, conversations: list[str], baselines: bool) -> None:
    """Measure the trained policy of `run`; tables go to the terminal and into the run folder.

    `conversations` (ids in `data`, or in the run's own data) default to the run's evaluation set;
    those it was trained on are refused. `baselines` adds what needs no training.
    """
    folder = RunFolder.open(run)
    config = TrainConfig.model_validate_json(folder.config_json)
    checkpoint = folder.latest_checkpoint()
    if checkpoint is None:
        raise BadInput(f"{run} has no complete checkpoint yet; train it first (resume={run})")
    same_data = data is None
    split = choose_conversations(
        config.data if same_data else data,
        config.train if same_data else [],
        (conversations or config.eval) if same_data else [],
        seed=config.seed,
    )
    chosen: Sequence[Conversation] = split.eval
    if not same_data:
        everything = [*split.train, *split.eval]
        known = {conversation.id: conversation for conversation in everything}
        unknown = [name for name in conversations if name not in known]
        if unknown:
            raise BadInput(f"{data} has no conversation {unknown[0]}; it has {', '.join(known)}")
        chosen = [known[name] for name in conversations] if conversations else everything
    trained_on = set(config.train) & {conversation.id for conversation in chosen}
    if trained_on:
        raise BadInput(
            f"{run} was trained on {', '.join(sorted(trained_on))}; measuring on it would say "
            "nothing about new conversations"
        )
    policy = LanguageModel.load_adapter(
        config.model, checkpoint, device=config.device, forward=config.forward
    )
    setup = MemoryQASetup(config, policy, run / "memory.db")
    setup.remember(chosen)
    methods = list(BASELINES) if baselines else [UNTRAINED, TRAINED]
    _measure(policy, setup, chosen, config, methods, run)


def demo(data: Path | None, steps: int | None, out: Path | None) -> None:
    """Train for a few minutes and show, before and after, a conversation it never saw."""
    config = TrainConfig(
        data=data,
        steps=steps or DEMO_STEPS,
        out=out or Path("runs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}",
    )
    run = train(config)
    console.print(f"adapter   {run / 'final'}")
    console.print(f"metrics   {run / 'metrics.jsonl'}")
    console.print(f"curves    {run / 'curves.png'}")
    console.print(f"rollouts  {run / 'rollouts'}")
    console.print(f"table     {run / 'evaluation.md'}")


def _measure(
    policy: LanguageModel,
    setup: MemoryQASetup,
    conversations: Sequence[Conversation],
    config: TrainConfig,
    methods: Sequence[str],
    folder: Path,
) -> None:
    """Run `methods` on the questions of `conversations`, print the table, write it to `folder`."""
    answered: dict[str, Answered] = {}
    for method in methods:
        view, trained = BASELINES[method]
        scenarios = setup.scenarios(conversations, view)
        with (
            counting_progress(console, f"asking: {method}", total=len(scenarios)) as on_progress,
            nullcontext() if trained else policy.untrained(),
        ):
            answered[method] = evaluate_policy(
                policy,
                scenarios,
                method=method,
                max_completion_length=config.max_completion_length,
                batch_size=config.eval_batch_size,
                on_progress=on_progress,
            )
    reports = [answer.report for answer in answered.values()]
    comparison = compare_reports(answered[UNTRAINED].report, answered[TRAINED].report)
    print_reports(reports, comparisons=[comparison])
    (folder / "evaluation.md").write_text(reports_to_markdown(reports), encoding="utf-8")
    (folder / "evaluation.json").write_text(reports_to_json(reports), encoding="utf-8")
    _write_answers(folder / "answers.jsonl", answered, setup, conversations)


def _write_answers(
    path: Path,
    answered: dict[str, Answered],
    setup: MemoryQASetup,
    conversations: Sequence[Conversation],
) -> None:
    """Every question with its gold answer and what each method said, one JSON line each."""
    questions = [question for conversation in conversations for question in conversation.questions]
    lines = []
    for row, question in enumerate(questions):
        said = {method: answer.answers[row] for method, answer in answered.items()}
        record = {
            "id": question.id,
            "question": question.text,
            "gold": question.answer,
            "answers": said,
        }
        lines.append(json.dumps(record, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _resumed_config(run: RunFolder, config: TrainConfig) -> TrainConfig:
    """The settings the run began with, and those given now that may change."""
    began = TrainConfig.model_validate_json(run.config_json)
    given = config.model_fields_set - {"resume"}
    refused = {
        name
        for name in given - CHANGEABLE_ON_RESUME
        if getattr(config, name) != getattr(began, name)
    }
    if refused:
        raise BadInput(
            f"a resumed run keeps its settings; {', '.join(sorted(refused))} differ(s) from "
            f"{run.path / 'config.json'} (only {', '.join(sorted(CHANGEABLE_ON_RESUME))} may)"
        )
    return began.model_copy(update={name: getattr(config, name) for name in given})


def _names(conversations: Sequence[Conversation]) -> str:
    return ", ".join(conversation.id for conversation in conversations)
