"""FSDP2: every rank holds a part of the layers' weights and gathers a layer when it needs it.

`torch.distributed.fsdp.fully_shard` cuts the weights of every decoder layer among the ranks. Under
an adapter these are the frozen ones; adapter and value head stay whole, so what is trained is
summed, moved and saved as without sharding. Where all weights are trained, a layer's share is kept
in fp32, computed with in the model's number type, and its gradient is summed in fp32 and cut as the
layer itself is. Embedding, last norm and output layer stay whole everywhere.

In two passes (`tree`) the last layer stays whole too: of its prompt states that forward uses
nothing but keys and values, and FSDP2 gathers a layer again only when a gradient of its *output*
arrives. A second, frozen model (the reference of a policy that is trained whole) is cut likewise.

A model that no device holds is loaded into the CPU's memory (`to_cut`) and comes to the device
layer by layer, each cut before the next one comes; so a device needs room for its share, for one
whole layer, and for what stays whole. The CPU's memory must hold the model once for every process
on the machine.

Gathering takes all ranks at once, but they have different things to compute. So a rank says what it
is about to do before it does it. Where others are about to do something that comes first, it joins
them with a few tokens and asks again; one that has nothing to do, as `World.together` finds, joins
until nobody has (`follow`).

Invariants: values and gradients equal those of the whole model; following leaves no trace, in
gradients or random states; of a layer that was cut nothing but the share is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from memograd.policy.activation_checkpointing import decoder_layers
from memograd.policy.token_logprobs import BranchLogprobs, body_of
from memograd.rollout.token_tree import TokenTree

NOTHING, FORWARD, REFERENCE, TRAIN = 0, 1, 2, 3
"""What a rank may be about to do: no work, a pass of the body, one of the reference's body, a tree
forward with its backward. Of several kinds the highest comes first."""

FEW = TokenTree.from_branches([0, 0], [[0, 0]])
"""What a follower computes: a trunk and inner nodes, as in every tree forward."""


class Sharding:
    """A model whose layers are cut among the ranks of the default process group."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        whole: Sequence[torch.nn.Parameter],
        device: torch.device,
        forward: Callable[[Sequence[TokenTree]], BranchLogprobs],
        last_layer: bool,
        reference: PreTrainedModel | None = None,
    ) -> None:
        """`whole` are weights in the layers that are not cut. `forward` is how this run scores
        trees: every rank's must pass the body as often. `last_layer`: it is cut too."""
        self._model = model
        self._forward = forward
        self._announced = False
        assert dist.group.WORLD is not None  # the ranks are joined
        mesh = DeviceMesh.from_group(dist.group.WORLD, device.type)
        self._bodies = {FORWARD: model}
        if reference is not None:
            self._bodies[REFERENCE] = reference
        for kind, one in self._bodies.items():
            layers = decoder_layers(one)
            for layer in layers if last_layer else layers[:-1]:
                _cut(layer, mesh, set(whole))
            for rest in (*one.parameters(), *one.buffers()):
                if not isinstance(rest, DTensor):
                    rest.data = rest.data.to(device)
            body: Any = body_of(one)
            body.register_forward_pre_hook(partial(self._before_body, kind))

    @contextmanager
    def training(self) -> Iterator[None]:
        """Within this block the tree forward of one micro-batch is computed; its backward pass must
        come before anything else is."""
        self._announce(TRAIN)
        self._announced = True
        try:
            yield
        finally:
            self._announced = False

    def follow(self) -> None:
        """Do as the other ranks do until none of them has work; every rank ends its work so."""
        while (work := self._agree(NOTHING)) != NOTHING:
            self._join(work)

    def _announce(self, work: int) -> None:
        """Come back when it is the turn of `work`, having joined what came first."""
        while (first := self._agree(work)) != work:
            self._join(first)

    def _join(self, work: int) -> None:
        """Compute a few tokens of what others compute."""
        before, self._announced = self._announced, True
        try:
            with torch.random.fork_rng(), torch.set_grad_enabled(work == TRAIN):  # dropout may draw
                if work != TRAIN:
                    ids = torch.zeros((1, 1), dtype=torch.long).to(self._model.device)
                    body_of(self._bodies[work])(ids)
                    return
                scores = self._forward([FEW])
                trained = [weight for weight in self._model.parameters() if weight.requires_grad]
                if any(isinstance(weight, DTensor) for weight in trained):
                    # The shares of the others' gradients come with this one's, which is zero.
                    (scores.logprobs_RT.sum() * 0.0).backward()
                else:
                    torch.autograd.grad(scores.logprobs_RT.sum(), trained, allow_unused=True)
        finally:
            self._announced = before

    def _before_body(self, kind: int, *_: object) -> None:
        if not self._announced:
            self._announce(kind)

    def _agree(self, work: int) -> int:
        """The first thing that any rank is about to do, where this one is about to do `work`."""
        most = torch.tensor(work)
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        return int(most)


def _cut(layer: torch.nn.Module, mesh: DeviceMesh, whole: set[torch.nn.Parameter]) -> None:
    """Leave this rank its share of a layer; what is trained of it in fp32, and its gradients as
    sums over the ranks."""
    trained = [one for one in layer.parameters() if one.requires_grad and one not in whole]
    precision = MixedPrecisionPolicy()
    if trained:
        precision = MixedPrecisionPolicy(param_dtype=trained[0].dtype, reduce_dtype=torch.float32)
        layer.float()
    # Its default keeps a layer that is nobody's child whole after a forward pass.
    fully_shard(
        layer, mesh=mesh, ignored_params=whole, mp_policy=precision, reshard_after_forward=True
    )
    if trained:
        assert isinstance(layer, FSDPModule)
        layer.set_gradient_divide_factor(1.0)
        layer.set_force_sum_reduction_for_comms(True)  # gloo knows no other
