"""Which remembered items a decision about a fact looks at.

The nearest by meaning and words, and those that the words of the fact's property find. The running
memory and the rollouts that train its manager both ask here, so a policy meets in service what it
met in training. Invariant: at most `RELATED_ITEMS + SAME_PROPERTY_ITEMS` hits, each item once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from memograd.memory.analysis import analyse
from memograd.memory.records.items import MemoryItem
from memograd.memory.search import Hit, Query, retrieve
from memograd.memory.statements import property_words

if TYPE_CHECKING:
    from memograd.memory.state import Corpus

RELATED_ITEMS: Final = 8
SAME_PROPERTY_ITEMS: Final = 4


def find_related(
    items: Corpus[MemoryItem],
    query: Query,
    *,
    eligible: Callable[[MemoryItem], bool] | None = None,
) -> list[Hit[MemoryItem]]:
    """The living items that a fact, as a query, may repeat, change or take back; best first."""
    hits = retrieve(items, query, top_k=RELATED_ITEMS, eligible=eligible)
    return hits + _of_same_property(items, query, hits, eligible)


def _of_same_property(
    items: Corpus[MemoryItem],
    query: Query,
    found: list[Hit[MemoryItem]],
    eligible: Callable[[MemoryItem], bool] | None,
) -> list[Hit[MemoryItem]]:
    """Items that the words of the fact's property find: "moved to Oslo" is about where Ann lives.

    A new value looks like the old one neither in its words nor, among many items, in its meaning.
    """
    words = property_words(query.text)
    if not words:
        return []
    known = {hit.record.id for hit in found}
    return retrieve(
        items,
        Query(words, query.vector, analyse(words)),
        top_k=SAME_PROPERTY_ITEMS,
        mode="lexical",
        eligible=lambda item: item.id not in known and (eligible is None or eligible(item)),
    )
