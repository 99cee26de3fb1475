"""What both answer metrics do to text before their own rules begin.

The published metrics split on blanks, so a Chinese sentence would be one token and a correct answer
with one more character would score 0. Our only extension to them: in a text with CJK writing, every
Han character and every kana is a token of its own, full-width forms become their ASCII twins, and
CJK punctuation separates. A text without CJK writing comes back unchanged, so the official numbers
on English data stay the official numbers. Korean keeps its blanks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import regex

from memograd.errors import BadInput

_CJK_CHARACTER = r"[\p{Han}\p{Hiragana}\p{Katakana}ー]"
_CJK_WRITING = regex.compile(rf"{_CJK_CHARACTER}|[\u3001-\u303f\uff01-\uffef]")
_CHARACTER = regex.compile(_CJK_CHARACTER)
_WIDE_PUNCTUATION = regex.compile(r"(?![\x00-\x7f])\p{P}")


def separate_cjk(text: str) -> str:
    """Put blanks around every CJK character; a text without CJK writing is returned as it is.

    CJK writing is a Han character, a kana, or CJK or full-width punctuation.
    `"2023年5月7日，北京。"` becomes the blank-separated tokens `2023 年 5 月 7 日 北 京`.
    """
    if not _CJK_WRITING.search(text):
        return text
    without_punctuation = _WIDE_PUNCTUATION.sub(" ", text)
    folded = unicodedata.normalize("NFKC", without_punctuation)
    return str(_CHARACTER.sub(r" \g<0> ", folded))


def require_texts(name: str, values: Sequence[object]) -> None:
    """Raise `BadInput` that names the first value which is not a string."""
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise BadInput(
                f"`{name}` must hold texts; entry {index} is {type(value).__name__} ({value!r})."
            )
