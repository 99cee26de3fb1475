"""Several processes that train one policy: what they tell each other, and nothing else.

`torchrun` starts them, *ranks* 0 to N - 1; every rank holds the whole policy and the whole batch of
rollouts, and does its share of sampling, rewarding and differentiating. Because the batch is whole
everywhere, advantages, loss shares, token counts and what to sample anew are computed from global
totals without anybody having to ask. What travels: rollouts and rewards (once a step), gradients in
a few flat buffers (once a pass), and a word after each piece of work whether it went well. Weights
that FSDP2 has cut (`memograd.policy.sharding`) sum their gradients by themselves.

Invariants: a sum over ranks is the same on all of them to the bit, so weights never come apart; and
when work fails on one rank, every rank raises that failure, so nobody waits for one that has left.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from memograd.errors import BadInput, MemogradError
from memograd.policy.loading import choose_device

T = TypeVar("T")

TIMEOUT = timedelta(hours=1)
"""How long a rank waits for the others; the slowest step, or rank 0's evaluation, must fit in."""

BUCKET = 2**25
"""Numbers of gradients that travel at once; the copy of them is all that a sum takes in memory."""

VARIABLES = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells its processes, beside WORLD_SIZE."""


class World:
    """All ranks, seen from number `rank` of `size`; every rank must call the same methods in the
    same order. Alone (`size` 1), nothing travels and nothing is waited for.

    `catch_up` is called by a rank that has done its part of a piece of work: where weights are
    sharded, it computes along until the others have done theirs.

    All methods that exchange something raise `MemogradError` where a rank has died or is silent.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size
        self.catch_up: Callable[[], None] = lambda: None

    @property
    def leads(self) -> bool:
        """Whether this is rank 0: the one that writes and speaks."""
        return self.rank == 0

    def share(self, count: int) -> range:
        """Which of `count` things are this rank's: neighbours, even to one, perhaps none."""
        return range(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def seed(self, seed: int, *, step: int = 0) -> int:
        """This rank's seed of a run's `seed` from the step after `step` on; that of rank 0 from the
        beginning is `seed` itself."""
        if step:
            seed = random.Random(f"{seed}/step {step} of {self.size}").getrandbits(63)
        return random.Random(f"{seed}/rank {self.rank}").getrandbits(63) if self.rank else seed

    def together(self, work: Callable[[], T]) -> list[T]:
        """What `work` returned on each rank, in their order; it must be picklable.

        Raises what it raised on the first rank where it did, on all ranks.
        """
        if self.size == 1:
            return [work()]
        result: T | None = None
        own: Exception | None = None
        try:
            result = work()
        except Exception as error:
            own = error
        with self._answered():
            self.catch_up()
        outcomes: list[tuple[T, Exception | None]] = [None] * self.size  # type: ignore[list-item]
        with self._answered():
            dist.all_gather_object(outcomes, (result, None if own is None else self._copy(own)))
        for rank, (_, failure) in enumerate(outcomes):
            if failure is not None:
                raise own if own is not None and rank == self.rank else failure
        return [outcome for outcome, _ in outcomes]

    def guarded(self, work: Callable[[], T]) -> T:
        """What `work` returned here, if it failed nowhere; raises as `together` does."""
        results: list[T] = []
        self.together(lambda: results.append(work()))
        return results[0]

    def led(self, work: Callable[[], T]) -> T:
        """What `work` returned on rank 0, the only one that does it; raises as `together` does."""
        result = self.together(lambda: work() if self.leads else None)[0]
        return result  # type: ignore[return-value]

    def sum(self, values: np.ndarray) -> np.ndarray:
        """The sum over ranks of an array of one shape, in double precision."""
        if self.size == 1:
            return values
        total = torch.tensor(values, dtype=torch.float64)
        with self._answered():
            dist.all_reduce(total)
        return total.numpy()

    def sum_gradients(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Give every parameter the sum of its gradients over ranks; none counts as zero.

        Weights that are cut among the ranks (FSDP2) have theirs already.
        """
        if self.size == 1:
            return
        whole = [parameter for parameter in parameters if not isinstance(parameter, DTensor)]
        for parameter in whole:
            if parameter.grad is None:
                number = getattr(parameter, "grad_dtype", None) or parameter.dtype
                parameter.grad = torch.zeros_like(parameter, dtype=number)
        gradients = [parameter.grad for parameter in whole if parameter.grad is not None]
        for bucket in _buckets(gradients):
            flat = torch.cat([gradient.flatten() for gradient in bucket])
            with self._answered():
                dist.all_reduce(flat)
            sizes = [gradient.numel() for gradient in bucket]
            for gradient, part in zip(bucket, flat.split(sizes), strict=True):
                gradient.copy_(part.view_as(gradient))

    def gather(self, part: torch.Tensor, count: int) -> torch.Tensor:
        """The `count` numbers of which each rank has its `share`, in one row."""
        if self.size == 1:
            return part
        longest = -(-count // self.size)
        padded = part.new_zeros(longest)
        padded[: len(part)] = part
        rows = [torch.empty_like(padded) for _ in range(self.size)]
        with self._answered():
            dist.all_gather(rows, padded)
        sizes = [len(World(rank, self.size).share(count)) for rank in range(self.size)]
        return torch.cat([row[:size] for row, size in zip(rows, sizes, strict=True)])

    def check_equal_weights(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Raise `MemogradError` unless what all ranks hold is the same on all, byte for byte."""
        if self.size == 1:
            return
        digest = hashlib.sha256()
        for parameter in parameters:
            if isinstance(parameter, DTensor):  # of which every rank has another part
                continue
            numbers = parameter.detach().cpu().contiguous().flatten()
            digest.update(numbers.view(torch.uint8).numpy().tobytes())
        digests = self.together(digest.hexdigest)
        apart = [rank for rank, other in enumerate(digests) if other != digests[0]]
        if apart:
            raise MemogradError(
                f"the weights of process {', '.join(map(str, apart))} are not those of process 0; "
                "start all processes with the same model, settings and versions"
            )

    def _copy(self, error: Exception) -> Exception:
        """The error as the other ranks will raise it: itself, or a sentence where it is a bug."""
        if isinstance(error, MemogradError):
            try:
                copy: Exception = pickle.loads(pickle.dumps(error))
            except Exception:  # its constructor takes other arguments
                copy = MemogradError(str(error))
            return copy
        return MemogradError(f"process {self.rank} failed with {type(error).__name__}: {error}")

    @contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise MemogradError(
                f"another of the {self.size} processes died or did not answer within "
                f"{TIMEOUT} (this is process {self.rank}); what it said last tells why"
            ) from error


ALONE = World()
"""One process by itself."""


@contextmanager
def joined_world(device: str) -> Iterator[World]:
    """The world that torchrun's environment variables describe; alone where there are none.

    On CUDA, each process takes the GPU of its number on its machine. Leaving ends the connection.

    Raises:
        BadInput: variables are missing, there are fewer GPUs than processes, or `device` is one
            that cannot be shared.
        MemogradError: the other processes cannot be reached.
    """
    size = _number("WORLD_SIZE", "1")
    if size == 1:
        yield ALONE
        return
    missing = [name for name in VARIABLES if not os.environ.get(name)]
    if missing:
        raise BadInput(
            f"WORLD_SIZE={size} is set but {', '.join(missing)} is not: start several processes "
            f"with torchrun --nproc_per_node={size} -m memograd, or unset WORLD_SIZE"
        )
    kind = choose_device(device).type
    if kind == "mps":
        raise BadInput("several processes cannot train on mps; use device=cpu, or one process")
    if kind == "cuda":
        place = _number("LOCAL_RANK")
        if place >= torch.cuda.device_count():
            raise BadInput(
                f"process {place} of this machine has no GPU: there are "
                f"{torch.cuda.device_count()}; start as many processes, or use device=cpu"
            )
        torch.cuda.set_device(place)
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo", timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise MemogradError(
            f"process {os.environ['RANK']} of {size} cannot reach the others at "
            f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}: {reason}"
        ) from error
    try:
        yield World(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


def _buckets(tensors: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """`tensors` of one number type in rows of at most `BUCKET` numbers, or of one tensor."""
    bucket: list[torch.Tensor] = []
    for tensor in tensors:
        if bucket and (
            tensor.dtype != bucket[0].dtype
            or sum(one.numel() for one in bucket) + tensor.numel() > BUCKET
        ):
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket


def _number(variable: str, default: str = "") -> int:
    value = os.environ.get(variable, default)
    if not value.isdecimal() or (variable == "WORLD_SIZE" and int(value) == 0):
        raise BadInput(
            f"the environment variable {variable} is {value!r}, not a number of processes; start "
            "with torchrun, or unset it"
        )
    return int(value)
