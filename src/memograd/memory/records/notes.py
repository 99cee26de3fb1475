"""What the note in an item's text says of it: that it is over, or in doubt.

Managers write the notes (`manager/past.py`); searches, writers and pages ask for them, and may not
know managers. Pure.
"""

from __future__ import annotations

import re
from typing import Final

_OVER: Final = re.compile(
    r" \(until [^();]{4,40}(?:; formerly: .+)?\)[.!?]?$"
    r"|（至[^（）；]{2,20}为止，现已不再(?:；此前：.+)?）[。！？]?$",
    re.S,
)
_DOUBTED: Final = re.compile(r"\(perhaps no longer[^()]*\)[.!?]?$|或已不再）[。！？]?$")
_DAY: Final = r"(?:lately|\d{1,2} [A-Z][a-z]{2,8} \d{4})"
_OVER_IN_MIDST: Final = rf" \(until {_DAY}\)(?=[,; ])"
_DOUBTED_IN_MIDST: Final = rf" \(perhaps no longer, since {_DAY}\)(?=[,; ])"
IN_MIDST: Final = re.compile(f"{_OVER_IN_MIDST}|{_DOUBTED_IN_MIDST}")
"""A note behind which the text goes on about what is over or in doubt."""


def is_past(text: str) -> bool:
    """Whether the item only says what was so."""
    return _OVER.search(text) is not None or re.search(_OVER_IN_MIDST, text) is not None


def is_doubted(text: str) -> bool:
    """Whether the item says that it may be so no longer."""
    return _DOUBTED.search(text) is not None or re.search(_DOUBTED_IN_MIDST, text) is not None
