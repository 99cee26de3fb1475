"""What may be kept of a message that asks not to keep something.

    Between us, I was arrested once. I play the oboe.         the oboe
    Don't remember the bit about my boss. Just that I teach.   I teach

A wish that is told as an aside holds back its own sentence, and what may have to do with it. One
that asks for something else to be kept says what.

Invariants: a sentence with the wish is never kept; without an aside only what the message says is
to be kept is. A mere "off the record" holds back the whole message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from memograd.memory.reader.asked import (
    BY_THE_WAY,
    FORGETS,
    NOT_SAVED,
    OF_A_THING,
    POINTS_BACK,
    SAID_TO_OTHERS,
    TOLD_ASIDE,
    requests,
)

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel

TELLS_FROM: Final = 6  # words of a sentence that tells something beside "between us"
ANOTHER_MATTER: Final = 0.9
"""How likely a sentence has nothing to do with the one that is told "between us"."""
BESIDE_IT: Final = 0.85
"""How likely one has nothing to do with what is asked to be forgotten, or is told beside it."""
LEAST_ASKED: Final = 0.15
"""How likely a sentence with words for not saving is a wish: "I never record my runs" is none."""
_TO_BE_KEPT: Final = re.compile(
    r"\W*(?:but )?(?:just|only|you (?:can|may|should) (?:keep|remember|note|save)) (?:that )?"
    r"(?=(?:I|I'?m|my|we|our)\b)|\W*[只就](?:要|用|需)?[记記留](?:住|着|著)?(?=[我俺咱])",
    re.IGNORECASE,
)
"""Opens what is to be kept: "Just that I teach", 只记我养猫."""


_OF_NEXT: Final = re.compile(
    r"\b(?:this |the )?next (?:bit|part|thing|one|message)\b|\bwhat (?:comes next|i say next)\b"
    r"|接下来|下面[这那]?[句段些]|后面[这那]?[句段些]",
    re.IGNORECASE,
)
_OF_ITSELF: Final = re.compile(r"(?:\S+ ){1,4}?(?:it|that|this)\b", re.IGNORECASE)


_PLAIN_WISH: Final = re.compile(
    r"(?:^|[,.;:!?]\s*|\b(?:please|pls|plz|but|and|so|ok) )(?:do not|don['’]?t|never) (?:\w+ )?"
    r"(?:sav|stor|remember|record|log|keep|not|writ)\w* (?:(?:this|that|it|these)"
    r"(?: (?:down|next|bit|part|one|anywhere|please|pls|ok|but|though))*(?=\W*$|[,.;:!?]| but)"
    r"|(?:this|that) (?:next )?(?:bit|part|one|message)\b|what i\b)",
    re.IGNORECASE,
)
"""Said to the one who reads, of what is said: "Don't store this next bit"."""


def asks_not_to_save(text: str, wish: float) -> bool:
    """Whether a sentence asks not to save something.

    wish: the probability that it wishes something to be forgotten.
    """
    if SAID_TO_OTHERS.search(text) or OF_A_THING.search(text):
        return False  # 不要存太多钱，我妈总这么讲; "never store that near the stove"
    if TOLD_ASIDE.search(text) or _PLAIN_WISH.search(text) or requests(text):
        return NOT_SAVED.search(text) is not None
    return wish >= LEAST_ASKED and NOT_SAVED.search(text) is not None


def _tells_it(text: str) -> bool:
    """Whether a sentence tells itself what is not to be kept: "I fell in the bath, but do not note
    that down"."""
    wish = NOT_SAVED.search(text)
    return (
        wish is not None
        and len(text[: wish.start()].split()) >= TELLS_FROM
        and _OF_ITSELF.match(text, wish.start()) is not None
    )


def _first_of(sentences: Sequence[tuple[int, int, str]], held: Sequence[str]) -> int:
    """Where the first of the sentences stands that ask not to save something."""
    return min(start for start, _, text in sentences if text in held)


def left_open(
    model: RelationModel, sentences: Sequence[tuple[int, int, str]], held: Sequence[str]
) -> list[tuple[int, int, str]]:
    """The sentences, with their places, that may be kept where those in `held` ask not to save."""
    from memograd.memory.relations import RELATIONS

    # "Forget the money, don't keep it" speaks of what was told before, and not of this message.
    aside = all(
        (TOLD_ASIDE.search(text) and len(text.split()) >= TELLS_FROM)
        or FORGETS.search(text)
        or _tells_it(text)
        for text in held
    )
    asks = all(FORGETS.search(text) for text in held)
    left = []
    for start, end, text in sentences:
        if text in held:
            continue
        if opens := _TO_BE_KEPT.match(text):
            left.append((start + opens.end(), end, text[opens.end() :]))
        elif held and BY_THE_WAY.match(text) and _first_of(sentences, held) < start:
            left.append((start, end, text))
        elif held and _OF_NEXT.search(held[0]) and start < _first_of(sentences, held):
            left.append((start, end, text))  # "Don't store this next bit" speaks of no other
        elif held and aside and not POINTS_BACK.search(text):
            found = model.relate(text, (), held)
            of_it = found[:, 0] + (found[:, RELATIONS.index("beside")] if asks else 0.0)
            if float(of_it.min()) >= (BESIDE_IT if asks else ANOTHER_MATTER):
                left.append((start, end, text))
    return left
