"""What the note at the end of an item's text says of it: that it is over, or in doubt.

Managers write the notes (`manager/past.py`); searches, writers and pages ask for them, and may not
know managers. Pure.
"""

from __future__ import annotations

import re
from typing import Final

_OVER: Final = re.compile(
    r" \(until [^();]{4,40}(?:; formerly: .+)?\)[.!?]?$"
    r"|（至[^（）；]{4,20}为止，现已不再(?:；此前：.+)?）[。！？]?$",
    re.S,
)
_DOUBTED: Final = re.compile(r"\(perhaps no longer[^()]*\)[.!?]?$|或已不再）[。！？]?$")


def is_past(text: str) -> bool:
    """Whether the item only says what was so."""
    return _OVER.search(text) is not None


def is_doubted(text: str) -> bool:
    """Whether the item says that it may be so no longer."""
    return _DOUBTED.search(text) is not None
