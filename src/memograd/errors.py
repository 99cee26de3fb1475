"""The two kinds of failure a user can meet, and nothing else.

`BadInput` is the caller's to mend: one sentence that says what is wrong, where, and what to do; the
command line prints it and exits with 2. `MemogradError` is any other failure that we can explain
(exit code 1). Everything else is a bug and keeps its traceback. May import nothing; how the command
line maps them is tested in `tests/test_cli.py`.
"""

from __future__ import annotations


class MemogradError(Exception):
    """A failure that one sentence explains; the message is that sentence."""


class BadInput(MemogradError):
    """The input is wrong; the message says what, where, and what to do about it."""
