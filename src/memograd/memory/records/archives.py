"""Arrays in a numpy archive (`.npz`), and out of one, with plain words where it is none.

numpy's own words for any other file are advice about pickled objects, which are never read here.

Invariants: whatever the file holds, `read_arrays` gives its arrays whole or raises an OSError or a
ValueError that says what is wrong with it; `write_arrays` leaves the new file whole or the old one.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays of the archive.

    Raises:
        OSError: it is not there or cannot be read; FileNotFoundError among them.
        ValueError: it is no archive, or is damaged.
    """
    import numpy as np

    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is empty, cut off, or a file of another kind")
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except (OSError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile) as error:
            raise ValueError("it is damaged, or holds other things than numbers") from error
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ValueError("it holds other things than numbers")
    return arrays


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the archive, in a folder that is made if need be.

    Raises:
        OSError: it cannot be written.
    """
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as aside:
        try:
            np.savez(aside, **arrays)  # type: ignore[arg-type]
            aside.close()
            os.chmod(aside.name, 0o644)
            os.replace(aside.name, path)
        except BaseException:
            os.unlink(aside.name)
            raise


def what_is_wrong(error: Exception) -> str:
    """The error in a few words, to stand in brackets behind the name of the file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
