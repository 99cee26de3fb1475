"""JSON on one line, whoever counts the lines.

JSON escapes the line breaks of ASCII. Unicode has three more, and readers who cut a stream into
lines by them (`str.splitlines`, so httpx's `iter_lines` too) would find half an object, and a model
a line that nobody wrote. Invariants: no reader finds a line break in it; it says the same as JSON.
"""

from __future__ import annotations

import json
from typing import Any, Final

_BREAKS: Final = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"})


def json_line(value: Any) -> str:
    """The value as JSON without a line break; other scripts stand as they are."""
    return json.dumps(value, ensure_ascii=False).translate(_BREAKS)
