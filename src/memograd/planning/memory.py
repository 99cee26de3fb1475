"""Bytes on one device, by part: what a learner holds, and what is left for a sampler's cache.

The saved activations of a layer are linear in the model's sizes. The coefficients were counted with
`torch.autograd.graph.saved_tensors_hooks` on layers of `transformers` under SDPA and on the same
with an adapter on all seven matrices, and `tests/planning/test_memory.py` counts them again. Full
training in bf16 with fp32 masters takes 16 bytes a weight: 4 master, 4 gradient, 8 of Adam
(Rajbhandari et al., "ZeRO", 2020).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from memograd.planning.hardware import GIB, Cluster
from memograd.planning.shapes import ModelShape
from memograd.planning.workload import Train, Workload

NUMBER = 2
RESERVED = 2 * GIB  # the driver's context, the collectives' buffers
FRAGMENTATION = 0.05  # share of a device that the allocator cannot hand out
LOGIT_TOKENS = 1024  # tokens whose logits are in memory at once

# Bytes a token that autograd keeps of one layer, by (train, bytes of a number): of the hidden
# size, of the queries, of the keys, of the inner size, of each head, and a constant.
_SAVED = {
    ("full", 4): (24, 8, 8, 16, 4, 8),
    ("full", 2): (16, 4, 4, 8, 4, 8),
    ("lora", 4): (16, 8, 8, 16, 4, 8),
    ("lora", 2): (28, 8, 4, 10, 4, 8),
}


def saved_bytes(shape: ModelShape, train: Train, *, rank: int = 16, number: int = NUMBER) -> float:
    """Bytes that one token leaves in one layer between forward and backward.

    With an adapter the inner products (fp32, `rank` numbers for each of seven matrices) come on
    top, and the inputs of adapted matrices are kept in the adapter's fp32.
    """
    h, q, kv, inner, head, fixed = _SAVED[train, number]
    kept = (
        h * shape.hidden
        + q * shape.query_size
        + kv * shape.kv_size
        + inner * shape.inner
        + head * shape.heads
        + fixed
    )
    return kept + (28 * rank if train == "lora" else 0)


@dataclass(frozen=True)
class LearnerMemory:
    """Bytes on one device of a learner."""

    weights: float
    trained: float
    activations: float
    logits: float
    reserved: float

    @property
    def total(self) -> float:
        """All parts."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, float]:
        """Bytes by the name of the part."""
        return {field.name: float(getattr(self, field.name)) for field in fields(self)}


def learner_memory(
    shape: ModelShape, work: Workload, *, ranks: int, tokens: float, number: int = NUMBER
) -> LearnerMemory:
    """What one of `ranks` devices holds while a micro-batch of `tokens` tokens is computed.

    weights: frozen ones, sharded, and one gathered layer and the embedding beside them. trained:
    masters, gradients and Adam's moments. activations: all layers, or with checkpointing their
    inputs and one layer whole.
    """
    gathered = (shape.layer_weights + shape.embedding_weights) * number if ranks > 1 else 0
    held = work.train == "lora" or work.reference  # under an adapter the base is the reference
    frozen = shape.weights * number * held
    weights = frozen / ranks + gathered
    trained = (
        16 * shape.lora_weights(work.rank) if work.train == "lora" else 16 * shape.weights / ranks
    )
    layer = saved_bytes(shape, work.train, rank=work.rank, number=number)
    if work.checkpointing:
        activations = tokens * (shape.layers * shape.hidden * number + layer)
    else:
        activations = tokens * shape.layers * layer
    logits = min(tokens, LOGIT_TOKENS) * shape.vocabulary * (4 + number)
    return LearnerMemory(weights, trained, activations, logits, RESERVED)


def room(cluster: Cluster) -> float:
    """Bytes of a device that can be filled."""
    return cluster.device.memory * (1 - FRAGMENTATION)


def sampler_cache(shape: ModelShape, cluster: Cluster, *, tensor_parallel: int) -> float:
    """Bytes for keys and values on all devices of one replica; below 0: the weights do not fit."""
    free = (room(cluster) - RESERVED) * tensor_parallel
    return free - NUMBER * shape.weights
