"""AdamW over what this process moves: whole weights, or its part of weights that are shared out.

    a weight                         what moves here
    whole, in fp32                   itself
    whole, in half precision         an fp32 master, rounded into the weight after every step
    cut among the ranks (DTensor)    the share that is here, in fp32
    whole, where others are cut      one slice of it a rank (in half precision: of an fp32 master);
                                     after every step the slices are gathered

AdamW computes number by number, so how weights are cut changes nothing. `whole_state` is what
torch's AdamW would have written had nothing been cut, with the masters where the weights that go
into a checkpoint are rounded; so a run goes on from it with any number of processes.

`learning_rate_at` says how fast, step by step. It is pure, so a resumed run has the rates of the
one that never stopped; one that is resumed with more steps has the longer run's from there on.

Invariant: after `step` a weight is the same on all ranks that hold it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch.distributed.tensor import DTensor, distribute_tensor

from memograd.grpo.distributed import ALONE, World

HALF = (torch.bfloat16, torch.float16)
MOMENTS = ("exp_avg", "exp_avg_sq")
MASTER = "master"


class Optimizer(Protocol):
    """What the learner needs of an optimiser."""

    def step(self) -> Any:
        """Move the weights along their gradients."""
        ...

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        ...


class PartedAdamW:
    """AdamW on `weights`, of which each rank of `world` moves its part where some are cut.

    `rounded`: weights are written into checkpoints in half precision, so `whole_state` has their
    masters. All ranks must call the same methods in the same order.
    """

    def __init__(
        self,
        weights: Sequence[torch.nn.Parameter],
        *,
        learning_rate: float,
        weight_decay: float,
        world: World = ALONE,
        rounded: bool = False,
    ) -> None:
        shared = any(isinstance(weight, DTensor) for weight in weights)
        self._parts = [
            _MovedPart(weight, world if shared else ALONE, rounded) for weight in weights
        ]
        self._optimizer = torch.optim.AdamW(
            [part.moved for part in self._parts], lr=learning_rate, weight_decay=weight_decay
        )

    def set_learning_rate(self, rate: float) -> None:
        """From the next step on."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate

    def step(self) -> None:
        """Move the weights along their gradients."""
        for part in self._parts:
            part.take_gradient()
        self._optimizer.step()
        for part in self._parts:
            part.put_back()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for part in self._parts:
            part.weight.grad = None
            part.moved.grad = None

    def whole_state(self) -> dict[str, Any]:
        """The state as of one process that holds everything. What is put together for it stands in
        the CPU's memory, on rank 0 only: on the others these tensors are empty."""
        state = self._optimizer.state_dict()
        for place, part in enumerate(self._parts):
            own = state["state"].get(place)
            if own is None or part.itself:
                continue
            state["state"][place] = {
                name: part.whole(value) if name in MOMENTS else value for name, value in own.items()
            }
            if part.has_master:
                state["state"][place][MASTER] = part.whole(part.moved.detach())
        return state

    def load_whole_state(self, state: Mapping[str, Any]) -> None:
        """Take this rank's part of what `whole_state` gave, on any number of ranks."""
        cut: dict[int, dict[str, Any]] = {}
        for place, whole in state["state"].items():
            part = self._parts[place]
            cut[place] = {
                name: part.of(value) if name in MOMENTS else value
                for name, value in whole.items()
                if name != MASTER
            }
            if MASTER in whole:
                part.load_master(whole[MASTER])
        self._optimizer.load_state_dict({**state, "state": cut})


