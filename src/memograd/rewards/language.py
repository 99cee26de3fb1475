"""Does the answer stay in one language: the share of its words that are in the expected script.

Scripts, not languages: 中文 against English is seen, German against English is not. Words are
counted as in `words`, a Han character one and a Latin word one, so a Chinese answer that names a
brand in Latin letters keeps nearly all of its score; numbers and punctuation belong to all.

Invariant: a text of one script alone scores 1 for it and 0 for the others.
"""

from __future__ import annotations

from collections import Counter

import regex

from memograd.errors import BadInput
from memograd.rewards.words import words

SCRIPTS = {
    "zh": r"\p{Han}",
    "ja": r"\p{Han}\p{Hiragana}\p{Katakana}",
    "ko": r"\p{Hangul}",
    "en": r"\p{Latin}",
    "ru": r"\p{Cyrillic}",
    "ar": r"\p{Arabic}",
    "el": r"\p{Greek}",
    "he": r"\p{Hebrew}",
    "hi": r"\p{Devanagari}",
    "th": r"\p{Thai}",
}
"""Language -> the characters that its words are written in."""

_LETTER = regex.compile(r"\p{L}")


def language_consistency(completion: str, prompt: str, *, language: str = "prompt") -> float | None:
    """Share of the words with letters that are in the script of `language`, in [0, 1].

    `language`: one of `SCRIPTS`, or "prompt" for the one that most of the prompt is in. A blank
    completion scores 0; one of numbers and signs alone scores 1. None if the prompt should tell and
    has no letters of a known script.
    """
    if language == "prompt":
        expected = _language_of(prompt)
        if expected is None:
            return None
        language = expected
    elif language not in SCRIPTS:
        raise BadInput(
            f'language_consistency knows no language "{language}"; it is one of '
            f"{', '.join(SCRIPTS)}, or prompt"
        )
    lettered = [word for word in words(completion) if _LETTER.search(word)]
    if not lettered:
        return float(bool(completion.strip()))
    return sum(_is_in(word, language) for word in lettered) / len(lettered)


def _language_of(text: str) -> str | None:
    """The language whose script most words of the text are in; None where there is none."""
    counts = Counter(name for word in words(text) for name in SCRIPTS if _is_in(word, name))
    # Japanese has every Chinese character too: it must have kana to be more than Chinese.
    return max(SCRIPTS, key=lambda name: (counts[name], name == "zh")) if counts else None


def _is_in(word: str, language: str) -> bool:
    return bool(regex.search(f"[{SCRIPTS[language]}]", word))
