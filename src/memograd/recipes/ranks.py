"""A run that several processes train together: who holds its folder, and who speaks.

Invariant: only rank 0 writes into the run folder and to the screen. Tested in
`tests/recipes/test_torchrun.py`. May import grpo and rich.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from memograd.grpo import RunFolder
from memograd.grpo.distributed import World, joined_world
from memograd.grpo.follower_folder import FollowerFolder


@contextmanager
def joined_ranks(device: str, console: Console) -> Iterator[World]:
    """`joined_world`, with `console` silent on all ranks but rank 0."""
    with joined_world(device) as world:
        console.quiet = not world.leads
        yield world


@contextmanager
def held(run: RunFolder, world: World) -> Iterator[RunFolder]:
    """`run` as this rank has it, locked for all by rank 0; raises what `RunFolder.lock` raises."""
    own = run if world.leads else FollowerFolder(run.path)
    with ExitStack() as stack:
        world.guarded(lambda: stack.enter_context(own.lock()))
        yield own
