"""Which of the two languages a text is in, told by its script.

Invariant: a Chinese sentence stays Chinese when it names brands or people in Latin letters, and an
English one stays English when it quotes a Chinese word (`tests/memory/test_statements.py`).
"""

from __future__ import annotations

import re
from typing import Literal

Language = Literal["en", "zh"]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'’-]*")


def chinese_characters(text: str) -> int:
    """How many Chinese characters the text has."""
    return len(_HAN.findall(text))


def language_of(text: str) -> Language:
    """`zh` if the text has at least as many Chinese characters as Latin words, else `en`."""
    han = chinese_characters(text)
    return "zh" if han and han >= len(_LATIN_WORD.findall(text)) else "en"
