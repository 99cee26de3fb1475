"""Which part of an item a message means, where the item says several things.

"I'm Catholic, and I teach chemistry" is one item, and "leave my religion out of it" means a half.

Invariant: what is left is parts of the item, each readable alone; None where nothing is left, or
where the item is not taken apart. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from memograd.memory.manager.past import (
    begins_anew,
    is_list,
    kept_in,
    left_of,
    named_in,
    parts_of,
    present,
    stands_alone,
)
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.forget import to_be_kept

if TYPE_CHECKING:
    from memograd.memory.relations import Thresholds

LONGER_THAN: Final = 3  # characters of a part that stands for itself


def left_unmeant(
    heard: Heard,
    text: str,
    closing: Callable[[Sequence[str]], list[float]],
    sure: Thresholds,
    *,
    points: bool = False,
) -> str | None:
    """The item without the parts that are meant; None where all of it is, or it has one.

    closing: how surely the message closes each part. points: the request only points at the item
    ("leave my religion out of it"), so that nothing stays but a statement of its own.
    """
    parts = parts_of(present(text))
    if len(parts) < 2 or not (heard.forget or is_list(parts)):
        return None
    scores = closing([part for part, _ in parts])
    named = [named_in(heard.own, part) for part, _ in parts]
    if heard.forget and max(named) and named.count(max(named)) == 1:
        scores[named.index(max(named))] += 1.0
    kept = to_be_kept(heard.own) if heard.forget else ""
    if kept:
        scores = [
            0.0 if kept_in(heard.own, part) > count else score
            for score, count, (part, _) in zip(scores, named, parts, strict=True)
        ]
    least, share = sure.part_above, sure.part_share * max(scores)
    stay = [n for n in range(len(parts)) if scores[n] < least or scores[n] < share]
    if points:
        stay = [n for n in stay if scores[n] < least and begins_anew(parts[n][0])]
    if kept and not stay:
        stay = [scores.index(min(scores))]  # something is to stay
    stand = [n for n in stay if len(parts[n][0]) > LONGER_THAN and stands_alone(text, parts[n][0])]
    if not stand or len(stay) == len(parts):
        return None
    return left_of(text, parts, stay)
