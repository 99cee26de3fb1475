"""How an answer is written: its form, length, repetition, connectives and keywords.

Each score is a pure function of one completion (and of the row's column that it names). Parameters
after the star are settings of a run: `length(low=40, high=60)`. Invariant: scores lie in [0, 1],
the penalty in [-1, 0], for any text; a Chinese text is measured in characters where an English one
is in words.
"""

from __future__ import annotations

import regex

from memograd.errors import BadInput
from memograd.rewards.words import has_phrase, words

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
