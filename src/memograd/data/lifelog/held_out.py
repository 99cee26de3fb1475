"""Which questions of people's feedback judge what was learnt, and are never learnt from.

Invariant: by the text alone, case, width, spaces and punctuation aside; so the same question is on
the same side however often it is asked, and whatever comes later.
"""

from __future__ import annotations

import hashlib
import unicodedata

HASHED = 10_000


def is_held_out(question: str, share: float) -> bool:
    """Whether the question is among the `share` (0 to 1) that is held out, by a hash of it."""
    digest = hashlib.sha256(_asked(question).encode()).digest()
    return int.from_bytes(digest[:8], "big") % HASHED < share * HASHED


def _asked(question: str) -> str:
    """The question without what does not change it, so that asking again is the same question."""
    folded = unicodedata.normalize("NFKC", question).casefold()
    return "".join(letter for letter in folded if letter.isalnum()) or folded
