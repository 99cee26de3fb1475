"""Reading JSON and Parquet files of unknown health: every fault becomes one sentence.

A Parquet file is read as plain Python values, one batch in memory at a time. Files that a command
makes anew, such as rows for a warm start, are checked before any work is done for them: what is
there already is not written over. Invariant: a file or record that is not as expected raises
BadInput that says what is wrong and where (file, position, field), also for a Git LFS pointer in
the file's place and for a missing library.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from memograd.errors import BadInput

T = TypeVar("T")
D = TypeVar("D")
TIME_EXAMPLE: Final = "2024-05-07T18:30"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(path: Path, what: str) -> Any:
    """The parsed contents of a file, which may be gzipped (`.gz`); `what` names the format."""
    text = read_text(path, what)
    try:
        return parsed(text)
    except ValueError as error:
        raise _damaged(path, error) from None


def parsed(text: str) -> Any:
    """What the JSON text says.

    Raises ValueError also where it is nested too deeply, and for half of a surrogate pair, which
    is no character and could be written down nowhere.
    """
    try:
        value = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def read_text(path: Path, what: str) -> str:
    """The UTF-8 text of a file, which may be gzipped (`.gz`); `what` names the format."""
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"There is no file {path}: give the path of a {what} file.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(
            f"The file {path} cannot be unpacked ({error}): was it cut off? Fetch it again."
        ) from None
    except UnicodeDecodeError as error:
        raise BadInput(f"The file {path} is not UTF-8 text ({error}): convert it.") from None
    except OSError as error:
        raise BadInput(f"The file {path} cannot be read ({error.strerror or error}).") from None


def json_lines(path: Path, what: str) -> Iterator[tuple[int, Any]]:
    """The values of a file with one on each line, numbered by their lines; empty ones are left out.

    Not `splitlines`: a text may hold other signs that end a line, such as U+2028.
    """
    for number, line in enumerate(read_text(path, what).split("\n"), start=1):
        if line.strip():
            try:
                yield number, parsed(line)
            except ValueError as error:
                raise BadInput(
                    f"{path}:{number}: not valid JSON ({error}); give one object a line."
                ) from None


def _damaged(path: Path, error: Exception) -> BadInput:
    return BadInput(f"The file {path} is not valid JSON ({error}): was it cut off? Fetch it again.")


def field(record: Any, key: str, kind: type[T], where: str) -> T:
    """`record[key]`, which must be of that kind (True and False are no whole numbers)."""
    record = typed(record, dict, where)
    if key not in record:
        raise BadInput(f"{where} has no {key!r}: is the file in another format?")
    return typed(record[key], kind, f"{key!r} in {where}")


def optional(record: Any, key: str, kind: type[T], where: str, default: D) -> T | D:
    """The same, or the default where there is no such key."""
    return field(record, key, kind, where) if key in typed(record, dict, where) else default


def texts(record: Any, key: str, where: str, *, needed: bool = False) -> tuple[str, ...]:
    """A list of texts; none where there is no such key, unless it is needed."""
    listed: list[Any] = field(record, key, list, where) if needed or key in record else []
    return tuple(typed(one, str, f"an entry of {key!r} in {where}") for one in listed)


def typed(value: Any, kind: type[T], where: str) -> T:
    """`value`, which must be of that kind."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BadInput(
            f"{where} is {type(value).__name__}, not {kind.__name__}: is the file in another"
            " format?"
        )
    return value


def answer_text(record: Any, key: str, where: str) -> str:
    """A text that some files write as a whole number."""
    value = typed(record, dict, where).get(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadInput(f"{where} needs {key!r} as a text or a whole number.")
    return str(value).strip()


def answer_texts(record: Any, key: str, where: str) -> tuple[str, ...]:
    """The right answers of a field: one, or a list of them; without empty ones and repetitions."""
    value = typed(record, dict, where).get(key)
    values = value if isinstance(value, list) else [] if value is None else [value]
    texts = [answer_text({key: one}, key, where) for one in values if one is not None]
    return tuple(dict.fromkeys(text for text in texts if text))


def iso_time(record: Any, key: str, where: str) -> datetime:
    """A time as ISO 8601 writes it."""
    text = field(record, key, str, where)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(
            f"{where} has the {key!r} {text!r}: write it like {TIME_EXAMPLE!r}."
        ) from None


def moment(text: str, pattern: str, where: str, example: str) -> datetime:
    """The time in `text`; `pattern` is a regular expression with groups for year to minute.

    Not `strptime`, whose names of days follow the machine's language.
    """
    match = re.fullmatch(pattern, text.strip())
    try:
        if match:
            year, month, day, hour, minute = map(int, match.groups())
            return datetime(year, month, day, hour, minute)
    except ValueError:
        pass  # a thirteenth month is as wrong as other words, and the sentence is the same
    raise BadInput(f"{where} has the time {text!r}: write it like {example!r}.")


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


def as_lines(records: Iterable[Mapping[str, Any]]) -> str:
    """The records as JSON, one on each line."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


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
        write_whole(path, text.encode())
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}); choose another.") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or, raising OSError, not at all: what was there before stays. What is no
    file, such as /dev/stdout, is written as it is."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    aside = path.with_name(path.name + ".new")
    try:
        aside.write_bytes(content)
        os.replace(aside, path)
    except OSError:
        with suppress(OSError):
            aside.unlink()
        raise
