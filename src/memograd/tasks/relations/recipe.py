"""relations from end to end: train the model on author batches, calibrate it, measure it on others.

    run = train(RelationsConfig(data=[...], eval_data=[...]))    run/final/relations.npz is served

Invariant: a run that was stopped and resumed gives the weights of the run that never stopped.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from rich.console import Console
from torch.nn import functional

from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.memory.embedders.e5_weights import E5Weights, read_e5
from memograd.memory.relations.model import RelationModel
from memograd.memory.relations.rows import RowBuilder
from memograd.memory.relations.weights import CLOSING, RELATIONS, read_weights, write_weights
from memograd.tasks.base.recipe import Job, Recipe, Stage
from memograd.tasks.base.steps import environment, train_by_steps
from memograd.tasks.relations.measure import calibrated, measured, related, write_report
from memograd.tasks.relations.network import RelationNetwork, WordTable, batch_of
from memograd.tasks.relations.rows import Example, Examples, WrittenTurn, read_dialogues, read_pairs
from memograd.tasks.relations.settings import RelationsConfig

STATE_FILE: Final = "trainer_state.pt"
MODEL_FILE: Final = "relations.npz"
SPLIT: Final = Path("corpus/split.json")
_FILES: Final = ("data", "eval_data", "pairs")
_CLOSING: Final = [RELATIONS.index(name) for name in CLOSING]
_LEAVING: Final = [number for number in range(len(RELATIONS)) if number not in _CLOSING]
_HEADS_RATE: Final = 3.0  # how much faster the heads learn, which begin with nothing

console = Console(markup=False, highlight=False, soft_wrap=True)


def losses(
    network: RelationNetwork,
    examples: Sequence[Example],
    table: WordTable,
    pad: int,
    config: RelationsConfig,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean cross entropy of the relations and of the worths of a batch.

    Where several relations may be right, the loss is the negative logarithm of their sum. To the
    relations' belongs the cross entropy of whether the item is closed, by any of CLOSING.
    """
    smooth = config.smoothing
    batch = batch_of([example.row for example in examples], table, pad)
    relations, worths = network(batch)
    logs = relations.log_softmax(-1)
    total, weights = torch.zeros(()), 0.0
    for row, example in enumerate(examples):
        for item, (right, weight) in enumerate(example.relations):
            loss = -logs[row, item, list(right)].logsumexp(0)
            if smooth and len(right) == 1:
                loss = (1 - smooth) * loss - smooth * logs[row, item].mean()
            side = _CLOSING if right[0] in _CLOSING else _LEAVING
            loss = loss - config.closing_weight * logs[row, item, side].logsumexp(0)
            total, weights = total + weight * loss, weights + weight
    told = [
        (row, segment, worth)
        for row, example in enumerate(examples)
        for segment, worth in enumerate(example.worths)
    ]
    worth_loss = torch.zeros(())
    if told:
        rows, segments, labels = torch.tensor(told).T
        worth_loss = functional.cross_entropy(
            worths[rows, segments], labels, label_smoothing=smooth
        )
    return total / max(weights, 1e-9), worth_loss


@dataclass
class RelationTraining:
    """Supervised steps of AdamW; writes metrics and checkpoints into the run folder."""

    network: RelationNetwork
    examples: Examples
    e5: E5Weights
    config: RelationsConfig
    stage: Stage
    step: int = 0
    _table: WordTable = field(init=False)
    _optimizer: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        torch.manual_seed(self.config.seed)
        self._table = WordTable(self.e5)
        rate, decay = self.config.learning_rate, self.config.weight_decay
        groups: list[dict[str, Any]] = [
            {
                "params": chosen,
                "lr": rate * share,
                "weight_decay": decay if matrices else 0.0,
            }
            for share, parameters in self._shares_of_rate()
            for matrices in (False, True)
            if (chosen := [p for p in parameters if (p.ndim > 1) == matrices])
        ]
        self._optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True)
        self._rates = [group["lr"] for group in groups]
        self._pass, self._begin, self._batches = 0, 0, self.examples.batches(0)

    def restore(self, checkpoint: Path) -> None:
        """Go on from `checkpoint`."""
        state = torch.load(checkpoint / STATE_FILE, weights_only=True)
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])
        self.step = state["step"]

    def train(self) -> Path:
        """Run up to `config.steps`; returns the folder of the final checkpoint.

        Raises:
            Stopped: a signal came; a checkpoint was written.
        """
        self.network.train()
        return train_by_steps(
            self.stage,
            self.config,
            done=lambda: self.step,
            one_step=self._one_step,
            save=self._save,
        )

    def _one_step(self) -> dict[str, Any]:
        began, config = time.perf_counter(), self.config
        examples = self._next()
        share = self._rate_now()
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * share
        with torch.autocast("cpu", torch.bfloat16, enabled=config.bfloat16):
            relation_loss, worth_loss = losses(
                self.network, examples, self._table, self.e5.pad, config
            )
        self._optimizer.zero_grad()
        torch.autograd.backward(relation_loss + config.worth_weight * worth_loss)
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self._optimizer.step()
        self.step += 1
        seconds = time.perf_counter() - began
        return {
            "step": self.step,
            "pass": self._pass,
            "loss": float((relation_loss + config.worth_weight * worth_loss).detach()),
            "relation_loss": float(relation_loss.detach()),
            "worth_loss": float(worth_loss.detach()),
            "grad_norm": float(norm),
            "tokens": sum(len(example.row.tokens) for example in examples),
            "seconds": {"learn": round(seconds, 4)},
        }

    def _next(self) -> list[Example]:
        """The batch of this step. Passes differ in how many they have, so they are drawn in order,
        also where a run is resumed."""
        while self.step >= self._begin + len(self._batches):
            self._begin += len(self._batches)
            self._pass += 1
            self._batches = self.examples.batches(self._pass)
        return self._batches[self.step - self._begin]

    def _shares_of_rate(self) -> list[tuple[float, list[torch.nn.Parameter]]]:
        """Every parameter, beside what of the learning rate it has."""
        network, decay = self.network, self.config.layer_decay
        heads = network.head_parameters()
        layers = [list(layer.parameters()) for layer in network.layers]
        known = {id(p) for p in [*heads, *(p for layer in layers for p in layer)]}
        rest = [p for p in network.parameters() if id(p) not in known]
        below = [(decay ** (len(layers) - n), layer) for n, layer in enumerate([rest, *layers])]
        return [*below, (_HEADS_RATE, heads)]

    def _rate_now(self) -> float:
        """Share of the peak learning rate: up in a line, then down to nothing."""
        steps = self.config.steps
        rising = min(1.0, (self.step + 1) / max(1.0, self.config.warmup * steps))
        return rising * max(0.02, 1 - self.step / steps)

    def _save(self, name: str) -> Path:
        origin = {"run": self.stage.run.path.name, "step": self.step}

        def write(folder: Path) -> None:
            write_weights(self.network.to_weights(origin=origin), folder / MODEL_FILE)
            torch.save(
                {
                    "network": self.network.state_dict(),
                    "optimizer": self._optimizer.state_dict(),
                    "rng": torch.get_rng_state(),
                    "step": self.step,
                },
                folder / STATE_FILE,
            )

        return self.stage.run.save_checkpoint(name, write, step=self.step)


