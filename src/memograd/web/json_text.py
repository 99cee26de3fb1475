"""JSON that every reader takes alike: how deep it may be, how many values it holds, on one line.

Readers and writers of JSON give up at some depth, each at its own. What one of them took and
another one cannot write would then stand in the way of everything that is told together with it.
A body of a few megabytes can hold millions of values; to check each of them, and to tell what is
wrong with it, holds up everybody else for a minute.

JSON escapes the line breaks of ASCII. Unicode has three more, and readers who cut a stream into
lines by them (`str.splitlines`, so httpx's `iter_lines` too) would find half an object, and a model
a line that nobody wrote. Invariants: no reader finds a line break in a `json_line`; it says the
same as JSON.
"""

from __future__ import annotations

import json
from typing import Any, Final

DEEPEST: Final = 100
"""Objects and lists within each other."""

MOST_VALUES: Final = 50_000
"""Members of all objects and lists of a body: a batch of a thousand memories has ten thousand."""


def too_many(value: Any) -> bool:
    """Whether the objects and lists of a JSON value have more than `MOST_VALUES` members."""
    count, level = 0, [value]
    while level:
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict | list):
                count += len(one)
                if count > MOST_VALUES:
                    return True
                below += one.values() if isinstance(one, dict) else one
        level = below
    return False


def too_deep(value: Any) -> bool:
    """Whether more than `DEEPEST` objects and lists of a JSON value stand within each other."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return False
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return True


_BREAKS: Final = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"})


def json_line(value: Any) -> str:
    """The value as JSON without a line break; other scripts stand as they are."""
    return json.dumps(value, ensure_ascii=False).translate(_BREAKS)
