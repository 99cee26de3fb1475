"""Rows of a Parquet file, as plain Python values, one batch in memory at a time.

Invariant: what cannot be read is BadInput in one sentence: no file, no Parquet, a Git LFS pointer
in its place, a missing column, a missing library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from memograd.data.json_records import parsed
from memograd.errors import BadInput

MAGIC: Final = b"PAR1"  # how a Parquet file begins and ends
LFS_POINTER: Final = b"version https://git-lfs"
BATCH_ROWS: Final = 16  # a row may hold a whole book


def read_rows(path: Path, columns: Sequence[str], what: str) -> Iterator[dict[str, Any]]:
    """The rows with these columns, all of which must be there; `what` names the format."""
    try:
        with path.open("rb") as opened:
            beginning = opened.read(len(LFS_POINTER))
    except FileNotFoundError:
        raise BadInput(f"There is no file {path}: give the path of a {what} file.") from None
    except OSError as error:
        raise BadInput(f"The file {path} cannot be read ({error.strerror or error}).") from None
    if beginning == LFS_POINTER:
        raise BadInput(f"The file {path} is only a Git LFS pointer: run 'git lfs pull' there.")
    if not beginning.startswith(MAGIC):
        raise BadInput(f"The file {path} is no Parquet file: {what} comes as Parquet.")
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise BadInput(
            f"Reading {path} needs pyarrow: run pip install 'memograd[parquet]'."
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            found = file.schema_arrow.names
            if missing := [name for name in columns if name not in found]:
                raise BadInput(
                    f"The file {path} has no column {', '.join(map(repr, missing))}, only"
                    f" {', '.join(map(repr, found))}: is it {what}?"
                )
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns)):
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(
            f"The file {path} is no whole Parquet file ({reason}): was it cut off? Fetch it again."
        ) from None


def decoded(value: Any, where: str) -> Any:
    """The value of a column that some files hold as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return parsed(value)
    except ValueError as error:
        raise BadInput(f"{where} is not valid JSON ({error}): fetch the file again.") from None
