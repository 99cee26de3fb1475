"""The steps of AdamW that train the relation model, and the supervised loss.

Invariant: a run that was stopped and resumed gives the weights of the run that never stopped.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from memograd.memory.embedders.e5_weights import E5Weights
from memograd.memory.relations.weights import (
    Weights,
    quantised,
    write_weights,
)
from memograd.tasks.base.steps import TrainingBySteps
from memograd.tasks.relations.network import RelationNetwork, WordTable, batch_of
from memograd.tasks.relations.rows import CLOSES, LEAVES, Example, Examples
from memograd.tasks.relations.settings import RelationsConfig

STATE_FILE: Final = "trainer_state.pt"
MODEL_FILE: Final = "relations.npz"
_HEADS_RATE: Final = 3.0  # how much faster the heads learn, which begin with nothing


def losses(
    network: RelationNetwork,
    examples: Sequence[Example],
    table: WordTable,
    pad: int,
    config: RelationsConfig,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean cross entropy of the relations and of the worths of a batch.

    Where several relations or worths may be right, the loss is the negative logarithm of their sum.
    To the relations' belongs the cross entropy of whether the item is closed, by any of CLOSING.
    """
    smooth = config.smoothing
    batch = batch_of([example.row for example in examples], table, pad)
    relations, worths = network(batch)
    relation_loss = loss_of_relations(relations, examples, config)
    worth_logs = worths.log_softmax(-1)
    of_segments = [
        -worth_logs[row, segment, list(right)].logsumexp(0)
        - (smooth * worth_logs[row, segment].mean() if smooth and len(right) == 1 else 0.0)
        for row, example in enumerate(examples)
        for segment, right in enumerate(example.worths)
    ]
    worth_loss = torch.stack(of_segments).mean() if of_segments else torch.zeros(())
    return relation_loss, worth_loss


def loss_of_relations(
    relations: torch.Tensor, examples: Sequence[Example], config: RelationsConfig
) -> torch.Tensor:
    """Mean cross entropy of the relations `[B, items, 9]` of a batch, as in `losses`."""
    smooth = config.smoothing
    logs = relations.log_softmax(-1)
    total, weights = torch.zeros(()), 0.0
    for row, example in enumerate(examples):
        for item, (right, weight) in enumerate(example.relations):
            loss = -logs[row, item, list(right)].logsumexp(0)
            if smooth and len(right) == 1:
                loss = (1 - smooth) * loss - smooth * logs[row, item].mean()
            side = CLOSES if right[0] in CLOSES else LEAVES
            loss = loss - config.closing_weight * logs[row, item, side].logsumexp(0)
            total, weights = total + weight * loss, weights + weight
    return total / max(weights, 1e-9)


