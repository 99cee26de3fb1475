"""Reading a `.env` file: `NAME=value` a line, quotes and comments as every other tool reads them.

Values are taken as they are written, without expanding `${...}`, so that a password may hold any
character. Other programs keep their variables in the same file, so all names are returned.
Invariant: a line that means nothing is an error with its number, never skipped. Imports errors;
python-dotenv when a file is read.
"""

from __future__ import annotations

from pathlib import Path

from memograd.errors import BadInput


def read_dotenv(file: Path) -> dict[str, str]:
    """The variables in `file`; the last of two lines with one name counts.

    Raises BadInput when the file cannot be read or a line is not `NAME=value`.
    """
    from dotenv.parser import parse_stream

    try:
        with file.open(encoding="utf-8-sig") as stream:
            lines = list(parse_stream(stream))
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"The environment file {file} cannot be read: {reason}.") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"The environment file {file} is not UTF-8 text: {error}.") from None
    for line in lines:
        if line.error:
            raise BadInput(
                f"Line {line.original.line} of the environment file {file} is not NAME=value."
            )
    return {line.key: line.value for line in lines if line.key and line.value is not None}
