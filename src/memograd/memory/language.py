"""Which language a text is in, and about how many tokens it costs.

Both look at characters only, so they need no model. Invariant: a Chinese sentence stays Chinese
when it names brands or people in Latin letters, and an English one stays English when it quotes a
Chinese word (`tests/memory/test_statements.py`, `tests/memory/test_context.py`). Standard library
only.
"""

from __future__ import annotations

import re
from typing import Literal

Language = Literal["en", "zh"]

_CHINESE_CHARACTER = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'’-]*")


def language_of(text: str) -> Language:
    """`zh` if the text has at least as many Chinese characters as Latin words, else `en`."""
    chinese = len(_CHINESE_CHARACTER.findall(text))
    return "zh" if chinese and chinese >= len(_LATIN_WORD.findall(text)) else "en"


def is_chinese(text: str) -> bool:
    """Whether the text is Chinese, by `language_of`."""
    return language_of(text) == "zh"


def estimate_tokens(text: str) -> int:
    """About how many tokens a language model makes of the text: its UTF-8 bytes by 3, rounded up.

    English has some four bytes a token and Chinese three to five, so the estimate is rather too
    high than too low.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)
