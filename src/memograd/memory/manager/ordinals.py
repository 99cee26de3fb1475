"""Which of the things that were said a request to forget means by their order.

    "take out the last two things I said", 头两句撤回, 后半句别记

Invariant: only what the speaker said counts, in the order of saying: the memories of what was just
said where these are as many, else its parts, else the memories of this sitting; a clause that says
what is to stay names nothing. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Final

from memograd.memory.reader.forget import says_what_stays

if TYPE_CHECKING:
    from memograd.memory.manager.requests import Part
    from memograd.memory.records.items import MemoryItem

SITTING: Final = timedelta(hours=1)
MOST: Final = 8  # things of one sitting that anybody counts
_NUMBERS: Final = {
    "two": 2, "couple": 2, "couple of": 2, "three": 3, "2": 2, "3": 3,
    "second": 2, "third": 3, "fourth": 4, "first": 1, "2nd": 2, "3rd": 3, "1st": 1,
    "一": 1, "二": 2, "两": 2, "俩": 2, "三": 3, "四": 4, "1": 1, "4": 4,
}  # fmt: skip
_THINGS: Final = r"(?:things?|bits?|ones?|sentences?|messages?|points?|parts?|facts?)"
_SAID: Final = (
    r" (?:that )?i(?:['’]ve)? (?:just )?(?:said|told|wrote|mentioned|gave|typed|sent|shared)"
)
_ORDER: Final = re.compile(
    rf"\b(?P<end>last|first) (?P<some>two|three|couple(?: of)?|2|3)(?: {_THINGS})?{_SAID}\b"
    rf"|\b(?P<nth>first|second|third|fourth|1st|2nd|3rd) {_THINGS}{_SAID}\b"
    r"|(?P<end_zh>[头頭前]|最?[后後])(?P<some_zh>[两兩俩三23])(?:[句条條件]|[个個](?:事|信息|点))"
    r"|第(?P<nth_zh>[一二三四1234])(?:[句条條件]|[个個](?:事|信息|点))"
    r"|(?P<half>[前后後上下])半[句段截](?:[话話])?(?![“\"「])",
    re.IGNORECASE,
)


def meant_by_order(
    clauses: Sequence[str],
    parts: Sequence[Part],
    items: Sequence[MemoryItem],
    recent: frozenset[str],
) -> frozenset[int] | None:
    """The numbers of the parts that the clauses of a request mean by their order; None where none
    names an order, or so many things were not said."""
    found: set[int] = set()
    for clause in clauses:
        order = None if says_what_stays(clause) else _ORDER.search(clause)
        if order is None:
            continue
        told = order.groupdict()
        nth = told["nth"] or told["nth_zh"]
        end, some = told["end"] or told["end_zh"], told["some"] or told["some_zh"]
        count = _NUMBERS[(nth or some or "2").casefold().replace("兩", "两")]
        apart = not (told["nth_zh"] or told["end_zh"])  # 句 is no part of a sentence
        said = _in_order(parts, items, recent, least=count, apart=apart)
        if len(said) < count:
            return None
        if nth:
            meant = [said[count - 1]]
        elif told["half"]:
            meant = said[:1] if told["half"] in "前上" else said[-1:]
        else:
            first = (end or "").casefold() in ("first", "头", "頭", "前")
            meant = said[:count] if first else said[-count:]
        found.update(n for one in meant for n in one)
    return frozenset(found) or None


def _in_order(
    parts: Sequence[Part],
    items: Sequence[MemoryItem],
    recent: frozenset[str],
    *,
    least: int,
    apart: bool,
) -> list[list[int]]:
    """What was said one after the other, each as the numbers of its parts.

    least: so many are asked for. apart: parts of one memory count too.
    """
    own = [
        n
        for n, part in enumerate(parts)
        if part.place >= 0 and items[part.item].role != "assistant"
    ]
    own.sort(key=lambda n: (items[parts[n].item].created_at, parts[n].item, parts[n].place))
    told = [n for n in own if items[parts[n].item].id in recent]
    last = items[parts[told[-1]].item].sources if told else ()
    now = [n for n in told if items[parts[n].item].sources == last]  # of one message
    of_items = [list(of_one) for _, of_one in groupby(now, key=lambda n: parts[n].item)]
    if len(of_items) >= max(least, 2):
        return of_items
    if apart and len(now) >= max(least, 2):
        return [[n] for n in now]
    newest = max((items[parts[n].item].created_at for n in own), default=None)
    sitting = [
        list(of_one)
        for item, of_one in groupby(own, key=lambda n: parts[n].item)
        if newest is not None and newest - items[item].created_at <= SITTING
    ]
    return sitting if len(sitting) <= MOST else []
