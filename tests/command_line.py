"""The command line as a user meets it: an exit code, and what was printed."""

from __future__ import annotations

import pytest

from memograd.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run `memograd ...`; returns the exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return int(exit_.value.code or 0), shown.out, shown.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run `memograd ...`, which must be refused; returns the sentence."""
    code, _, error = run(capsys, *arguments)
    assert code == 2
    assert error.startswith("memograd: ") and len(error.splitlines()) == 1
    return error
