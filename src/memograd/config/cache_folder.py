"""The folder for what is made once from what packages carry: converted models, stored vectors."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$MEMOGRAD_CACHE`, else `~/.cache/memograd`; it need not exist yet."""
    return Path(os.environ.get("MEMOGRAD_CACHE") or Path.home() / ".cache" / "memograd")