def between(start: Weights, trained: Weights, share: float) -> Weights:
    """The weighted mean of two models of one size; `share` is that of `start`, 0 to 1."""

    def whole(pair: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        values: np.ndarray = pair[0] * pair[1][:, None]
        return values

    def mean(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        found: np.ndarray = (share * one + (1 - share) * other).astype(np.float32)
        return found

    matrices = {
        name: quantised(mean(whole(pair), whole(trained.matrices[name])))
        for name, pair in start.matrices.items()
    }
    vectors = {name: mean(one, trained.vectors[name]) for name, one in start.vectors.items()}
    return replace(trained, matrices=matrices, vectors=vectors)


@dataclass
class Steps(TrainingBySteps):
    """Steps of AdamW.

    about: fields of `About` that the weights keep from the model that training began with; empty
    where the heads begin with nothing. start: the weights of that model, of which the written ones
    keep `config.start_share`; training itself knows nothing of it.
    """

    config: RelationsConfig
    network: RelationNetwork
    examples: Examples
    e5: E5Weights
    about: Mapping[str, Any]
    start: Weights | None = None
    steps_made: int = 0
    table: WordTable = field(init=False)
    _optimizer: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        torch.manual_seed(self.config.seed)
        self.table = WordTable(self.e5)
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

    @property
    def step(self) -> int:
        """Steps made so far."""
        return self.steps_made

    @abstractmethod
    def loss(self) -> tuple[torch.Tensor, dict[str, Any]]:
        """The loss of this step, and what the line of metrics says beside it."""

    def more_state(self) -> dict[str, Any]:
        """What a checkpoint holds beside weights, optimizer and random numbers."""
        return {}

    def go_on(self, state: dict[str, Any]) -> None:
        """Take up what `more_state` gave."""

    def restore(self, checkpoint: Path) -> None:
        """Go on from `checkpoint`."""
        state = torch.load(checkpoint / STATE_FILE, weights_only=True)
        self.network.load_state_dict(state.pop("network"))
        self._optimizer.load_state_dict(state.pop("optimizer"))
        torch.set_rng_state(state.pop("rng"))
        self.steps_made = state.pop("step")
        self.go_on(state)

    def one_step(self) -> dict[str, Any]:
        """Move the weights once."""
        began = time.perf_counter()
        share = self._rate_now()
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * share
        loss, metrics = self.loss()
        self._optimizer.zero_grad()
        torch.autograd.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self._optimizer.step()
        self.steps_made += 1
        seconds = time.perf_counter() - began
        return {
            "step": self.step,
            "loss": float(loss.detach()),
            **metrics,
            "grad_norm": float(norm),
            "seconds": {"learn": round(seconds, 4)},
        }

    def _shares_of_rate(self) -> list[tuple[float, list[torch.nn.Parameter]]]:
        """Every parameter, beside what of the learning rate it has."""
        network, decay = self.network, self.config.layer_decay
        heads = network.head_parameters()
        layers = [list(layer.parameters()) for layer in network.layers]
        known = {id(p) for p in [*heads, *(p for layer in layers for p in layer)]}
        rest = [p for p in network.parameters() if id(p) not in known]
        below = [
            (decay ** (len(layers) - n), layer)
            for n, layer in enumerate([rest, *layers])
            if n > network.frozen or not network.frozen
        ]
        return [*below, (1.0 if self.about else _HEADS_RATE, heads)]

    def _rate_now(self) -> float:
        """Share of the peak learning rate: up in a line, then down to nothing."""
        steps = self.config.steps
        rising = min(1.0, (self.step + 1) / max(1.0, self.config.warmup * steps))
        return rising * max(0.02, 1 - self.step / steps)

    def write(self, folder: Path) -> None:
        """The weights to serve, and what training goes on from."""
        origin = {"run": self.stage.run.path.name, "step": self.step}
        weights = self.network.to_weights(origin=origin, **self.about)
        if self.start is not None and self.config.start_share:
            weights = between(self.start, weights, self.config.start_share)
        write_weights(weights, folder / MODEL_FILE)
        torch.save(
            {
                "network": self.network.state_dict(),
                "optimizer": self._optimizer.state_dict(),
                "rng": torch.get_rng_state(),
                "step": self.step,
                **self.more_state(),
            },
            folder / STATE_FILE,
        )


@dataclass
class SupervisedTraining(Steps):
    """Learns what the written dialogues say of each item and of each segment."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pass, self._begin, self._batches = 0, 0, self.examples.batches(0)
        self.network.train()

    def loss(self) -> tuple[torch.Tensor, dict[str, Any]]:
        """Cross entropy of the next batch."""
        config, examples = self.config, self._next()
        with torch.autocast("cpu", torch.bfloat16, enabled=bool(config.bfloat16)):
            relation_loss, worth_loss = losses(
                self.network, examples, self.table, self.e5.pad, config
            )
        return relation_loss + config.worth_weight * worth_loss, {
            "pass": self._pass,
            "relation_loss": float(relation_loss.detach()),
            "worth_loss": float(worth_loss.detach()),
            "tokens": sum(len(example.row.tokens) for example in examples),
        }

    def _next(self) -> list[Example]:
        """The batch of this step. Passes differ in how many they have, so they are drawn in order,
        also where a run is resumed."""
        while self.step >= self._begin + len(self._batches):
            self._begin += len(self._batches)
            self._pass += 1
            self._batches = self.examples.batches(self._pass)
        return self._batches[self.step - self._begin]
