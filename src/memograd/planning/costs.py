"""What a step of GRPO has to do, and what a placement takes of a device for it: bytes, seconds.

The activations that a layer keeps are linear in the model's sizes; the coefficients were counted
with `torch.autograd.graph.saved_tensors_hooks` on layers of `transformers` under SDPA and on the
same with an adapter on all seven matrices, and `tests/planning/test_costs.py` counts them again.
Full training in bf16 with fp32 masters takes 16 bytes a weight: 4 master, 4 gradient, 8 of Adam
(Rajbhandari et al., "ZeRO", 2020). What is cut among ranks, and what is whole on each, is as
`memograd.policy.sharding` has it.

A multiplication with an addition counts as two operations, as in `torch.utils.flop_counter`, with
which the counts agree (the same tests). Decoding follows the roofline of Pope et al., "Efficiently
Scaling Transformer Inference", 2022: a step takes the longer of reading weights and cache, and of
computing; `(2N + B ctx KV) / bandwidth` where memory decides.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import log, sqrt
from typing import Literal

from memograd.errors import BadInput
from memograd.planning.hardware import GIB, Cluster, Efficiency, ring_seconds
from memograd.planning.shapes import ModelShape

Train = Literal["lora", "full"]

MOST_ROLLOUTS = 100_000  # answers of a step; a run of them can still be played through


@dataclass(frozen=True)
class Workload:
    """What one step has to do: `prompts` questions, each answered `group` times.

    prompt, answer: mean tokens. spread: coefficient of variation of the answers' lengths, which
    counts because the longest answer decides how long a batch is sampled.

    train: an adapter of rank `rank`, or all weights. passes: optimisation passes over a step's
    rollouts. reference: a frozen copy is asked too (`beta` above 0; an adapter needs no copy).
    checkpointing: activations are computed again in the backward pass.
    """

    prompts: int = 16
    group: int = 8
    prompt: int = 1024
    answer: int = 256
    spread: float = 0.5
    train: Train = "lora"
    rank: int = 16
    passes: int = 1
    reference: bool = False
    checkpointing: bool = True

    def __post_init__(self) -> None:
        for name in ("prompts", "group", "prompt", "answer", "rank", "passes"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, not {getattr(self, name)}.")
        if not 0 <= self.spread <= 3:
            raise BadInput(f"spread must be between 0 and 3, not {self.spread}.")
        if self.rollouts > MOST_ROLLOUTS:
            raise BadInput(
                f"prompts x group must be at most {MOST_ROLLOUTS:,} answers a step, not "
                f"{self.rollouts:,}."
            )
        if self.train not in ("lora", "full"):
            raise BadInput(f'train must be "lora" or "full", not {self.train!r}.')

    @property
    def rollouts(self) -> int:
        """Answers of a step."""
        return self.prompts * self.group

    @property
    def answer_tokens(self) -> int:
        """Tokens sampled in a step."""
        return self.rollouts * self.answer

    @property
    def longest(self) -> float:
        """Expected tokens of the longest answer of the step.

        For N draws of mean m and deviation s it is below m + s sqrt(2 ln N) (the Gaussian bound).
        """
        return self.answer * (1 + self.spread * sqrt(2 * log(max(self.rollouts, 2))))

    @property
    def tree_tokens(self) -> int:
        """Tokens the learner computes of one group as a tree whose answers share the prompt."""
        return self.trees_of(1).tokens

    def cut(self, limit: float) -> Trees:
        """One group as trees of at most `limit` tokens, cut by branches; of one answer at least."""
        answers = max(1, int((limit - self.prompt) // self.answer))
        return self.trees_of(-(-self.group // answers))

    def trees_of(self, parts: int) -> Trees:
        """One group as so many trees, each of which has the prompt again."""
        prompt = self.prompt * (self.prompt + 1) / 2
        own = self.answer * (self.answer + 1) / 2
        return Trees(
            parts,
            parts * self.prompt + self.group * self.answer,
            parts * prompt + self.group * (self.answer * self.prompt + own),
        )


@dataclass(frozen=True)
class Trees:
    """One group as a learner computes it: how many trees, their tokens, and their pairs of query
    and key under their masks."""

    count: int
    tokens: int
    pairs: float


NUMBER = 2

RESERVED = 2 * GIB  # the driver's context, the collectives' buffers

SHARE = 0.9  # of a device's memory, that is planned with; as in `memograd.policy.memory_model`

LOGIT_TOKENS = 512  # tokens whose logits are in memory at once
LOGIT_BYTES = NUMBER + 12  # as numbers of the model, in fp32, as log-softmax and as its gradient

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


# Bytes that an adapter's operations read and write in one layer for each number that goes into the
# adapted matrices and for each that comes out: forward, backward, by bytes of a number.
_ADAPTER = {4: ((4, 24), (20, 16)), 2: ((10, 28), (20, 28))}


def adapter_bytes(shape: ModelShape, *, again: bool, number: int = NUMBER) -> float:
    """Bytes that an adapter moves for one token, forward and backward, in all layers.

    Its matrices are thin, so it computes little (a few percent of a pass) and reads and writes
    much: every input is cast to the adapter's fp32, and what comes out is scaled and added.
    `again`: the forward pass is computed twice (checkpointing).
    """
    (forward_in, forward_out), (backward_in, backward_out) = _ADAPTER[number]
    forwards = 2 if again else 1
    ins = (forwards * forward_in + backward_in) * shape.matrix_inputs
    outs = (forwards * forward_out + backward_out) * shape.matrix_outputs
    return float(shape.layers * (ins + outs))


# Bytes a token that all other operations of a layer (norms, positions, activation, sums: everything
# but matrix products and attention) read and write: of the hidden size, of the queries, of the
# keys, of the inner size. Forward, and backward by what is trained; by bytes of a number.
_FORWARD_MOVES = {4: (80, 40, 40, 20), 2: (84, 20, 20, 10)}
_BACKWARD_MOVES = {
    ("full", 4): (252, 64, 68, 36),
    ("full", 2): (224, 32, 35, 18),
    ("lora", 4): (219, 65, 68, 36),
    ("lora", 2): (205, 32, 34, 18),
}

_SUMMED = 12  # bytes of a trained weight whose gradient is added to the one that is there, in fp32


def layer_bytes(shape: ModelShape, train: Train, *, again: bool, number: int = NUMBER) -> float:
    """Bytes that the layers move for one token beside their matrix products, forward and backward.

    They grow with the sizes of a layer and its products with their squares, so a small model
    spends a larger share of its time on them. `again`: the forward pass is computed twice.
    """
    sizes = (shape.hidden, shape.query_size, shape.kv_size, shape.inner)
    forward, backward = _FORWARD_MOVES[number], _BACKWARD_MOVES[train, number]
    each = zip(forward, backward, sizes, strict=True)
    return float(shape.layers * sum(((2 if again else 1) * f + b) * size for f, b, size in each))


def summed_bytes(shape: ModelShape, train: Train) -> float:
    """Bytes that one micro-batch moves to add its gradients to those before it."""
    return float(_SUMMED * shape.weights) if train == "full" else 0.0


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
    shape: ModelShape, work: Workload, *, ranks: int, tokens: float
) -> LearnerMemory:
    """What one of `ranks` devices holds while a micro-batch of `tokens` tokens is computed.

    weights: what is computed with: layers (frozen ones cut among the ranks), one of them gathered,
    and embedding and head, whole on every rank; of a frozen reference the same. trained: masters,
    gradients and Adam's moments; of what is whole on every rank, gradients whole and the rest cut.
    activations: all layers, or with checkpointing their inputs and one layer whole.
    """
    layers = shape.layers * shape.layer_weights
    outside = shape.weights - layers
    gathered = shape.layer_weights if ranks > 1 else 0
    copy = layers / ranks + outside + gathered
    if work.train == "lora":
        weights = copy * NUMBER  # under an adapter the base is the reference
        trained = 16.0 * shape.lora_weights(work.rank)
    else:
        # A layer's share is its master, so only a whole one has a copy to compute with.
        here = outside + gathered if ranks > 1 else copy
        weights = (here + copy * work.reference) * NUMBER
        trained = 16 * layers / ranks + (12 / ranks + 4) * outside
    layer = saved_bytes(shape, work.train, rank=work.rank)
    if work.checkpointing:
        activations = tokens * (shape.layers * shape.hidden * NUMBER + layer)
    else:
        activations = tokens * shape.layers * layer
    logits = min(tokens, LOGIT_TOKENS) * shape.vocabulary * LOGIT_BYTES
    return LearnerMemory(weights, trained, activations, logits, RESERVED)


def room(cluster: Cluster) -> float:
    """Bytes of a device that can be filled."""
    return cluster.device.memory * SHARE


def sampler_cache(shape: ModelShape, cluster: Cluster, *, tensor_parallel: int) -> float:
    """Bytes for keys and values on all devices of one replica; below 0: the weights do not fit."""
    free = (room(cluster) - RESERVED) * tensor_parallel
    return free - NUMBER * shape.weights


def forward_flops(shape: ModelShape, tokens: float, pairs: float, predicted: float) -> float:
    """Operations of a forward pass.

    tokens: that go through the layers. pairs: of query and key, in one layer. predicted: tokens
    whose logits are computed.
    """
    matrices = 2 * shape.layers * shape.layer_matrices * tokens
    attention = 4 * shape.layers * shape.query_size * pairs  # scores, then the weighted values
    return matrices + attention + 2 * shape.embedding_weights * predicted


def forward_of(shape: ModelShape, work: Workload, trees: Trees) -> float:
    """Operations of a forward pass over one group."""
    return forward_flops(shape, trees.tokens, trees.pairs, work.group * work.answer)


def pass_flops(shape: ModelShape, work: Workload, trees: Trees) -> float:
    """Operations of one optimisation pass over one group: forward, backward, computed again.

    The backward pass costs a forward for the gradients of the activations, and another one for
    those of the weights where all of them are trained.
    """
    backward = 2.0 if work.train == "full" else 1.0
    again = 1.0 if work.checkpointing else 0.0
    return forward_of(shape, work, trees) * (1 + backward + again)


@dataclass(frozen=True)
class Sampling:
    """Seconds to sample a step's answers on one replica, by part, and how many ran at once."""

    prefill: float
    decode: float
    at_once: int

    @property
    def seconds(self) -> float:
        """Both parts."""
        return self.prefill + self.decode


