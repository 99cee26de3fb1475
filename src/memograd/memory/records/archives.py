"""Arrays out of a numpy archive (`.npz`), with plain words where it is none.

numpy's own words for any other file are advice about pickled objects, which are never read here.

Invariant: whatever the file holds, `read_arrays` gives its arrays whole or raises an OSError or a
ValueError that says what is wrong with it.
"""

from __future__ import annotations

import zipfile
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


def what_is_wrong(error: Exception) -> str:
    """The error in a few words, to stand in brackets behind the name of the file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
