"""One file over HTTP into a `.part` file, going on where an earlier attempt stopped.

The states of an attempt, as the server's answer decides:

    206 and the range that was asked for   the same file: what comes is appended
    200                                    another file, or no ranges: begin anew
    416                                    nothing is left of the same file: done; else begin anew
    408, 429, 5xx, no connection, cut off  wait and try again, from where it is now
    anything else                          give up

`If-Range` makes the server choose between the first two. It needs the strong ETag or the date that
came with the first bytes, which is kept as `NAME.part.version`; without it a part is not trusted.

Invariant: when `transfer` returns, the part holds as many bytes as the server announced, all of one
version. Standard library only.
"""

from __future__ import annotations

import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Final

ATTEMPTS: Final = 5  # in a row without a new byte
FIRST_PAUSE: Final = 0.5  # seconds, doubled with every attempt
LONGEST_PAUSE: Final = 30.0
TIMEOUT: Final = 30.0  # seconds without a byte
BLOCK: Final = 1 << 18
TRY_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})

Told = Callable[[int, int | None], None]
Answer = http.client.HTTPResponse | urllib.error.HTTPError


class Unfinished(Exception):
    """The file did not come; the message says why in a few words."""


def transfer(url: str, part: Path, told: Told) -> None:
    """Bring all of the file to `part`; `told` hears how many bytes are there, and of how many.

    Raises Unfinished when the server says no or five attempts in a row bring nothing, and OSError
    when `part` cannot be written.
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
                raise Unfinished(f"{trouble}, {ATTEMPTS} times") from None
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
            raise Unfinished(reason) from None
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
