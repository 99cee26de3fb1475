"""Checkpoints that are there completely or not at all.

Imports `memograd.errors` only, no torch: what is in a checkpoint is its writer's business. It grows
in a temporary folder beside its place, is flushed to disk, gets its manifest last (`COMPLETE`: the
step, every file's size and SHA-256), and takes its name in one rename.

Invariant: whenever the process is killed, whatever then bears a checkpoint's name and passes
`is_complete` has every byte that its writer wrote, and the checkpoints before it are untouched.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from memograd.errors import BadInput, MemogradError

logger = logging.getLogger(__name__)

MANIFEST = "COMPLETE"
FINAL = "final"
BEST = "best"
"""The checkpoint of the best score on held-out data; a copy: a run goes on from the others."""
_NAME = re.compile(rf"checkpoint-(\d+)|{FINAL}|{BEST}")
_TEMPORARY = ".writing-"
_REPLACED = ".replaced-"
_FULL = 65_536
"""Bytes; a disk that has less, while what was half written still stands on it, is full."""


class FileRecord(BaseModel):
    """What a file of a checkpoint must look like."""

    bytes: Annotated[int, Field(ge=0)]
    sha256: str


class Manifest(BaseModel):
    """What a complete checkpoint holds; file names are relative, with forward slashes."""

    step: Annotated[int, Field(ge=0)]
    files: dict[str, FileRecord]


def step_of_name(name: str) -> int | None:
    """N of "checkpoint-N", none of "final" and "best".

    Raises:
        MemogradError: any other name.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise MemogradError(f"A checkpoint is named checkpoint-N, {FINAL} or {BEST}, not {name!r}.")
    return int(match[1]) if match[1] else None


def publish(target: Path, step: int, writer: Callable[[Path], None]) -> None:
    """Let `writer` fill a folder and move it to `target`, replacing what is there.

    Raises:
        MemogradError: it could not be written, for example because the disk is full. What was half
            written is removed; `target` and its neighbours are as they were.
    """
    temporary = target.with_name(_TEMPORARY + target.name)
    replaced = target.with_name(_REPLACED + target.name)
    remove_leftovers(target.parent)
    try:
        temporary.mkdir()
        writer(temporary)
        manifest = Manifest(step=step, files=_sync_files(temporary))
        write_synced(temporary / MANIFEST, manifest.model_dump_json(indent=2))
        for folder in (*(path for path in temporary.rglob("*") if path.is_dir()), temporary):
            sync(folder)
        if target.exists():
            os.rename(target, replaced)
        os.rename(temporary, target)
        sync(target.parent)
    except Exception as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        if shutil.disk_usage(target.parent).free < _FULL:  # torch says "unexpected pos 36288"
            reason = "the disk is full: make room, and go on with resume="
        raise MemogradError(
            f"The checkpoint {target} could not be written ({reason}); "
            "the earlier ones are untouched."
        ) from error
    finally:
        remove_leftovers(target.parent)


def remove_leftovers(run: Path) -> None:
    """Remove what a killed writer left in a run folder; nothing that bears a checkpoint's name."""
    for path in run.glob(f"{_REPLACED}*"):
        target = path.with_name(path.name.removeprefix(_REPLACED))
        if not target.exists():  # stopped between the two renames: the old one comes back
            os.rename(path, target)
    for pattern in (_TEMPORARY, _REPLACED):
        for path in run.glob(f"{pattern}*"):
            shutil.rmtree(path)


def latest_complete(run: Path) -> Path | None:
    """The complete checkpoint of the highest step in a run folder; damaged ones are passed over,
    with a warning."""
    found: list[tuple[int, bool, Path]] = []
    for path in run.iterdir():
        if _NAME.fullmatch(path.name) is None or path.name == BEST:
            continue
        manifest = _read_manifest(path)
        if manifest is None:
            _say_passed_over(path)
            continue
        # Of the same step, a numbered checkpoint comes before the final one.
        found.append((manifest.step, path.name != FINAL, path))
    for *_, path in sorted(found, reverse=True):
        if is_complete(path):
            return path
        _say_passed_over(path)
    return None


@cache
def _say_passed_over(path: Path) -> None:
    """Once for each, however often it is looked for."""
    logger.warning("the checkpoint %s is damaged and passed over", path)


@dataclass(frozen=True)
class CheckpointSummary:
    """A checkpoint as a list shows it; `step` is None where the manifest is missing or damaged."""

    name: str
    step: int | None
    bytes: int


def list_checkpoints(run: Path) -> list[CheckpointSummary]:
    """All checkpoints of a run folder by step, those without a manifest last.

    Only the manifests are read: whether every byte is right is what `is_complete` says.
    """
    found = []
    for path in run.iterdir():
        if _NAME.fullmatch(path.name):
            manifest = _read_manifest(path)
            size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
            step = None if manifest is None else manifest.step
            found.append(CheckpointSummary(path.name, step, size))
    unknown = 10**18
    return sorted(found, key=lambda one: (unknown if one.step is None else one.step, one.name))


def checkpoint_step(path: Path) -> int:
    """The training step that a checkpoint holds.

    Raises:
        BadInput: `path` is not a complete checkpoint.
    """
    manifest = _read_manifest(path)
    if manifest is None or not is_complete(path):
        raise BadInput(f"{path} is not a complete checkpoint; choose another one.")
    return manifest.step


def is_complete(path: Path) -> bool:
    """Whether every file that the manifest names is there with its size and SHA-256."""
    manifest = _read_manifest(path)
    return manifest is not None and all(
        (path / name).is_file() and _describe(path / name) == record
        for name, record in manifest.files.items()
    )


def write_synced(path: Path, text: str) -> None:
    """Write a text file and flush it to disk."""
    path.write_text(text, encoding="utf-8")
    sync(path)


def replace_text(path: Path, text: str) -> None:
    """Replace a file by one rename, so that a reader sees the old text or the new one."""
    aside = path.with_name(path.name + ".new")
    try:
        write_synced(aside, text)
        os.replace(aside, path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty where it is missing or is none."""
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_manifest(path: Path) -> Manifest | None:
    try:
        return Manifest.model_validate_json((path / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValidationError):
        return None


def _sync_files(folder: Path) -> dict[str, FileRecord]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        sync(path)
    return {path.relative_to(folder).as_posix(): _describe(path) for path in files}


def _describe(path: Path) -> FileRecord:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileRecord(bytes=path.stat().st_size, sha256=digest)
