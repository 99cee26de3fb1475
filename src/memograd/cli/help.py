"""What the help of every command ends with: examples, and what the exit codes mean.

Imports nothing. Tested in `tests/test_cli.py`.
"""

from __future__ import annotations

EXIT_CODES = """\
\b
Exit codes:
  0    done
  1    a failure (the message says what happened)
  2    the input is wrong (one sentence says what to change)
  130  interrupted"""


def epilog(*paragraphs: str) -> str:
    """The paragraphs with their line breaks, then the exit codes."""
    # \b keeps the line breaks of the paragraph that it begins.
    return "\n\n".join([*("\b\n" + paragraph for paragraph in paragraphs), EXIT_CODES])
