"""The right value of a message that names the wrong one: "Tuesday, not Monday", 不是上海是深圳.

Invariant: of the statement only the value that the message denies changes, or the answer is None.
Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memograd.memory.manager.fitted import put
from memograd.memory.reader.screen_english import is_reaction
from memograd.memory.statements.value_types import next_word

LONGEST: Final = 140  # characters; what goes on longer says more than a value
_OOPS: Final = re.compile(
    r"^(?:\W*\b(?:my bad|excuse me|sorry|oops|whoops|no|nope|wait|actually|ah|oh|hang on)\b"
    r"[\s,.!]*)+",
    re.I,
)
# "Leeds. York is where his girlfriend is": the old value is of something else.
_OF_ANOTHER: Final = (
    r"^(?:(?:ugh|argh|gah|er+m?|um+|hm+|ah|oh|well|yes|yeah|so|sorry|no|wait|oops)[\s,.!]+)*+"
    r"(?P<new>(?!the\b)[^\W\d_][\w'’-]+(?: [^\W\d_][\w'’-]*){0,2})[,.;!] "
    r"(?P<old>(?!the\b)[^\W\d_][\w'’-]+(?: [^\W\d_][\w'’-]*)?)"
    r"(?:'s| is| was) (?:where|what|who|his|her|my|their|our)\b",
    r"^(?:(?:额|呃|哦|噢|啊|诶|欸|哎呀?|不对|不對|不是|[错錯]了|[说說记記写寫打][错錯]了?)[\s，,。!！]*)*+"
    r"(?P<new>[^\s，,。!！是不没我你他她这那]{1,6})[\s，,。!！]+"
    r"(?P<old>[^\s，,。!！是]{1,6}?)那?[个边]?是(?!的|对|不|吧|啊)",
)


_DENYING: Final = (
    r"(?:^|[,.;:] |\bit's |\bit was |\bi mean(?:t)? "
    r"|\bis )(?P<new>(?:[\w'’ -]|(?<=\d)[.:](?=\d)){1,30}?),? not "
    r"(?P<old>(?:[\w'’ -]|(?<=\d)[.:](?=\d)){1,30}?)(?=$|[,.;!](?:\s|$))",
    r"(?<![\w.:])(?P<new>(?:[\w'’-]|(?<=\d)[.:](?=\d))+),? not (?:an? |the )?"
    r"(?P<old>(?:[\w'’-]|(?<=\d)[.:](?=\d))+)(?!\w)",
    r"\bnot (?P<old>[\w'’-]{1,25}(?: [\w'’-]+)?),? (?:but |it's |i meant? "
    r"|- )?(?P<new>[\w'’ -]{1,30})$",
    r"不是(?P<old>[^，,。]{1,10}?)[，,]?(?:而?是|应该是)(?P<new>[^，,。！!的了啦哈啊]{1,10})",
    r"(?:是|应该是)(?P<new>[^，,。]{1,10}?)[，,]?(?:不是|而不是)(?P<old>[^，,。！!]{1,10})",
    r"(?P<old>[^\s，,。❌✅]{1,12}) ?❌[\s，,]*(?P<new>[^\s，,。❌✅]{1,12}) ?✅",
    r"(?P<new>[^\s，,。❌✅]{1,12}) ?✅[\s，,]*(?P<old>[^\s，,。❌✅]{1,12}) ?❌",
    r"\bi (?:wrote|said|typed|put) (?:an? )?(?P<old>[\w'’-]+),? (?:but )?"
    r"(?:i meant|it['’]?s) (?:an? |the )?"
    r"(?P<new>[\w'’ -]{2,30}?)(?=[.!,]|$)",
    r"\bdid i say (?P<old>[\w'’ -]{2,30})\?.*?\b(?:it|that|s?he|they|i)(?:['’]?s|['’]re| is"
    r"| meant?) (?:an? |the )?(?P<new>[\w'’ -]{2,30})(?=[.!,]|$)",
)


def instead_of_named(
    old: str, message: str, patterns: Sequence[str] = (*_DENYING, *_OF_ANOTHER)
) -> str | None:
    """ "Tuesday, not Monday", "not Anna, Hanna", 不是上海是深圳: where the old one is named."""
    said = _OOPS.sub("", message.strip(" .!。！*~"))
    for pattern in patterns:
        for found in re.finditer(pattern, said, re.I):
            span = _place_of(found["old"].strip(), old)
            new = _SAYS_SO.sub("", found["new"].strip())
            if not (span and new) or is_reaction(new) or _NO_WORD.fullmatch(new):
                continue
            behind = next_word(old, span[1])
            bare = re.sub(rf"(?<=\w) {re.escape(behind)}$", "", new, flags=re.I) if behind else new
            if bare != new:
                return put(old, span, bare)  # the Ash Room, of the Elm Room
            if found["old"][:1].isupper() and old[: span[0]].endswith(("The ", "the ")):
                span = (span[0] - 4, span[1])  # "Harvey Norman, not Good Guys" of The Good Guys
            return put(old, span, new)
    return None


_SAYS_SO: Final = re.compile(r"[\s,]+(?:i (?:mean|meant)|sorry|actually|lol)$", re.IGNORECASE)
_NO_WORD: Final = re.compile(
    r"(?:i )?(?:mean|meant|do|am|is|was|it|its|it's|that|said)", re.IGNORECASE
)


def _place_of(value: str, text: str) -> tuple[int, int] | None:
    """Where a text has a value: not the 5 of 15, but the year 1884 for '84."""
    short = re.fullmatch(r"['’‘]?(\d\d)", value)
    year = rf"|\b(?:1\d|20){short[1]}\b" if short else ""
    first, last = value[:1], value[-1:]
    edge = (
        r"(?<!\d)" if first.isdigit() else r"(?<![A-Za-z])" if first.isascii() else "",
        r"(?!\d)" if last.isdigit() else r"(?![A-Za-z])" if last.isascii() else "",
    )
    found = re.search(re.escape(value).join(edge) + year, text, re.IGNORECASE)
    return found.span() if found and value else None


def names_the_old(old: str, message: str) -> bool:
    """Whether a short message names the value that it corrects, and the right one beside it."""
    return len(message) <= LONGEST and instead_of_named(old, message) is not None


def named_right(old: str, message: str) -> str | None:
    """The statement with the right value of a short message that denies the wrong one: "2019 not
    2009"."""
    return instead_of_named(old, message, _DENYING) if len(message) <= LONGEST else None
