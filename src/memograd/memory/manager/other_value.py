"""Another value of the same thing, told by the way: "that's six times now that I've worn them".

In the row of a long message and many items the model hardly sees it. So words propose the item, by
a value of the same type that counts the same and by what both speak of, and whoever knows how alike
a sentence and an item are (the model, asked of these two alone) decides.

Invariant: no item is named that shares less than `SHARED` content words with a sentence, or no
value. Pure but for `alike`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from memograd.memory.manager.past import is_past, present, shared_content
from memograd.memory.manager.substitution import corrected, of_one_unit
from memograd.memory.reader.fact import Heard
from memograd.memory.records.items import MemoryItem

SHARED: Final = 2  # content words of a sentence and an item that may tell of the same thing
ALIKE: Final = 0.6  # probability that a sentence says an item again or closes it


def of_other_value(
    heard: Heard, items: Sequence[MemoryItem], alike: Callable[[str, str], float]
) -> frozenset[str]:
    """Ids of the items of which a fact of the message gives another value.

    alike: probability that a sentence says an item's text again or closes it.
    """
    found = set()
    for item in items:
        if is_past(item.text) or item.role == "assistant":
            continue
        old = present(item.text)
        for quote in heard.quotes:
            if shared_content(old, quote) < SHARED or not of_one_unit(old, quote):
                continue
            if corrected(old, quote) is not None and alike(quote, old) >= ALIKE:
                found.add(item.id)
    return frozenset(found)
