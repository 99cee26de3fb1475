"""What a request to forget may mean at all, among much that is remembered.

The relation model says how surely a request means an item, but in a memory of months some item is
always near. So what the words of the request allow comes first: what was just said, or what they
name.

Invariant: a request that only points ("drop it") means nothing but what was just said. Pure
functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.cues import BARE_REQUEST
from memograd.memory.manager.past import named_in, speaks_of, stems
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.forget import MAY_ASK, asked_for
from memograd.memory.records.items import MemoryItem

SHORT_REQUEST: Final = 25  # characters
CHARACTERS: Final = 2  # of Chinese that count as a word
APART: Final = 0.3  # by that much more surely than what was just said is closed what no word names
_SENTENCE: Final = re.compile(r"[^.!?。！？]+[.!?。！？]*")


_OF_ASKING: Final = stems(
    "please pls plz thanks ta sorry actually just can could would you want back out second thoughts"
    " changed mind again now wait never here there say said tell told get got rid bit thing part"
    " shouldn typed wrote 请麻烦吧把不对刚才算了谢"
)


def only_point(heard: Heard, items: Sequence[MemoryItem]) -> bool:
    """Whether the request only points: "Forget that.", and no word of it is of an item.

    Of several sentences the asking one counts: "I shouldn't have told you. Please forget it."
    """
    asking = [one for one in _SENTENCE.findall(heard.own) if MAY_ASK.search(one)]
    own = " ".join(asking) or heard.own
    bare = BARE_REQUEST.sub(" ", own)
    return BARE_REQUEST.search(own) is not None and not any(
        speaks_of(bare, item.text) for item in items
    )


def says_what(heard: Heard) -> bool:
    """Whether a request that points has words of its own for what it means.

    "Leave my religion out of it" and "Maud wouldn't want the divorce in here. Take it out." do,
    though no item may have them; "Forget that, please" does not.
    """
    bare = BARE_REQUEST.sub(" ", MAY_ASK.sub(" ", heard.own))
    return bool(stems(bare) - _OF_ASKING)


def may_mean(
    heard: Heard,
    items: Sequence[MemoryItem],
    recent: frozenset[str],
    closing: Sequence[float],
    surely: float,
) -> list[bool]:
    """Which items a request may mean.

    What was just said may, unless the request means something else. An older item must be named by
    a word, or surely meant, and far more so than what was just said; where the request points at
    that ("drop it"), it must be named by two words and more surely meant.

    recent: ids of what was just said. closing: how surely each is closed. surely: from where on
    an item is.
    """
    # In Chinese the words are characters, of which two texts always share some.
    unit = CHARACTERS if is_chinese(heard.own) else 1
    named = [named_in(heard.own, item.text) // unit for item in items]
    of_said = [sure for item, sure in zip(items, closing, strict=True) if item.id in recent]
    most = max(of_said, default=0.0)
    points = bool(of_said) and BARE_REQUEST.search(heard.own) is not None
    older = [
        item.id not in recent
        and (
            count > 1 and sure > most
            if points
            else count > 0 or (sure >= surely and sure > most + APART)
        )
        for item, sure, count in zip(items, closing, named, strict=True)
    ]
    return [
        old or (item.id in recent and (points or count > 0 or not any(older)))
        for item, old, count in zip(items, older, named, strict=True)
    ]


def name_what_was_not_kept(heard: Heard, items: Sequence[MemoryItem]) -> bool:
    """Whether the request names a word of an earlier message that none of the items has.

    "My PIN is 4711." is never kept, so "Forget my PIN." is about no item. What is to stay is not
    what the request names: "don't keep the medication, the desk is fine".
    """
    own = asked_for(heard.own)
    told = {stem for who, text in heard.before if who == "user" for stem in stems(text)}
    least = CHARACTERS if is_chinese(own) else 1
    return len(stems(own) & told) >= least and not any(speaks_of(own, item.text) for item in items)
