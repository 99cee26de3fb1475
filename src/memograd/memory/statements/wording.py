"""How two sentences agree word for word, whatever an embedder thinks of them.

Embedders put "Rex is 4" and "Rex is 5" on nearly the same spot. What tells them apart is in the
words: content terms, numbers, names, and negation. Invariant: texts that differ in a number, a name
or a negation are never `same_text`. Pure functions.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memograd.memory.language import language_of, simplified
from memograd.memory.text_caches import of_texts

_NUMBER: Final = re.compile(r"\d+(?:[.:/-]\d+)*")
_LATIN: Final = re.compile(r"[a-zà-ɏ][a-zà-ɏ'-]*[+#]*")
_HAN_RUN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
_ENGLISH_NOT: Final = re.compile(r"\b(?:not|no|never|none|without|cannot|hates?|dislikes?)\b|n't\b")
_CHINESE_NOT: Final = re.compile(
    r"(?<!差)不(?!错|过(?!敏)|同|仅|但)|没|(?<![特区性分个级])别(?!人|的|墅)|无(?!锡|线|人机|论)|讨厌|戒(?!指)"
)
_CHANGE_EN: Final = re.compile(
    r"\b(?:now|instead|changed|switched|no longer|any ?more|nowadays|replaced|became|new)\b"
)
_CHANGE_ZH: Final = re.compile(
    r"现在|如今|改成|改为|换成|换了|改到|变成|变为|改用|不再|更新为|调整为"
)
_CHANGED_TO_EN: Final = re.compile(r"\b(?:instead|switched|changed|prefers|but|replaced)\b")
_CHANGED_TO_ZH: Final = re.compile(r"改成|改为|换成|换了|变成|变为|改用|而是|改喝|改吃|更喜欢|但")
_STOP_WORDS = """
    a an the is are was were be been being am to of in on at by for with and or that this it its
    his her their there as from has have had do does did s t so very really just also now
    instead will would can could currently actually recently again still already about into than
    then too changed switched new became nowadays
"""
_STOP: Final = frozenset(_STOP_WORDS.split())
_NEGATIONS: Final = frozenset({"not", "no", "never", "cannot"})
_HAN_STOP: Final = frozenset("的了在是和与也都就很挺我你他她它着过呢啊吧吗有这那个们不没")
_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve"
_TEXTS_KEPT: Final = 2_048
_NUMBER_WORDS: Final = {word: str(value) for value, word in enumerate(_COUNTED.split())}


@dataclass(frozen=True, slots=True)
class Wording:
    """What a text is made of: terms that carry content, numbers, and whether it says no.

    changed: it says that something changed. changed_to: and what to ("now", "instead", 改成).
    """

    terms: frozenset[str]
    numbers: frozenset[str]
    negated: bool
    changed: bool
    changed_to: bool


@of_texts
@lru_cache(maxsize=_TEXTS_KEPT)  # every message is compared with the same items again
def wording(text: str) -> Wording:
    """The wording of a text; English words lose their endings, Chinese runs become bigrams."""
    text = simplified(unicodedata.normalize("NFKC", text)).casefold().replace("’", "'")
    text = text.replace("cannot", "can not")
    chinese = language_of(text) == "zh"
    negated = (_CHINESE_NOT if chinese else _ENGLISH_NOT).search(text) is not None
    changed = (_CHANGE_ZH if chinese else _CHANGE_EN).search(text) is not None
    changed_to = (_CHANGED_TO_ZH if chinese else _CHANGED_TO_EN).search(text) is not None
    numbers = set(_NUMBER.findall(text))
    terms: set[str] = set()
    for word in _LATIN.findall(_CHANGE_EN.sub(" ", text)):
        word = word.removesuffix("'s").strip("'-").removesuffix("n't")
        if word in _NUMBER_WORDS:
            numbers.add(_NUMBER_WORDS[word])
        elif word and word not in _STOP and word not in _NEGATIONS:
            terms.add(_stem(word))
    for run in _HAN_RUN.findall(_CHANGE_ZH.sub(" ", text)):
        kept = "".join(character for character in run if character not in _HAN_STOP)
        terms.update(kept[i : i + 2] for i in range(len(kept) - 1))
        if len(kept) == 1:
            terms.add(kept)
    return Wording(frozenset(terms), frozenset(numbers), negated, changed, changed_to)


def agreement(first: Wording, second: Wording) -> float:
    """Share of all content terms and numbers of the two that both have (Jaccard), 0 to 1."""
    ours, theirs = first.terms | first.numbers, second.terms | second.numbers
    union = ours | theirs
    return len(ours & theirs) / len(union) if union else 0.0


def same_text(first: str, second: str) -> bool:
    """Whether two texts say the same in the same words, whatever case, punctuation and articles."""
    if _squeezed(first) == _squeezed(second):
        return True
    ours, theirs = wording(first), wording(second)
    return (
        bool(ours.terms)
        and ours.terms == theirs.terms
        and ours.numbers == theirs.numbers
        and ours.negated == theirs.negated
        and _order(first) == _order(second)
    )


@of_texts
@lru_cache(maxsize=_TEXTS_KEPT)
def _order(text: str) -> tuple[str, ...]:
    """The content words in their order: who bit whom matters."""
    text = simplified(unicodedata.normalize("NFKC", text)).casefold().replace("’", "'")
    latin = (word.removesuffix("'s") for word in _LATIN.findall(text))
    kept = [_stem(word) for word in latin if word not in _STOP and word not in _NEGATIONS]
    return (*kept, *(c for run in _HAN_RUN.findall(text) for c in run if c not in _HAN_STOP))


@of_texts
@lru_cache(maxsize=_TEXTS_KEPT)
def _squeezed(text: str) -> str:
    # Points and commas between digits stay: 4.5 is not 45. So do + and #: C++ is not C.
    text = simplified(unicodedata.normalize("NFKC", text)).casefold()
    return re.sub(r"(?<!\d)[.,:]|[.,:](?!\d)|[\s!?;…。、\"'’‘“”()\[\]《》~]", "", text)


def _stem(word: str) -> str:
    for ending, keep in (
        ("ies", "y"),
        ("sses", "ss"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + keep
            break
    return word.removesuffix("e") if len(word) > 4 else word
