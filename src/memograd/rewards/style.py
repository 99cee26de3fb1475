"""How an answer is written: its form, length, language, repetition, connectives and keywords.

Each score is a pure function of one completion (and of the row's column that it names). Parameters
after the star are settings of a run: `length(low=40, high=60)`.

Language means script: 中文 against English is seen, German against English is not. Words are
counted by `words`, a Han character one and a Latin word one, so a Chinese answer that names a brand
in Latin letters keeps nearly all of its score; numbers and punctuation belong to all.

Invariants: scores lie in [0, 1], the penalty in [-1, 0], for any text; a Chinese text is measured
in characters where an English one is in words; a text of one script alone scores 1 for it and 0 for
the others.
"""

from __future__ import annotations

from collections import Counter

import regex

from memograd.errors import BadInput
from memograd.rewards.matching import has_phrase, words

_INSIDE = r"(?:(?!</?(?:think|answer)>).)*"
THINK_AND_ANSWER = rf"\s*<think>{_INSIDE}</think>\s*<answer>{_INSIDE}</answer>\s*"
"""One thought, then one answer, each tag once and nothing around them."""

CONNECTIVES = (
    *("因为", "所以", "然而", "但是", "首先", "其次"),
    *("最后", "因此", "此外", "例如", "总之", "不过"),
    *("because", "therefore", "however", "but", "first", "second", "finally", "thus", "moreover"),
    *("for example", "in addition", "in summary", "so"),
)
"""Words that lead from one thought to the next, in Chinese and English."""


def format_match(completion: str, *, pattern: str = THINK_AND_ANSWER) -> float:
    """1 if the whole completion matches the regular expression `pattern`, else 0.

    A dot in it matches line breaks too. The default is `<think>..</think><answer>..</answer>`.
    """
    try:
        matched = regex.fullmatch(pattern, completion, regex.DOTALL | regex.VERSION1)
    except regex.error as error:
        raise BadInput(f"the pattern {pattern!r} is no regular expression ({error})") from error
    return float(matched is not None)


def length(completion: str, *, low: int = 50, high: int = 50) -> float:
    """1 for `low` to `high` words, falling linearly to 0 at no words and at twice `high`.

    With `low == high == target` this is 1 - |words - target| / target, not below 0.
    """
    if not 1 <= low <= high:
        raise BadInput(f"length needs 1 <= low <= high, not low={low}, high={high}")
    count = len(words(completion))
    if count < low:
        return count / low
    return max(0.0, 1.0 - max(0, count - high) / high)


def repetition_penalty(completion: str, *, n: int = 3) -> float:
    """Minus the share of n-grams of words that repeat an earlier one, in (-1, 0].

    0 for a text of at most n words. As in Yeo et al. 2025 (arXiv:2502.03373), as one number for the
    whole completion.
    """
    if n < 1:
        raise BadInput(f"repetition_penalty needs n of at least 1, not n={n}")
    found = words(completion)
    grams = [tuple(found[at : at + n]) for at in range(len(found) - n + 1)]
    return len(set(grams)) / len(grams) - 1.0 if grams else 0.0


def coherence(
    completion: str, *, connectives: list[str] | tuple[str, ...] = CONNECTIVES, each: float = 0.2
) -> float:
    """`each` for every different connective that occurs, at most 1."""
    return min(1.0, each * sum(has_phrase(completion, word) for word in connectives))


def keyword_coverage(completion: str, keywords: str | list[str]) -> float:
    """Share of the row's `keywords` (a list, or one text) that occur in the completion."""
    wanted = [keywords] if isinstance(keywords, str) else keywords
    if not isinstance(wanted, list) or not all(isinstance(k, str) and k.strip() for k in wanted):
        raise BadInput(f"the column keywords must be a list of texts, not {keywords!r}")
    if not wanted:
        raise BadInput("the column keywords is an empty list; leave it out where there are none")
    return sum(has_phrase(completion, keyword) for keyword in wanted) / len(wanted)


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