class _MovedPart:
    """What one process moves of a weight: `moved`, in fp32."""

    def __init__(self, weight: torch.nn.Parameter, world: World, rounded: bool) -> None:
        self.weight = weight
        self._world = world
        self._cut = isinstance(weight, DTensor)
        self._sliced = not self._cut and world.size > 1
        self._rounds = not self._cut and weight.dtype in HALF
        self.itself = not (self._cut or self._sliced or self._rounds)
        # A rounded master cannot be found again from the weight that a checkpoint holds.
        self.has_master = rounded and (self._cut or weight.dtype in HALF)
        own = self._here()
        self.moved = (
            weight if self.itself else torch.nn.Parameter(own.float() if self._rounds else own)
        )

    def _here(self) -> torch.Tensor:
        """The numbers of the weight that are this process's to move; they share its memory."""
        weight = self.weight.detach()
        if isinstance(weight, DTensor):
            return weight.to_local()
        return weight.flatten()[self._slice()] if self._sliced else weight

    def _slice(self) -> slice:
        own = self._world.share(self.weight.numel())
        return slice(own.start, own.stop)

    def take_gradient(self) -> None:
        """Give `moved` its part of the weight's gradient."""
        gradient = self.weight.grad
        if self.itself or gradient is None:
            return
        if isinstance(gradient, DTensor):
            gradient = gradient.to_local()
        elif self._sliced:
            gradient = gradient.flatten()[self._slice()]
        self.moved.grad = gradient.float()

    def put_back(self) -> None:
        """Let the weight follow `moved`, here and on the other ranks."""
        if self.itself:
            return
        with torch.no_grad():
            if self._rounds:
                self._here().copy_(self.moved)
            if self._sliced:
                parts = self._world.gather(self._here(), self.weight.numel())
                self.weight.detach().flatten().copy_(parts)
        # Who keeps what older weights computed looks at the version.
        torch.autograd.graph.increment_version(self.weight)

    def whole(self, part: torch.Tensor) -> torch.Tensor:
        """A tensor of the weight's shape, of which every rank has its part; empty but on rank 0."""
        if isinstance(self.weight, DTensor):
            cut = self.weight
            part = DTensor.from_local(
                part, cut.device_mesh, cut.placements, shape=cut.shape, stride=cut.stride()
            ).full_tensor()
        elif self._sliced:
            part = self._world.gather(part, self.weight.numel())
        if not self._world.leads:
            return torch.empty(0)
        return part.detach().view(self.weight.shape).cpu().clone()

    def of(self, whole: torch.Tensor) -> torch.Tensor:
        """This rank's part of a tensor of the weight's shape."""
        if isinstance(self.weight, DTensor):
            # Every rank has read the same file, so nobody needs to be told.
            cut = distribute_tensor(
                whole.to(self.weight.device),
                self.weight.device_mesh,
                self.weight.placements,
                src_data_rank=None,
            )
            return cut.to_local()
        return whole.flatten()[self._slice()] if self._sliced else whole

    def load_master(self, whole: torch.Tensor) -> None:
        """Take up the numbers that the weight was rounded from."""
        with torch.no_grad():
            self.moved.copy_(self.of(whole).view_as(self.moved))


def clip_gradients(
    weights: Sequence[torch.nn.Parameter], max_norm: float, world: World = ALONE
) -> float:
    """Scale the gradients down to `max_norm` if they are longer; returns the length before.

    What is cut among the ranks is counted on each of them, what is whole once.
    """
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    cut = [gradient.to_local() for gradient in gradients if isinstance(gradient, DTensor)]
    whole = [gradient for gradient in gradients if not isinstance(gradient, DTensor)]
    norm = float(torch.nn.utils.get_total_norm(whole))
    if cut or any(isinstance(weight, DTensor) for weight in weights):
        squares = world.sum(np.array([float(torch.nn.utils.get_total_norm(cut)) ** 2]))
        norm = float(np.sqrt(norm**2 + squares[0]))
    if not np.isfinite(norm):
        return norm
    # As torch.nn.utils.clip_grad_norm_ does.
    scale = min(1.0, max_norm / (norm + 1e-6))
    with torch.no_grad():
        for gradient in (*cut, *whole):
            gradient.mul_(scale)
    return norm


def learning_rate_at(
    step: int, *, steps: int, peak: float, warmup_steps: int, schedule: str
) -> float:
    """The rate of `step`: a linear rise over `warmup_steps`, then `peak` (`constant`), a straight
    line (`linear`) or half a cosine wave (`cosine`) that would reach 0 one step after the last.
    """
    if step <= warmup_steps:
        return peak * step / (warmup_steps + 1)
    progress = min(1.0, (step - warmup_steps - 1) / max(1, steps - warmup_steps))
    factors = {
        "constant": 1.0,
        "linear": 1.0 - progress,
        "cosine": (1.0 + math.cos(math.pi * progress)) / 2,
    }
    return peak * factors[schedule]
