"""A run that several processes train together: who holds its folder, its weights, and who speaks.

Invariant: only rank 0 writes into the run folder and to the screen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from memograd.config import TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.distributed import World, joined_world
from memograd.grpo.run_folder import FollowerFolder
from memograd.policy.model_policy import ModelPolicy


@contextmanager
def joined_ranks(device: str, console: Console) -> Iterator[World]:
    """`joined_world`, with `console` silent on all ranks but rank 0."""
    with joined_world(device) as world:
        console.quiet = not world.leads
        yield world


def plan_memory(policy: ModelPolicy, config: TrainConfig, world: World) -> str:
    """Let memory decide how large micro-batches are; returns what the run needs and there is.

    Raises `BadInput` where one answer of full length to the longest prompt does not fit.
    """
    budget = policy.plan_memory(ranks=1 if config.shard == "off" else world.size)
    row = (config.max_prompt_length or 1) + config.max_completion_length
    if not budget.fits(row):
        ways = ["a smaller model", "a smaller max_completion_length"]
        if not policy.checkpointing:
            ways.insert(0, "activation_checkpointing=true")
        if config.shard == "off":
            ways.insert(0, "shard=fsdp2 with several processes")
        if config.tuning == "full":
            ways += ["tuning=lora", *(["beta=0"] if policy.has_reference else [])]
        raise BadInput(
            f"model={config.model} cannot be trained here: {budget.says(row)}; use "
            f"{', or '.join(ways)}"
        )
    return budget.says(policy.usual_tokens())


def share_weights(policy: ModelPolicy, config: TrainConfig, world: World) -> None:
    """Cut the policy's weights among the ranks where the settings ask for it; all must call it.

    Raises `BadInput` for one process, which has nobody to share them with.
    """
    if config.shard == "off":
        return
    if world.size == 1:
        raise BadInput(
            "shard=fsdp2 cuts the model among several processes, and this is one by itself: start "
            "with torchrun --nproc_per_node=N -m memograd, or use shard=off"
        )
    world.catch_up = world.guarded(policy.shard)


@contextmanager
def held(run: RunFolder, world: World) -> Iterator[RunFolder]:
    """`run` as this rank has it, locked for all by rank 0; raises what `RunFolder.lock` raises."""
    own = run if world.leads else FollowerFolder(run.path)
    with ExitStack() as stack:
        world.guarded(lambda: stack.enter_context(own.lock()))
        yield own
