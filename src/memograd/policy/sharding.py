"""FSDP2: every rank holds a part of the frozen weights and gathers a layer when it needs it.

`torch.distributed.fsdp.fully_shard` cuts the frozen weights of every decoder layer but the last
among the ranks. Adapter, value head, embedding and output layer stay whole everywhere, so what is
trained is summed, moved and saved as without sharding. The last layer stays whole too: of its
prompt states the tree forward uses nothing but keys and values, and FSDP2 gathers a layer again
only when a gradient of its *output* arrives.

A model that no device holds is loaded into the CPU's memory (`LanguageModel.load` with `to_cut`)
and comes to the device layer by layer, each cut before the next one comes; so a device needs room
for its share, for one whole layer, and for what stays whole. The CPU's memory must hold the model
once for every process on the machine.

Gathering takes all ranks at once, but they have different things to compute. So a rank says what it
is about to do before it does it, and one that has nothing to do, as `World.together` finds, does
the like with a few tokens (`follow`) until nobody has.

Invariants: values and gradients equal those of the whole model; following leaves no trace, in
gradients or random states; of a layer that was cut nothing but the share is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from memograd.policy.activation_checkpointing import decoder_layers
from memograd.policy.model_parts import body_of
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.rollout.token_tree import TokenTree

NOTHING, FORWARD, TRAIN = 0, 1, 2
"""What a rank may be about to do: no work, a pass of the body, a tree forward with its backward."""

FEW = TokenTree.from_branches([0, 0], [[0, 0]])
"""What a follower computes: a trunk and inner nodes, as in every tree forward."""


class Sharding:
    """A model whose layers are cut among the ranks of the default process group."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        adapter: Sequence[torch.nn.Parameter],
        device: torch.device,
        forward: Callable[[Sequence[TokenTree]], BranchLogprobs],
    ) -> None:
        """`forward` is how this run scores trees: every rank's must pass the body as often."""
        self._model = model
        self._forward = forward
        self._announced = False
        assert dist.group.WORLD is not None  # the ranks are joined
        mesh = DeviceMesh.from_group(dist.group.WORLD, device.type)
        for layer in decoder_layers(model)[:-1]:
            fully_shard(layer, mesh=mesh, ignored_params=set(adapter))
        for whole in (*model.parameters(), *model.buffers()):
            if not isinstance(whole, DTensor):
                whole.data = whole.data.to(device)
        body: Any = body_of(model)
        body.register_forward_pre_hook(self._before_body)

    @contextmanager
    def training(self) -> Iterator[None]:
        """Within this block the tree forward of one micro-batch is computed; its backward pass must
        come before anything else is."""
        self._agree(TRAIN)
        self._announced = True
        try:
            yield
        finally:
            self._announced = False

    def follow(self) -> None:
        """Do as the other ranks do until none of them has work; every rank ends its work so."""
        while (work := self._agree(NOTHING)) != NOTHING:
            self._announced = True
            # Dropout may draw.
            with torch.random.fork_rng():
                self._join(work)
            self._announced = False

    def _join(self, work: int) -> None:
        if work == FORWARD:
            with torch.no_grad():
                body_of(self._model)(torch.zeros((1, 1), dtype=torch.long).to(self._model.device))
            return
        scores = self._forward([FEW])
        trained = [weight for weight in self._model.parameters() if weight.requires_grad]
        torch.autograd.grad(scores.logprobs_RT.sum(), trained, allow_unused=True)

    def _before_body(self, *_: object) -> None:
        if not self._announced:
            self._agree(FORWARD)

    def _agree(self, work: int) -> int:
        """What the ranks do next, this one `work`; those that have work all have the same kind."""
        most = torch.tensor(work)
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        return int(most)
