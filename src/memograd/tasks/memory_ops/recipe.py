"""memory-ops from end to end: train a policy over memory operations, measure it on other lives.

    run = train(OperationsConfig())            a run folder; run/final is what Memory.open takes

Invariant: a run that was stopped and resumed gives the metrics and the weights of the run that
never stopped, to the bit on a CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from memograd.data.lifelog import Lifelog
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.trainer import Stage
from memograd.memory.embedders import Embedder
from memograd.memory.embedders.load import check_embedder, open_embedder
from memograd.memory.manager.trained.files import TrainedHead, load_head, save_head
from memograd.memory.manager.trained.network import Shape
from memograd.tasks.base.life import train_task
from memograd.tasks.base.progress import console
from memograd.tasks.base.recipe import Evaluation, Job, Recipe, located
from memograd.tasks.base.steps import TrainingBySteps, check_began_with, environment, one_process
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.evaluate import evaluate_run
from memograd.tasks.memory_ops.learning.algorithms import (
    NO_GOLD,
    DQNMemoryTrainer,
    PPOMemoryTrainer,
    ReinforceMemoryTrainer,
    SupervisedMemoryTrainer,
    TrajectoryMemoryTrainer,
)
from memograd.tasks.memory_ops.learning.head import Network, OperationHead
from memograd.tasks.memory_ops.learning.trainer import Decisions, GRPOMemoryTrainer, collect
from memograd.tasks.memory_ops.material import (
    EmbeddedLog,
    embed_logs,
    evaluation_logs,
    fingerprint,
    training_logs,
)
from memograd.tasks.memory_ops.measure import measure_head, report
from memograd.tasks.memory_ops.rewards import (
    OperationReward,
    code_fingerprint,
    reward_of,
    with_absolute_file,
)
from memograd.tasks.memory_ops.settings import OperationsConfig, OperationsEvaluation
from memograd.tasks.memory_ops.walk import Walk, mem_alpha_outcome

TASK = "memory-ops"
STATE_FILE = "trainer_state.pt"
TRAINERS: dict[str, type[GRPOMemoryTrainer]] = {
    "grpo": GRPOMemoryTrainer,
    "reinforce": ReinforceMemoryTrainer,
    "ppo": PPOMemoryTrainer,
    "dqn": DQNMemoryTrainer,
    "supervised": SupervisedMemoryTrainer,
}

NetworkFactory = Callable[[Shape, int], Network]
"""Makes a network for the shape of the settings, and from their seed."""


@dataclass
class HeadTraining(TrainingBySteps):
    """Trains a head on embedded logs."""

    config: OperationsConfig
    trainer: GRPOMemoryTrainer
    head: Network
    material: list[EmbeddedLog]
    embedder: str
    reward: OperationReward | None

    @property
    def step(self) -> int:
        """Steps that are done."""
        return self.trainer.step

    def restore(self, checkpoint: Path) -> None:
        """Go on from `checkpoint`."""
        self.trainer.load_state_dict(torch.load(checkpoint / STATE_FILE, weights_only=True))

    def one_step(self) -> dict[str, Any]:
        """Walk through the logs of the step and learn from them."""
        decisions, measured, seconds = one_step(
            self.trainer, self.material, self.config, self.reward
        )
        return step_metrics(self.step, decisions, measured, seconds)

    def write(self, folder: Path) -> None:
        """The head, and what training goes on from."""
        about = {"run": self.stage.run.path.name, "step": self.step}
        save_head(self.head.trained(self.embedder, about), folder)
        torch.save(self.trainer.state_dict(), folder / STATE_FILE)


def recipe_with(
    trainer_class: type[GRPOMemoryTrainer] | None = None,
    network: NetworkFactory | None = None,
    embedder: Embedder | None = None,
) -> Recipe[OperationsConfig, None]:
    """The recipe with an algorithm, a network or an embedder of your own.

    trainer_class: by default the one that the settings name; it must train the network that it is
    given. network: by default `OperationHead`, or the head of the setting `policy`; what it says is
    its head is saved, measured and put in service. embedder: by default the one that the settings
    name, with a cache on disk. A run is resumed with the same trainer_class and network only.
    """

    def make_job(config: OperationsConfig, checkpoint: Path | None) -> Job[None]:
        reward = reward_of(config)
        if embedder is None:
            check_embedder(config.embedder)
        began = _begun_with(config, network, embedder.name if embedder else config.embedder)
        logs, held_out = training_logs(config), evaluation_logs(config)
        if config.algorithm == "supervised" and trainer_class is None:
            check_gold(logs)
        reader = embedder or open_embedder(config.embedder)
        head = _starting_head(config, network, began, reader.dimension)
        algorithm = trainer_class or _trainer_of(config)
        material: list[EmbeddedLog] = []

        def describe(run: RunFolder) -> None:
            others = {
                "reward_sha256": code_fingerprint(reward),
                "trainer_class": _name_of(algorithm),
                "network": _name_of(network or OperationHead),
            }
            check_began_with(run, fingerprint(logs), others, _DIFFERS)
            console.print(f"embedding {len(logs)} logs to train on, {len(held_out)} to measure on")
            material.extend(embed_logs(logs, reader, view=config.view))

        def training(stage: Stage) -> HeadTraining:
            trainer = algorithm(head, config)
            if trainer.network is not head:
                raise BadInput(
                    f"{algorithm.__name__} trains a network of its own, and what would be saved and"
                    " measured is the one that it was given: let it train that one, and give yours"
                    " by train(network=...)."
                )
            return HeadTraining(stage, config, trainer, head, material, reader.name, reward)

        def finish(folder: Path) -> None:
            unseen = embed_logs(held_out, reader, view=config.view)
            measured = measure_head(load_head(folder / "final"), material, unseen, config, reward)
            report(measured, folder)

        return Job(
            training=training,
            environment=lambda: environment("torch", "numpy"),
            describe=describe,
            share=one_process(TASK),
            finish=finish,
            describe_step=lambda metrics: (
                f"reward {metrics['reward_mean']:+.3f}  loss {metrics['loss']:+.4f}"
            ),
        )

    def settled_with(config: OperationsConfig) -> OperationsConfig:
        _check_one_network(config, network)
        return settled(config)

    return Recipe(make_job, console, settled_with, evaluate)


def train(
    config: OperationsConfig,
    *,
    trainer_class: type[GRPOMemoryTrainer] | None = None,
    network: NetworkFactory | None = None,
    embedder: Embedder | None = None,
) -> Path:
    """Train a head and measure it beside the baselines; returns the run folder.

    See `recipe_with` for the arguments. With `config.resume`, the run in that folder goes on from
    its last complete checkpoint.

    Raises:
        BadInput: settings or data cannot be used, or the data of a resumed run have changed.
        Stopped: a signal came; a checkpoint was written.
    """
    return train_task(TASK, recipe_with(trainer_class, network, embedder), config)


def evaluate(run: Path, asked: Evaluation) -> None:
    """Measure a run beside the baselines, which are always in its table."""
    options = OperationsEvaluation(data=[asked.data] if asked.data else [])
    evaluate_run(run, options, conversations=asked.conversations)


def check_gold(logs: Sequence[Lifelog]) -> None:
    """Raise BadInput where no statement of the logs has a gold operation to copy."""
    if not any(statement.gold for log in logs for statement in log.statements):
        raise BadInput(NO_GOLD)


def head_trainer(config: OperationsConfig, head: OperationHead) -> GRPOMemoryTrainer:
    """The trainer that the settings name, for a head."""
    return _trainer_of(config)(head, config)


def one_step(
    trainer: GRPOMemoryTrainer,
    material: list[EmbeddedLog],
    config: OperationsConfig,
    reward: OperationReward | None = None,
) -> tuple[Decisions, dict[str, float], dict[str, float]]:
    """Walk through the logs of the trainer's next step and learn from them.

    reward: of single operations; by default what the settings name, loaded anew. Returns the
    decisions, what was measured and the seconds by phase.
    """
    numbers = logs_of_step(len(material), trainer.step + 1, config)
    by_outcome = config.credit != "delta_qa"
    walks_each = config.num_generations if by_outcome else 1
    standard = AnswerStandard.of(config)
    reward = reward or reward_of(config)
    outcome = mem_alpha_outcome if config.credit == "mem_alpha_original" else None
    began = time.perf_counter()
    walks = [
        Walk(material[number], standard, asks=by_outcome, outcome=outcome, reward=reward)
        for number in numbers
        for _ in range(walks_each)
    ]
    decisions = collect(trainer, walks, by_outcome=by_outcome)
    walked = time.perf_counter()
    if trainer.step == 0 and config.policy is None and isinstance(trainer.network, OperationHead):
        # A fresh head draws all actions alike whatever the scales, so what was drawn stays right.
        trainer.network.fit_scales(decisions.states)
    measured = trainer.learn(decisions)
    seconds = {
        "walk": round(walked - began, 4),
        "learn": round(time.perf_counter() - walked, 4),
    }
    return decisions, measured, seconds


def logs_of_step(count: int, step: int, config: OperationsConfig) -> list[int]:
    """Numbers of the logs of a step: every log once before any comes again, shuffled by seed."""
    first = (step - 1) * config.logs_per_step
    numbers = []
    for position in range(first, first + config.logs_per_step):
        order = np.random.default_rng((config.seed, position // count)).permutation(count)
        numbers.append(int(order[position % count]))
    return numbers


def step_metrics(
    step: int, decisions: Decisions, measured: dict[str, float], seconds: dict[str, float]
) -> dict[str, Any]:
    """One line of `metrics.jsonl`: rewards of what was tried, and what the algorithm measured."""
    by_outcome = len(decisions.outcomes_W) > 0
    rewards = decisions.outcomes_W if by_outcome else decisions.rewards_NG
    varied = float((np.ptp(decisions.rewards_NG, axis=1) == 0).mean())
    return {
        "step": step,
        "reward_mean": float(rewards.mean()),
        "reward_std": float(rewards.std()),
        "decisions": len(decisions),
        "zero_variance_fraction": varied,
        **measured,
        "seconds": seconds,
    }


def _trainer_of(config: OperationsConfig) -> type[GRPOMemoryTrainer]:
    return TrajectoryMemoryTrainer if config.credit != "delta_qa" else TRAINERS[config.algorithm]


def _check_one_network(config: OperationsConfig, network: NetworkFactory | None) -> None:
    if config.policy is not None and network is not None:
        raise BadInput(
            f"policy={config.policy} is a head to begin with, and network= makes a fresh one: leave"
            " one of them out."
        )


def _begun_with(
    config: OperationsConfig, network: NetworkFactory | None, embedder: str
) -> TrainedHead | None:
    """The trained head that training begins with, if any; looked at before an embedder is loaded.

    embedder: the name of that whose vectors it will read.
    """
    if config.policy is None:
        return None
    _check_one_network(config, network)
    head = load_head(config.policy)
    if head.embedder != embedder:
        raise BadInput(
            f"The head in {config.policy} reads vectors of {head.embedder!r}, but the setting"
            f" embedder is {embedder!r}: set embedder={head.embedder}."
        )
    return head


def _starting_head(
    config: OperationsConfig,
    network: NetworkFactory | None,
    began: TrainedHead | None,
    dimension: int,
) -> Network:
    if began is not None:
        if began.shape.dimension != dimension:
            raise BadInput(
                f"The head in {config.policy} reads vectors of {began.shape.dimension} numbers, and"
                f" {began.embedder!r} makes vectors of {dimension} here: begin with another head."
            )
        return OperationHead.from_trained(began)
    shape = Shape(dimension, config.width, config.layers, config.heads)
    if network is None:
        return OperationHead(shape, seed=config.seed)
    made = network(shape, config.seed)
    if not isinstance(made, Network):
        raise BadInput(
            f"network={_name_of(network)} made a {type(made).__name__}, which cannot be put in"
            " service: make a subclass of memograd.tasks.memory_ops.learning.head.Network."
        )
    return made


def settled(config: OperationsConfig) -> OperationsConfig:
    """The same settings for any working directory; those of a resumed run as they were given.

    Raises BadInput where a head to begin with has another network than was asked for.
    """
    config = located(config)
    if config.policy is not None and config.resume is None:
        config = _with_network_of(config, load_head(config.policy).shape)
    if "reward" not in config.model_fields_set:
        return config
    return config.model_copy(update={"reward": with_absolute_file(config.reward)})


def _with_network_of(config: OperationsConfig, shape: Shape) -> OperationsConfig:
    """The settings with the sizes of a network that is there, so that they say what is trained."""
    sizes = {name: getattr(shape, name) for name in ("width", "layers", "heads")}
    for name, size in sizes.items():
        asked = getattr(config, name)
        if name in config.model_fields_set and asked != size:
            raise BadInput(
                f"{name}={asked} does not fit policy={config.policy}, a head with {name}={size}"
                f" whose network training goes on with: leave {name} out, or begin with a fresh"
                " head."
            )
    return config.model_copy(update=sizes)


_DIFFERS: dict[str, str] = {
    "reward_sha256": "The file of the reward changed since {run} began: resume with the file as it"
    " was, or begin a new run with out=FOLDER.",
    "trainer_class": "{run} was begun by {began} and would go on with {now}: give the same"
    " trainer_class, or begin a new run.",
    "network": "{run} was begun with the network {began} and would go on with {now}: give the same"
    " network, or begin a new run.",
}
"""What is said where a resumed run would go on with something else than it began with."""


def _name_of(code: Callable[..., object]) -> str:
    name = getattr(code, "__qualname__", type(code).__qualname__)
    return f"{code.__module__}.{name}"


RECIPE: Recipe[OperationsConfig, None] = recipe_with()
