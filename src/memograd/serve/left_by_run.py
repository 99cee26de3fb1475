"""A memory that a training run left in its own folder, to be looked at: `runs/NAME/memory`.

`memograd demo` tells an unseen life to such a memory, before and after training. Where nobody says
which memory to serve and there is none in the usual place yet, the newest of them is what there is
to see; it is shown under its name, and clients get no key to it, so that nothing of theirs is
written where nobody will look for it. Invariant: a memory of one's own, however it is named, always
comes first.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from memograd.config import MemorySettings

FOLDER: Final = "memory"
"""Of the memory, in the folder of its run."""
POLICY: Final = "final"
"""Of what was trained."""


def newest(runs: Path) -> Path | None:
    """The run that left a memory last; None where none did."""
    found = [path for path in runs.iterdir() if _embedder(path)] if runs.is_dir() else []
    return max(found, key=lambda path: (path / FOLDER).stat().st_mtime, default=None)


def instead_of(settings: MemorySettings, runs: Path) -> Path | None:
    """The run whose memory is shown where these settings name none and none is there yet."""
    named = {"path", "journal_url"} & settings.model_fields_set
    return None if named or settings.path.exists() else newest(runs)


def settings_of(run: Path, settings: MemorySettings) -> MemorySettings:
    """The settings under which the run wrote its memory; what it does not say is as it was."""
    told: dict[str, Any] = {"path": run / FOLDER, "embedder": _embedder(run)}
    if (run / POLICY).is_dir():
        told["policy"] = run / POLICY
    return settings.model_copy(update=told)


def name_of(memory: Path, runs: Path) -> str | None:
    """The name of the run that left a memory; None where none of this folder did."""
    run = memory.resolve().parent
    is_one = memory.name == FOLDER and run.parent == runs.resolve() and _embedder(run)
    return run.name if is_one else None


def _embedder(run: Path) -> str | None:
    """The embedder of the memory that a run left; None where it left none."""
    if not (run / FOLDER / "journal.db").is_file():
        return None
    try:
        told = json.loads((run / "config.json").read_bytes())
    except (OSError, ValueError):
        return None  # it may be another program's folder, and says nothing of a memory
    embedder = told.get("embedder") if isinstance(told, dict) else None
    return embedder if isinstance(embedder, str) else None
