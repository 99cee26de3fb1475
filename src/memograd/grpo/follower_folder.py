"""The run folder as ranks other than 0 have it: read like any other, never written to.

So the trainer writes without asking which rank it is. Invariant: whatever is called on it, no byte
in the folder changes. Proved in `tests/grpo/test_follower_folder.py`. May import errors, config and
`memograd.grpo.run_folder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memograd.grpo.run_folder import RunFolder


class FollowerFolder(RunFolder):
    """Says where things are written, but leaves writing them to rank 0's `RunFolder`."""

    def append_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Nothing."""

    def truncate_metrics(self, step: int) -> None:
        """Nothing."""

    def write_rollouts(
        self, step: int, text: str, records: Sequence[str] = (), *, folder: str = "rollouts"
    ) -> Path:
        """The readable file that rank 0 writes."""
        return self.path / folder / f"step-{step:04d}.txt"

    def write_data(self, fingerprint: Mapping[str, Any]) -> None:
        """Nothing."""

    def save_checkpoint(
        self, name: str, writer: Callable[[Path], None], *, step: int | None = None
    ) -> Path:
        """The checkpoint that rank 0 writes."""
        return self.path / name

    def replace_config(self, config_json: str) -> None:
        """Nothing."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Rank 0 holds the lock for all."""
        yield
