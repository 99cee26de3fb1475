"""The one door to the two parsers.

Invariant: text that no form fits gives None, never a guess, and never an exception.
"""

from __future__ import annotations

import unicodedata

from memograd.memory.language import language_of, simplified
from memograd.memory.statements.chinese import parse_chinese
from memograd.memory.statements.english import parse_english
from memograd.memory.statements.statement import Statement

LONGEST = 300  # characters; a longer text is a story, not a statement


def parse_statement(text: str) -> Statement | None:
    """What the sentence says, if it has one of the typical forms of its language."""
    text = simplified(unicodedata.normalize("NFKC", text)).replace("’", "'").strip()
    if not text or len(text) > LONGEST:
        return None
    return parse_chinese(text) if language_of(text) == "zh" else parse_english(text)
