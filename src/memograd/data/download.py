"""Fetching the files of a public data set: resumed, checked, and whole or not there at all.

A file grows as `NAME.part`; when all of it is there and its checksum is right it is renamed, so a
file under its own name is always whole. An interrupted download goes on where it stopped, if the
server still has the same file (`Range` with `If-Range`), else it begins anew. Where the catalogue
knows no checksum, the first download records its own in `NAME.sha256`, and later ones are held to
it: that shows a change, not that the first one was right.

`MEMOGRAD_DATA_MIRROR` names a server that holds `<data set>/<file>`, as this module lays them out
on disk, in place of the makers' own. `HF_ENDPOINT` replaces https://huggingface.co, as elsewhere.

Invariants: no failure leaves a wrong file under the right name; whatever interrupts a download, the
next one ends with the same bytes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from memograd.data.catalogue import HUB, RemoteFile, data_set
from memograd.data.transfer import Unfinished, transfer
from memograd.errors import BadInput, MemogradError

MIRROR = "MEMOGRAD_DATA_MIRROR"
DEFAULT_FOLDER = Path("data")
BEGINNINGS = {".json": (b"[", b"{"), ".parquet": (b"PAR1",)}

Progress = Callable[[str, int, int | None], None]
"""Told the file's name, the bytes that are there, and all that there will be, None if unknown."""


def get_data(
    name: str, folder: Path | str = DEFAULT_FOLDER, *, progress: Progress | None = None
) -> list[Path]:
    """The files of a data set in `folder/name`, fetched where they are not there yet.

    Raises BadInput for an unknown name, and MemogradError, in one sentence that says where to
    fetch the file by hand, when it cannot be reached, is not what it should be, or does not fit.
    """
    wanted = data_set(name)
    target = Path(folder) / name
    try:
        target.mkdir(parents=True, exist_ok=True)
        with FileLock(target / ".lock").acquire(timeout=0):
            return [
                _get_file(file, _address(name, file), target / file.name, progress)
                for file in wanted.files
            ]
    except Timeout:
        raise MemogradError(
            f"Another process is fetching {name} into {target}: wait until it is done."
        ) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise MemogradError(
                f"The disk is full while {name} is fetched into {target}: make room and run it"
                " again, it goes on where it stopped."
            ) from None
        raise MemogradError(f"The folder {target} cannot be written ({error}).") from None


def _address(name: str, file: RemoteFile) -> str:
    """Where the file is fetched from, as the environment says."""
    if mirror := _server(MIRROR):
        return f"{mirror}/{name}/{file.name}"
    if file.url.startswith(HUB) and (endpoint := _server("HF_ENDPOINT")):
        return endpoint + file.url.removeprefix(HUB)
    return file.url


def _server(variable: str) -> str | None:
    """The address in an environment variable, None where it is not set."""
    address = os.environ.get(variable, "").strip().rstrip("/")
    if address and not address.startswith(("http://", "https://")):
        raise BadInput(f"{variable} is {address!r}: it must begin with http:// or https://.")
    return address or None


def _get_file(file: RemoteFile, url: str, target: Path, progress: Progress | None) -> Path:
    record = target.with_name(target.name + ".sha256")
    expected = file.sha256 or _recorded(record)
    if target.is_file():
        found = _sha256(target)
        if expected not in (None, found):
            raise MemogradError(
                f"The file {target} is not the one that is meant (sha256 {found}, not {expected}):"
                " delete it to fetch it again."
            )
    else:
        part = target.with_name(target.name + ".part")
        if file.size is not None:
            _need_room(part, file.size)
        found = _fetch(file, url, target, part, expected, progress)
        os.replace(part, target)
    if expected is None:
        record.write_text(f"{found}  {target.name}\n", encoding="utf-8")  # as `sha256sum -c` reads
    return target


def _fetch(
    file: RemoteFile,
    url: str,
    target: Path,
    part: Path,
    expected: str | None,
    progress: Progress | None,
) -> str:
    """Bring the whole file to `part` and return its checksum."""

    def told(done: int, total: int | None) -> None:
        if progress:
            progress(file.name, done, total)

    by_hand = f"fetch {file.url} by hand into {target}, or name a mirror in {MIRROR}"
    try:
        transfer(url, part, told)
    except Unfinished as error:
        raise MemogradError(f"{url} cannot be fetched ({error}): {by_hand}.") from None
    found = _sha256(part)
    if expected not in (None, found):
        part.unlink()
        if file.sha256:
            blame = "it was damaged on the way, or the server has another file: run it again, or"
        else:
            blame = f"it has changed since {target.name}.sha256 was recorded: delete that, or"
        raise MemogradError(
            f"What came from {url} has the sha256 {found}, not {expected}; {blame} {by_hand}."
        )
    if expected is None and not _begins_as_it_should(part, target.suffix):
        part.unlink()
        raise MemogradError(
            f"What came from {url} is no {target.suffix[1:]} file, perhaps a page that asks to log"
            f" in: {by_hand}."
        )
    return found


def _need_room(part: Path, size: int) -> None:
    missing = size - (part.stat().st_size if part.is_file() else 0)
    if missing > shutil.disk_usage(part.parent).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(part))


def _begins_as_it_should(part: Path, suffix: str) -> bool:
    with part.open("rb") as opened:
        return opened.read(16).lstrip().startswith(BEGINNINGS[suffix])


def _recorded(record: Path) -> str | None:
    """The checksum that an earlier download wrote."""
    if not record.is_file():
        return None
    match = re.match(r"[0-9a-f]{64}(?=\s)", record.read_text(encoding="utf-8", errors="replace"))
    if match is None:
        raise MemogradError(f"The file {record} holds no checksum: delete it.")
    return match[0]


def _sha256(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
