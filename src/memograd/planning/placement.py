"""Who does what on which devices, and which way is the fastest that fits.

Two ways are tried for every split. *Colocated*: all devices sample, the sampler sleeps, all devices
learn. *Apart*: some devices sample and the others learn; with a staleness of 0 one side waits for
the other, above 0 they work at the same time and the slower side sets the pace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memograd.errors import BadInput
from memograd.planning.costs import (
    LearnerMemory,
    Sampling,
    Workload,
    learner_memory,
    learning_seconds,
    room,
    sampler_cache,
    sampling,
    sleep_seconds,
    sync_seconds,
)
from memograd.planning.hardware import GIB, Cluster, Efficiency
from memograd.planning.shapes import ModelShape


@dataclass(frozen=True)
class StepSeconds:
    """Seconds of one step by part. overlapped: sampling and learning run side by side."""

    prefill: float
    decode: float
    learn: float
    sync: float
    sleep: float
    overlapped: bool

    @property
    def seconds(self) -> float:
        """The whole step."""
        sample = self.prefill + self.decode
        work = max(sample, self.learn) if self.overlapped else sample + self.learn
        return work + self.sync + self.sleep


@dataclass(frozen=True)
class Placement:
    """One way to use a cluster. sampling, learning: devices of each (all, where colocated).

    micro_batch: tokens that a learner's device computes at once; the largest that fits.
    """

    colocated: bool
    sampling: int
    learning: int
    tensor_parallel: int
    micro_batch: int
    at_once: int
    memory: LearnerMemory
    cache: float
    step: StepSeconds

    @property
    def name(self) -> str:
        """In words."""
        if self.colocated:
            return f"colocated on {self.learning}, replicas of {self.tensor_parallel}"
        return (
            f"{self.sampling} sample in replicas of {self.tensor_parallel}, {self.learning} learn"
        )


@dataclass(frozen=True)
class RankedPlacements:
    """All placements that fit, the fastest first, and why the others do not."""

    shape: ModelShape
    cluster: Cluster
    work: Workload
    placements: tuple[Placement, ...]
    refused: tuple[str, ...]

    @property
    def best(self) -> Placement:
        """The fastest."""
        return self.placements[0]


def make_plan(
    shape: ModelShape,
    cluster: Cluster,
    work: Workload,
    *,
    efficiency: Efficiency | None = None,
    max_staleness: int = 0,
) -> RankedPlacements:
    """All ways to place the work. Raises BadInput, with what to change, when none of them fits."""
    reached = efficiency or Efficiency()
    fitting: list[Placement] = []
    refused: dict[str, None] = {}
    for colocated, sampling_devices, learning_devices in _splits(cluster.count):
        outcome = _place(
            shape,
            cluster,
            work,
            reached,
            colocated=colocated,
            sampling_devices=sampling_devices,
            learning_devices=learning_devices,
            overlapped=not colocated and max_staleness > 0,
        )
        if isinstance(outcome, Placement):
            fitting.append(outcome)
        else:
            refused[outcome] = None
    if not fitting:
        raise BadInput(
            f"{shape.name} does not fit on {cluster.count} x {cluster.device.name}: "
            f"{next(iter(refused))} {_remedy(work)}"
        )
    fitting.sort(key=lambda placement: placement.step.seconds)
    return RankedPlacements(shape, cluster, work, tuple(fitting), tuple(refused))


def _remedy(work: Workload) -> str:
    ways = ["more devices", "a smaller model", "a shorter prompt or answer"]
    if not work.checkpointing:
        ways.insert(0, "activation checkpointing")
    if work.train == "full":
        ways.insert(0, "tuning=lora")
    return "Try " + ", ".join(ways[:-1]) + " or " + ways[-1] + "."


def _splits(count: int) -> Iterator[tuple[bool, int, int]]:
    """(colocated, devices that sample, devices that learn): all splits of few, eighths of many."""
    yield True, count, count
    stride = max(1, count // 8)
    for sampling_devices in range(stride, count, stride):
        yield False, sampling_devices, count - sampling_devices


def _place(
    shape: ModelShape,
    cluster: Cluster,
    work: Workload,
    efficiency: Efficiency,
    *,
    colocated: bool,
    sampling_devices: int,
    learning_devices: int,
    overlapped: bool,
) -> Placement | str:
    """The placement, or a sentence that says why it does not fit."""
    needed = work.prompt + work.answer  # a tree is cut by branches down to one row
    free = room(cluster)
    tokens = micro_batch_tokens(shape, work, cluster, ranks=learning_devices)
    if tokens < needed:
        asks = learner_memory(shape, work, ranks=learning_devices, tokens=needed).total
        return (
            f"learning needs {asks / GIB:.0f} GiB on each of {learning_devices} for one row of "
            f"{needed} tokens, and {free / GIB:.0f} can be filled."
        )
    parallel = _tensor_parallel(shape, work, cluster, sampling_devices)
    if parallel is None:
        return (
            f"the weights ({2 * shape.weights / GIB:.0f} GiB in bf16) and one group's cache find "
            f"no room on {sampling_devices} sampling."
        )
    cache = sampler_cache(shape, cluster, tensor_parallel=parallel)
    drawn: Sampling = sampling(
        shape,
        work,
        cluster,
        efficiency,
        replicas=sampling_devices // parallel,
        tensor_parallel=parallel,
        cache_bytes=cache,
    )
    step = StepSeconds(
        prefill=drawn.prefill,
        decode=drawn.decode,
        learn=learning_seconds(
            shape, work, cluster, efficiency, ranks=learning_devices, tokens=tokens
        ),
        sync=sync_seconds(shape, work, efficiency),
        sleep=sleep_seconds(shape, cluster, tensor_parallel=parallel) if colocated else 0.0,
        overlapped=overlapped,
    )
    held = min(tokens, work.tree_tokens * -(-work.prompts // learning_devices))
    return Placement(
        colocated,
        sampling_devices,
        learning_devices,
        parallel,
        held,
        drawn.at_once,
        learner_memory(shape, work, ranks=learning_devices, tokens=held),
        cache,
        step,
    )


def micro_batch_tokens(shape: ModelShape, work: Workload, cluster: Cluster, *, ranks: int) -> int:
    """The most tokens that fit on a learner's device at once; 0 if not even the weights do."""
    free = room(cluster)
    none = learner_memory(shape, work, ranks=ranks, tokens=0).total
    if none >= free:
        return 0
    lowest, highest = 0, 1 << 24
    while highest - lowest > 1:
        middle = (lowest + highest) // 2
        fits = learner_memory(shape, work, ranks=ranks, tokens=middle).total <= free
        lowest, highest = (middle, highest) if fits else (lowest, middle)
    return lowest


def _tensor_parallel(
    shape: ModelShape, work: Workload, cluster: Cluster, devices: int
) -> int | None:
    """The fewest devices of a replica that hold the weights and the cache of one group."""
    group = shape.kv_bytes() * (work.prompt + work.group * work.answer)
    parallel = 1
    while parallel <= min(devices, cluster.per_machine):
        if devices % parallel == 0 and shape.heads % parallel == 0:
            cache = sampler_cache(shape, cluster, tensor_parallel=parallel)
            if cache >= group:
                return parallel
        parallel *= 2
    return None
