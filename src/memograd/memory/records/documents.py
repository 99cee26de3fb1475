"""Which items are documents: what a framework keeps under a name of its own, with a value.

Adapters write them (`integrations/shelf.py`) and give back the value, so nobody else may put other
words into such an item or let another stand for it. Talk neither changes nor ends a document, and a
compaction leaves it where it is; who deletes or erases by id or scope reaches it like any item.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from memograd.memory.records.items import MemoryItem

SHELF: Final = "shelf"  # the framework
NAME: Final = "name"  # a list of texts
VALUE: Final = "value"


def is_document(item: MemoryItem) -> bool:
    """Whether a framework keeps the item under a name; the application's own metadata may have a
    key or two of the same names."""
    return says_document(item.metadata)


def says_document(metadata: Mapping[str, Any]) -> bool:
    """Whether metadata is that of a document."""
    name = metadata.get(NAME)
    return (
        SHELF in metadata
        and VALUE in metadata
        and isinstance(name, list)
        and bool(name)
        and all(isinstance(part, str) for part in name)
    )