def make_job(config: RelationsConfig, checkpoint: Path | None) -> Job[None]:
    """Supervised training on author batches; measured on others once it is done."""
    if not config.data:
        raise BadInput("relations needs author batches to train on: name them with data=FILES.")
    twice = set(config.data) & set(config.eval_data)
    if twice:
        raise BadInput(
            f"{sorted(map(str, twice))[0]} is named by data and by eval_data: an author batch is"
            " used for training or for measuring, never for both."
        )
    turns = [said for path in config.data for said in read_dialogues(path)]
    turns += [said for path in config.pairs for said in read_pairs(path)]
    unseen = [said for path in config.eval_data for said in read_dialogues(path)]
    e5 = read_e5()
    examples = Examples(turns, RowBuilder(e5), config)
    torch.manual_seed(config.seed)
    network = RelationNetwork(e5, layers=config.layers, dropout=config.dropout)

    def describe(run: RunFolder) -> None:
        _check_data(run, fingerprint(turns))
        console.print(
            f"{len(turns)} turns to train on, {len(unseen)} of other authors to measure on;"
            f" {sum(p.numel() for p in network.parameters()) / 1e6:.1f} million weights"
        )

    def training(stage: Stage) -> RelationTraining:
        if stage.world.size > 1:
            raise BadInput("relations trains in one process: start it without torchrun.")
        return RelationTraining(network, examples, e5, config, stage)

    def finish(folder: Path) -> None:
        if unseen:
            console.print(measure_run(folder, unseen))

    return Job(
        training=training,
        environment=lambda: environment("torch"),
        describe=describe,
        measure=None,
        measured=type(None),
        report=lambda before, after, folder: None,
        finish=finish,
        describe_step=lambda metrics: (
            f"relations {metrics['relation_loss']:.3f}  worths {metrics['worth_loss']:.3f}"
        ),
    )


def measure_run(folder: Path, unseen: Sequence[WrittenTurn]) -> str:
    """Calibrates the final model of a run in place, measures it, and returns the report."""
    path = folder / "final" / MODEL_FILE
    write_weights(calibrated(read_weights(path), unseen), path)
    model = RelationModel(read_weights(path))
    return write_report(
        {
            "Items as the memory's reader words them, with what came before": measured(
                model, unseen
            ),
            "Items as the memory's reader words them, nothing before": measured(
                model, unseen, lambda model, turns: related(model, turns, before=False)
            ),
            "Statements, with what came before": measured(
                model, unseen, lambda model, turns: related(model, turns, as_read=False)
            ),
        },
        folder,
    )


def settled(config: RelationsConfig) -> RelationsConfig:
    """The same settings for any working directory; those of a resumed run as they were given.

    Without data it is what the weights that ship are trained on, where `corpus/split.json` is.
    """
    given = {name: getattr(config, name) for name in config.model_fields_set & set(_FILES)}
    if config.resume is None and not config.data and SPLIT.is_file():
        given = _shipped_data() | given
    absolute: dict[str, Any] = {
        name: [path.resolve() for path in paths] for name, paths in given.items()
    }
    return config.model_copy(update=absolute)


def _shipped_data() -> dict[str, list[Path]]:
    split = json.loads(SPLIT.read_text(encoding="utf-8"))["relations"]
    return {
        field: [SPLIT.parent / f"{name}.jsonl" for name in split[use]]
        for field, use in (("data", "train"), ("eval_data", "chosen_by"))
    }


def fingerprint(turns: Sequence[WrittenTurn]) -> str:
    """Changes with any turn."""
    return hashlib.sha256(repr(list(turns)).encode()).hexdigest()


def _check_data(run: RunFolder, now: str) -> None:
    stored = run.read_data()
    if stored is None:
        run.write_data({"sha256": now})
    elif stored.get("sha256") != now:
        raise BadInput(
            f"The data changed since {run.path} began: resume with the data as it was, or begin a"
            " new run with out=FOLDER."
        )


RECIPE: Recipe[RelationsConfig, None] = Recipe(make_job, console, settled)
"""The task `relations`."""
