"""Which language a text is in, and about how many tokens it costs.

Both look at characters only, so they need no model. Invariant: a text is Chinese if it has more
Chinese characters than Latin words (`tests/memory/test_context.py`). Standard library only.
"""

from __future__ import annotations

import re

_CHINESE_CHARACTER = re.compile(r"[\u3400-\u9fff]")
_LATIN_WORD = re.compile(r"[A-Za-z]+")


def is_chinese(text: str) -> bool:
    """Whether the text has more Chinese characters than Latin words."""
    return len(_CHINESE_CHARACTER.findall(text)) > len(_LATIN_WORD.findall(text))


def estimate_tokens(text: str) -> int:
    """About how many tokens a language model makes of the text: its UTF-8 bytes by 3, rounded up.

    English has some four bytes a token and Chinese three to five, so the estimate is rather too
    high than too low.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)