def sampling(
    shape: ModelShape,
    work: Workload,
    cluster: Cluster,
    efficiency: Efficiency,
    *,
    replicas: int,
    tensor_parallel: int,
    cache_bytes: float,
) -> Sampling:
    """Sampling on `replicas` servers of `tensor_parallel` devices with `cache_bytes` of cache each.

    A prompt is prefilled once a group (prefix caching). Answers that find no room in the cache
    wait, so they come in waves. A wave takes as many steps as its longest answer has tokens, the
    batch thinning out as answers end; the mean batch over a wave is what reading the cache costs.
    """
    groups = -(-work.prompts // replicas)
    rollouts = groups * work.group
    flops = cluster.device.flops * tensor_parallel
    bandwidth = cluster.device.bandwidth * tensor_parallel * efficiency.bandwidth_share

    prefill = groups * forward_flops(shape, work.prompt, work.prompt**2 / 2, 0)
    prefill_seconds = prefill / (flops * efficiency.prefill_mfu)

    kept = shape.kv_bytes()
    of_group = kept * (work.prompt + work.group * work.answer)
    at_once = max(1, min(rollouts, int(cache_bytes / of_group * work.group)))
    waves = rollouts / at_once
    steps = work.longest * max(1.0, waves)
    live = max(1.0, rollouts * work.answer / steps)  # mean answers in a step
    context = work.prompt + work.answer / 2
    reading = (NUMBER * shape.weights + live * context * kept) / bandwidth
    computing = forward_flops(shape, live, live * context, live) / (flops * efficiency.prefill_mfu)
    # Two all-reduces a layer of the live tokens' activations, where a replica is several devices.
    moved = 2 * shape.layers * live * shape.hidden * NUMBER
    talking = 2 * ring_seconds(moved, tensor_parallel, cluster, efficiency)
    step = max(reading, computing) + talking + efficiency.launch_seconds
    return Sampling(prefill_seconds, steps * step, at_once)


def learning_seconds(
    shape: ModelShape,
    work: Workload,
    cluster: Cluster,
    efficiency: Efficiency,
    *,
    ranks: int,
    tokens: int,
) -> float:
    """Seconds of all optimisation passes on `ranks` devices, in micro-batches of up to `tokens`.

    Matrix products take their share of the peak; all other operations, of the layers and of an
    adapter, are bound by memory and come on top. Groups stay on a rank, so the ranks wait for the
    one that has most. With sharded weights (FSDP2) every micro-batch gathers all layers once
    forward and once backward, and where they are trained scatters their gradients in fp32; the
    links work while the devices compute, so the longer of the two counts. A reference is asked
    once a step, one forward more.
    """
    trees = work.cut(tokens)
    groups = -(-work.prompts // ranks)
    whole = max(1, tokens // trees.tokens)  # trees at once, where a group is one
    micro_batches = groups * trees.count if trees.count > 1 else -(-groups // whole)
    peak = cluster.device.flops * efficiency.mfu
    computing = groups * pass_flops(shape, work, trees) / peak
    of_token = layer_bytes(shape, work.train, again=work.checkpointing)
    if work.train == "lora":
        of_token += adapter_bytes(shape, again=work.checkpointing)
    moved = groups * trees.tokens * of_token + micro_batches * summed_bytes(shape, work.train)
    computing += moved / (cluster.device.bandwidth * efficiency.bandwidth_share)

    def around(size: float) -> float:
        return ring_seconds(size, ranks, cluster, efficiency)

    layers = shape.layers * shape.layer_weights
    gathered = around(NUMBER * layers)
    talking = micro_batches * 2 * gathered
    if work.train == "full":
        talking += micro_batches * around(4 * layers)
        # What is whole on every rank: gradients are summed, and what each moved is gathered.
        talking += (2 * 4 + NUMBER) * around(shape.weights - layers)
    else:
        talking += 2 * around(4 * shape.lora_weights(work.rank))
    seconds = work.passes * max(computing, talking)
    if work.reference:
        asked = groups * forward_of(shape, work, trees) / peak
        seconds += max(asked, micro_batches * gathered)
    return seconds


def sync_seconds(shape: ModelShape, work: Workload, efficiency: Efficiency) -> float:
    """Seconds until the sampler has the new weights: an adapter's file, or a file of all weights,
    which the learner writes and every server reads."""
    if work.train == "lora":
        return 0.3  # measured for a hot load of an adapter of SmolLM2: 0.07 to 0.29 s
    return 2 * NUMBER * shape.weights / efficiency.disk_bandwidth


def sleep_seconds(shape: ModelShape, cluster: Cluster, *, tensor_parallel: int) -> float:
    """Seconds to move a sleeping sampler's weights to the host's memory and back."""
    return 2 * NUMBER * shape.weights / tensor_parallel / cluster.device.host
