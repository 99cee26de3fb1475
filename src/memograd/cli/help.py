"""What the help of every command ends with: settings, examples, and what the exit codes mean.

Imports config.
"""

from __future__ import annotations

from memograd.config import TrainConfig, known_settings
from memograd.config.settings import Settings

EXIT_CODES = """\
\b
Exit codes:
  0    done
  1    a failure (the message says what happened)
  2    the input is wrong (one sentence says what to change)
  130  interrupted
  143  asked to end (SIGTERM)"""


def epilog(*paragraphs: str) -> str:
    """The paragraphs with their line breaks, then the exit codes."""
    # \b keeps the line breaks of the paragraph that it begins.
    return "\n\n".join([*("\b\n" + paragraph for paragraph in paragraphs), EXIT_CODES])


def setting_lines(kind: type[Settings] = TrainConfig) -> str:
    """Every setting of a command with its default and what it means."""
    lines = ["Settings (key=value, with their defaults):"]
    for key, field in known_settings(kind).items():
        listed = isinstance(field.default, list)
        default = ",".join(map(str, field.default)) if listed else field.default
        meaning = " ".join((field.description or "").split())
        lines += [f"  {key}={'none' if default is None else default}", f"      {meaning}"]
    return "\n".join(lines)
