"""Versions of the adapter: kept in memory, written whole into a folder of their own.

A server that is told to load another adapter under a name it knows goes on using keys and values
that the old one computed, and says nothing. So a version has a name and a folder that no version
before it had, and none is changed once a server has heard of it. The name has a random part, so
runs that share a server, or a run that goes on, cannot meet either.

Invariant: a folder that is there under its name is complete; it is written aside, synced and
renamed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import LoraConfig as PeftLoraConfig
from safetensors.torch import save_file


@dataclass(frozen=True, eq=False)
class AdapterVersion:
    """The adapter as it was under `version`.

    `tensors` are what peft saves, on the CPU; `weights` are the learner's own, in the order of its
    parameters, for scoring under this version later.
    """

    version: int
    name: str
    config: PeftLoraConfig
    tensors: Mapping[str, torch.Tensor]
    weights: Sequence[torch.Tensor]

    def write(self, parent: Path) -> Path:
        """Write it into `parent` unless it is there; returns its folder.

        Raises `OSError` if it cannot be written.
        """
        folder = parent / self.name
        if folder.is_dir():
            return folder
        parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".writing-", dir=parent))
        try:
            aside.chmod(0o755)  # a server may be another user's
            self.config.save_pretrained(str(aside))
            save_file(dict(self.tensors), aside / "adapter_model.safetensors")
            for file in aside.iterdir():
                file.chmod(0o644)
                with file.open("rb") as written:
                    os.fsync(written.fileno())
            aside.rename(folder)
        except BaseException as error:
            shutil.rmtree(aside, ignore_errors=True)
            if not (isinstance(error, OSError) and folder.is_dir()):  # another process wrote it
                raise
        return folder


def remove_adapter(parent: Path, name: str) -> None:
    """Remove the folder of a version that no server has loaded any more; gone is fine."""
    shutil.rmtree(parent / name, ignore_errors=True)
