"""Words of a text in any writing, for the scores that count or compare them.

A Han character or a kana is a word of its own (they are written without blanks); every other
script gives words by its letters and digits. Full-width forms and capitals are folded (NFKC, case).

The published answer metrics split on blanks instead, so a Chinese sentence would be one token and a
correct answer with one more character would score 0. Our only extension to them (`separate_cjk`):
in a text with CJK writing, every Han character and every kana is a token of its own, full-width
forms become their ASCII twins, and CJK punctuation separates. A text without CJK writing comes back
unchanged, so the official numbers on English data stay the official numbers. Korean keeps its
blanks.

Invariant: a function of the text alone; a Chinese sentence is never one word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import regex

from memograd.errors import BadInput

_WORD = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}]"
    r"|[[\p{L}\p{M}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}]]+(?:['’][\p{Latin}]+)*",
    regex.VERSION1,
)
_JOINED = r"[[\p{L}\p{N}_]--[\p{Han}\p{Hiragana}\p{Katakana}]]"


def folded(text: str) -> str:
    """The text in one form: full width as half width, small letters, single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def words(text: str) -> list[str]:
    """The words of `text`, folded, in their order."""
    return [str(word) for word in _WORD.findall(folded(text))]


def has_phrase(text: str, phrase: str) -> bool:
    """Whether the folded text has the phrase, not as a piece of a longer Latin word.

    因此 is found anywhere; "so" is not found in "sofa".
    """
    wanted = regex.escape(folded(phrase), literal_spaces=True)
    pattern = rf"(?<!{_JOINED}(?={_JOINED})){wanted}(?!(?<={_JOINED}){_JOINED})"
    return bool(wanted) and bool(regex.search(pattern, folded(text), regex.VERSION1))


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
    half_width = unicodedata.normalize("NFKC", without_punctuation)
    return str(_CHARACTER.sub(r" \g<0> ", half_width))


def require_texts(name: str, values: Sequence[object]) -> None:
    """Raise `BadInput` that names the first value which is not a string."""
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise BadInput(
                f"`{name}` must hold texts; entry {index} is {type(value).__name__} ({value!r})."
            )
