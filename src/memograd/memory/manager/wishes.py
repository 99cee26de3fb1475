"""What a request to forget means of what is remembered.

A request names a thing by a word for it ("the diagnosis", 收入), says what is to stay, or only
points ("forget that"). The relation model reads it clause by clause beside each part of an item,
without what came before, so that the part that is meant is told from the parts beside it.

Invariant: what the request says is to stay gets 0 wherever it is meant more surely than what goes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.cues import BARE_REQUEST
from memograd.memory.manager.past import named_in, parts_of, present, speaks_of, stems
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.forget import MAY_ASK, asked_for, to_stay
from memograd.memory.records.items import MemoryItem

if TYPE_CHECKING:
    import numpy as np

    from memograd.memory.relations import RelationModel


def of_items(model: RelationModel, heard: Heard, items: Sequence[MemoryItem]) -> dict[str, float]:
    """How surely a request means each item, or the part of it that it means most, by its id."""
    units = [(item.id, part) for item in items for part, _ in parts_of(present(item.text))]
    wish = dict.fromkeys((item.id for item in items), 0.0)
    found = of_statements(model, heard, [part for _, part in units])
    for (item_id, _), sure in zip(units, found, strict=True):
        wish[item_id] = max(wish[item_id], sure)
    return wish


def of_statements(model: RelationModel, heard: Heard, statements: Sequence[str]) -> list[float]:
    """How surely a request means each of them: 0 to 1.

    What is to stay is asked about in the same way, and beside a surer one stays in doubt too.
    """
    import numpy as np

    from memograd.memory.relations import RELATIONS

    closing = [RELATIONS.index("retract"), RELATIONS.index("end")]

    def asked(request: str) -> np.ndarray:
        return np.asarray(model.relate(request, (), statements)[:, closing].sum(1))

    wish = asked(asked_for(heard.own) or heard.own)
    for stays in to_stay(heard.own):
        kept = asked(f"忘掉{stays}" if is_chinese(stays) else f"forget {stays}")
        wish[(kept > wish) | ((kept > wish / 2) & (wish < 0.8 * wish.max()))] = 0.0
    return [float(one) for one in wish]


def only_point(heard: Heard, items: Sequence[MemoryItem]) -> bool:
    """Whether the request only points: "Forget that.", and no word of it is of an item.

    Of several sentences the asking one counts: "I shouldn't have told you. Please forget it."
    """
    asking = [one for one in _SENTENCE.findall(heard.own) if MAY_ASK.search(one)]
    pointing = [one for one in asking if BARE_REQUEST.search(one)]
    own = " ".join(pointing or asking) or heard.own
    bare = BARE_REQUEST.sub(" ", own)
    return BARE_REQUEST.search(own) is not None and not any(
        speaks_of(bare, item.text) for item in items
    )


_SENTENCE: Final = re.compile(r"[^.!?。！？]+[.!?。！？]*")


def may_mean(
    heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str], closing: Sequence[float]
) -> list[bool]:
    """Which items a request may mean at all, in a memory of months.

    What was just said always may. An older item must be named by a word; by two, and more surely
    closed than what was just said, where the request is short or points at that ("drop it").
    """
    of_said = [sure for item, sure in zip(items, closing, strict=True) if item.id in recent]
    points = BARE_REQUEST.search(heard.own) is not None or len(heard.own) < SHORT_REQUEST
    found = []
    for item, sure in zip(items, closing, strict=True):
        named = named_in(heard.own, item.text)
        if of_said and points:
            found.append(item.id in recent or (named > 1 and sure > max(of_said)))
        else:
            found.append(item.id in recent or named > 0)
    return found


SHORT_REQUEST: Final = 25  # characters


def name_what_was_not_kept(heard: Heard, items: Sequence[MemoryItem]) -> bool:
    """Whether the request names a word of an earlier message that none of the items has.

    "My PIN is 4711." is never kept, so "Forget my PIN." is about no item.
    """
    own = stems(asked_for(heard.own))
    told = {stem for who, text in heard.before if who == "user" for stem in stems(text)}
    return bool(own & told) and not any(speaks_of(heard.own, item.text) for item in items)
