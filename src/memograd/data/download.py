"""Fetching the files of a public data set: resumed, checked, and whole or not there at all.

A file grows as `NAME.part`; when all of it is there and its checksum is right it is renamed, so a
file under its own name is always whole. An interrupted download goes on where it stopped, if the
server still has the same file, else it begins anew. Where the catalogue knows no checksum, the
first download records its own in `NAME.sha256`, and later ones are held to it: that shows a change,
not that the first one was right.

`MEMOGRAD_DATA_MIRROR` names a server that holds `<data set>/<file>`, as this module lays them out
on disk, in place of the makers' own. `HF_ENDPOINT` replaces https://huggingface.co, as elsewhere.

What an attempt to go on means is decided by the server's answer:

    206 and the range that was asked for   the same file: what comes is appended
    200                                    another file, or no ranges: begin anew
    416                                    nothing is left of the same file: done; else begin anew
    408, 429, 5xx, no connection, cut off  wait and try again, from where it is now
    anything else                          give up

`If-Range` makes the server choose between the first two. It needs the strong ETag or the date that
came with the first bytes, which is kept as `NAME.part.version`; without it a part is not trusted.

Invariants: no failure leaves a wrong file under the right name; whatever interrupts a download, the
next one ends with the same bytes; when `transfer` returns, the part holds as many bytes as the
server announced, all of one version.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from memograd.data.catalogue import HUB, RemoteFile, data_set
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
    sources = [(file, _address(name, file)) for file in wanted.files]
    target = Path(folder) / name
    try:
        target.mkdir(parents=True, exist_ok=True)
        with FileLock(target / ".lock").acquire(timeout=0):
            return [
                _get_file(file, address, target / file.name, progress) for file, address in sources
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
    except TransferFailed as error:
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


ATTEMPTS: Final = 5  # in a row without a new byte
FIRST_PAUSE: Final = 0.5  # seconds, doubled with every attempt
LONGEST_PAUSE: Final = 30.0
TIMEOUT: Final = 30.0  # seconds without a byte
BLOCK: Final = 1 << 18
TRY_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})

Told = Callable[[int, int | None], None]
Answer = http.client.HTTPResponse | urllib.error.HTTPError


class TransferFailed(Exception):
    """The file did not come; the message says why in a few words."""


def transfer(url: str, part: Path, told: Told) -> None:
    """Bring all of the file to `part`; `told` hears how many bytes are there, and of how many.

    Raises TransferFailed when the server says no or five attempts in a row bring nothing, and
    OSError when `part` cannot be written.
    """
    failures, most = 0, _size(part)
    while True:
        try:
            _attempt(url, part, told)
            return
        except _TryAgain as trouble:
            failures = 1 if _size(part) > most else failures + 1
            most = max(most, _size(part))
            if failures == ATTEMPTS:
                raise TransferFailed(f"{trouble}, {ATTEMPTS} times") from None
            wait = FIRST_PAUSE * 2 ** (failures - 1) if trouble.after is None else trouble.after
            time.sleep(min(wait, LONGEST_PAUSE))


class _TryAgain(Exception):
    """It may work in a moment. after: seconds to wait, where the server says so."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


def _attempt(url: str, part: Path, told: Told) -> None:
    version = part.with_name(part.name + ".version")
    start = _size(part) if version.is_file() else 0
    headers = {"User-Agent": "memograd", "Accept-Encoding": "identity"}
    if start:
        headers |= {"Range": f"bytes={start}-", "If-Range": version.read_text(encoding="utf-8")}
    with _open(url, headers) as answer:
        if answer.status == 416:
            if not start or answer.headers.get("Content-Range") != f"bytes */{start}":
                _forget(part, version)
                raise _TryAgain("the file has another size now")
            version.unlink()
        else:
            if answer.status == 206 and _range_start(answer.headers) != start:
                _forget(part, version)
                raise _TryAgain("the server sent another range")
            _write(answer, part, version, start if answer.status == 206 else 0, told)


def _open(url: str, headers: dict[str, str]) -> Answer:
    """The server's answer: 200, 206 or 416."""
    try:
        request = urllib.request.Request(url, headers=headers)
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT)
        return answer
    except urllib.error.HTTPError as error:
        if error.code == 416:
            return error
        error.close()
        reason = f"the server answers {error.code} {error.reason}"
        if error.code not in TRY_AGAIN:
            raise TransferFailed(reason) from None
        after = error.headers.get("Retry-After", "")
        raise _TryAgain(reason, float(after) if after.isdecimal() else None) from None
    except urllib.error.URLError as error:
        raise _TryAgain(str(error.reason)) from None
    except (http.client.HTTPException, OSError) as error:
        raise _TryAgain(str(error) or type(error).__name__) from None


def _write(answer: Answer, part: Path, version: Path, start: int, told: Told) -> None:
    """Append what comes, or begin anew at 0; `version` is there before the first byte is."""
    announced = answer.headers.get("Content-Length")
    total = None if announced is None else start + int(announced)
    if not start:
        _forget(part, version)
        if name := _version(answer.headers):
            version.write_text(name, encoding="utf-8")
    done = start
    with part.open("ab") as opened:
        told(done, total)
        while block := _read(answer):
            opened.write(block)
            done += len(block)
            told(done, total)
        opened.flush()
        os.fsync(opened.fileno())
    if total is not None and done != total:
        raise _TryAgain(f"the connection was cut off after {done} of {total} bytes")
    version.unlink(missing_ok=True)


def _read(answer: Answer) -> bytes:
    try:
        return answer.read(BLOCK)
    except (http.client.HTTPException, OSError) as error:
        raise _TryAgain(str(error) or type(error).__name__) from None


def _version(headers: Message) -> str | None:
    """What `If-Range` takes: a strong ETag, else the date of the last change."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified")


def _range_start(headers: Message) -> int | None:
    match = re.match(r"bytes (\d+)-", headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _forget(part: Path, version: Path) -> None:
    part.unlink(missing_ok=True)
    version.unlink(missing_ok=True)


def _size(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0
