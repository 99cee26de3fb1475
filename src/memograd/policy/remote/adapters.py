"""Versions of what is trained: a name and a folder of their own, written whole.

A server that is told to load another adapter under a name it knows goes on using keys and values
that the old one computed, and says nothing. So a version has a name and a folder that no version
before it had, and none is changed once a server has heard of it. The name has a random part, so
runs that share a server, or a run that goes on, cannot meet either. Of an adapter all is kept in
memory, too. All weights of a model (`WeightsVersion`) are too large to keep twice: they are written
when the version is made, and the folder is the only copy.

Invariant: a folder that is there under its name is complete; it is written aside, synced and
renamed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from peft import LoraConfig as PeftLoraConfig
from safetensors.torch import save_file

from memograd.policy.remote.server import SamplingFailed


class ServedVersion(Protocol):
    """What was trained, as it was under `version`; servers know it by `name`."""

    @property
    def version(self) -> int: ...
    @property
    def name(self) -> str: ...

    @property
    def weights(self) -> Mapping[str, torch.Tensor] | None:
        """The learner's own by their names, for scoring under this version later, if they are
        kept."""
        ...

    def write(self, parent: Path) -> Path:
        """Write it into `parent` unless it is there; returns its folder.

        Raises `OSError` if it cannot be written.
        """
        ...


@dataclass(frozen=True, eq=False)
class AdapterVersion:
    """The adapter as it was under `version`.

    `tensors` are what peft saves, on the CPU; `weights` are the learner's own.
    """

    version: int
    name: str
    config: PeftLoraConfig
    tensors: Mapping[str, torch.Tensor]
    weights: Mapping[str, torch.Tensor]

    def write(self, parent: Path) -> Path:
        """As of `ServedVersion`."""
        folder = parent / self.name
        if not folder.is_dir():
            _write_whole(folder, self._fill)
        return folder

    def _fill(self, folder: Path) -> None:
        self.config.save_pretrained(str(folder))
        save_file(dict(self.tensors), folder / "adapter_model.safetensors")


@dataclass(eq=False)
class WeightsVersion:
    """All weights of the model as they were under `version`.

    `fill` writes them into a folder, once; None where another process does. Later the weights have
    moved, so a folder that is gone cannot be written again.
    """

    version: int
    name: str
    fill: Callable[[Path], None] | None
    weights: Mapping[str, torch.Tensor] | None = None

    def write(self, parent: Path) -> Path:
        """As of `ServedVersion`. Raises `SamplingFailed` where it was written, and is gone."""
        folder = parent / self.name
        if folder.is_dir():
            return folder
        if self.fill is None:
            raise SamplingFailed(
                f"{folder} was deleted while servers were loading the weights in it; go on with "
                "the run by resume=FOLDER."
            )
        _write_whole(folder, self.fill)
        self.fill = None
        return folder


def _write_whole(folder: Path, fill: Callable[[Path], None]) -> None:
    """Have `folder` with what `fill` writes, or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".writing-", dir=folder.parent))
    try:
        aside.chmod(0o755)  # a server may be another user's
        fill(aside)
        for file in aside.iterdir():
            file.chmod(0o644)
            with file.open("rb") as written:
                os.fsync(written.fileno())
        aside.rename(folder)
    except BaseException as error:
        shutil.rmtree(aside, ignore_errors=True)
        if not (isinstance(error, OSError) and folder.is_dir()):  # another process wrote it
            raise


def remove_version(parent: Path, name: str) -> None:
    """Remove the folder of a version that no server has loaded any more; gone is fine."""
    shutil.rmtree(parent / name, ignore_errors=True)
