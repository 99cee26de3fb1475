"""Files that a command makes anew, such as rows for a warm start.

Invariant: what is there already is never written over, and a place that cannot be written to is
refused before any work is done for it.
"""

from __future__ import annotations

import os
from pathlib import Path

from memograd.errors import BadInput


def check_new(path: Path) -> None:
    """Raise BadInput where something is at `path`, or no file can be made there."""
    if path.exists():
        raise BadInput(f"{path} is there already; choose another name, or remove it.")
    above = next(one for one in path.absolute().parents if one.exists())
    if not above.is_dir():
        raise BadInput(f"{path} cannot be written ({above} is a file); choose another.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise BadInput(f"{path} cannot be written ({above} is read-only); choose another.")


def write_new(path: Path, text: str) -> None:
    """Write a file, and the folders above it. Raises BadInput where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}); choose another.") from error
