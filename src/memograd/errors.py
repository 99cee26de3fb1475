"""The kinds of failure a user can meet, and the one for a package that is missing.

`BadInput` is the caller's to mend: one sentence that says what is wrong, where, and what to do; the
command line prints it and exits with 2. `Stopped` says that a signal ended the work and what was
made safe (128 + the signal's number), `Unfinished` that something is done but for a rest.
`MemogradError` is any other failure that we can explain (exit code 1). Everything else is a bug and
keeps its traceback.
"""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Iterable
from typing import Final


class MemogradError(Exception):
    """A failure that one sentence explains; the message is that sentence."""

    exit_code = 1


class BadInput(MemogradError, ValueError):
    """The input is wrong; the message says what, where, and what to do about it."""

    exit_code = 2


class Unfinished(MemogradError):
    """What was asked for is done, but for what the message names; asking again would find nothing
    to do."""


class Stopped(MemogradError):
    """A signal ended the work after it was made safe; the message says how to go on."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


RAISED_BY_USERS: Final = (Exception, SystemExit)
"""What the code that a user brings is caught with: a `sys.exit()` in it would end a run as if it
were done, or the thread that others wait for."""


def place_in(file: str | None, error: BaseException) -> str:
    """` in FILE line N`, the last line of that file on the way to the error; empty if it is on
    none."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return f" in {file} line {lines[-1]}" if lines else ""


def need_packages(who: str, packages: Iterable[str], extra: str) -> None:
    """Raise BadInput, naming those that are missing, where packages of an extra are not there."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise BadInput(f"{who} needs {', '.join(missing)}: pip install 'memograd[{extra}]'.")
