"""Which items a message says again, where its reader and its manager make nothing of it.

A reader finds no news in what was just said, so it gives no fact that a manager could find to be
known. The words tell it then: a sentence of the user that has all the words of an item says it, or
asks about it, and goes where the item goes.

Invariants: an item is told again only by a sentence with all its numbers, that denies as it does,
and that no other item says more of; what a new item says is not told again. It changes no item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from memograd.memory.analysis import analyse
from memograd.memory.language import is_chinese
from memograd.memory.manager.past import is_past, present
from memograd.memory.reader.sentences import split_sentences
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn
from memograd.memory.state import MemoryState
from memograd.memory.statements import wording
from memograd.memory.text_caches import of_texts

NEAREST: Final = 64  # items, by their words: one that is said whole is near
LEAST: Final = 2  # words that are enough within a longer sentence; of characters twice as many
_FRAME: Final = re.compile(r"^(?:User said|About [^:]{3,40}): |^(?:用户说|关于[^：]{2,10})：")
_SELF: Final = frozenset({"user", "my", "me", "we", "our", "i", "i'm", "i'v", "im"})
_NO_CONTENT: Final = frozenset("的了是我你他她它在有和就都给这那个条不也很说别用户们过呢啊吧吗")


def told_again(
    turn: RawTurn,
    state: MemoryState,
    eligible: Callable[[MemoryItem], bool],
    kept: Sequence[str],
) -> Iterator[tuple[MemoryItem, str]]:
    """The living items that the user's turn says again, each with the sentence that does.

    kept: the texts of what became of the turn otherwise.
    """
    if turn.said_as != "user":
        return
    whole, linked = _words(turn.text), set(state.said_again_in([turn.id]))

    def likely(item: MemoryItem) -> bool:
        known = turn.id in item.sources or item.id in linked or is_past(item.text)
        return not known and bool(_said(item)) and _said(item) <= whole

    terms = analyse(turn.text)
    ranked = state.items.lexical(terms, k=NEAREST, eligible=eligible) if terms else []
    items = [one.record for one in ranked if likely(one.record)]
    if not items:
        return
    told: set[str] = set()
    news = [_words(text) for text in kept]
    for sentence in split_sentences(turn.text):
        words = _words(sentence)
        if any(words <= new for new in news):
            continue
        found = [item for item in items if _says(sentence, words, item)]
        for item in found:
            best = not any(_said(item) < _said(other) for other in found)
            if best and item.id not in told:
                told.add(item.id)
                yield item, sentence


def _says(sentence: str, words: frozenset[str], item: MemoryItem) -> bool:
    said = _said(item)
    least = (2 if is_chinese(item.text) else 1) * LEAST
    enough = said == words or len(said) >= least
    denied = wording(_bare(item.text)).negated
    return enough and said <= words and wording(sentence).negated == denied


def _said(item: MemoryItem) -> frozenset[str]:
    return _words_said(item.text)


@of_texts
@lru_cache(maxsize=2_048)  # every message is compared with the same items again
def _words_said(text: str) -> frozenset[str]:
    return _words(_bare(text))


def _bare(text: str) -> str:
    return _FRAME.sub("", present(text))


def _words(text: str) -> frozenset[str]:
    """The content words, whatever their ending, the numbers, and of Chinese the characters."""
    found = wording(text)
    latin = {term.removesuffix("e")[:5] for term in found.terms - _SELF if term[0].isascii()}
    chinese = set("".join(re.findall(r"[\u4e00-\u9fff]+", text))) - _NO_CONTENT
    return frozenset(latin | chinese | found.numbers)
