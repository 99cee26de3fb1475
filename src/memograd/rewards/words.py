"""Words of a text in any writing, for the scores that count or compare them.

A Han character or a kana is a word of its own (they are written without blanks); every other
script gives words by its letters and digits. Full-width forms and capitals are folded (NFKC, case).

Invariant: a function of the text alone; a Chinese sentence is never one word.
"""

from __future__ import annotations

import unicodedata

import regex

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
