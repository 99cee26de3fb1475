"""Reach beyond one owner: the journal's items and raw turns in Milvus.

`MilvusIndex` searches across owners, and in owners too large for an in-process state. It holds
nothing that the journal does not: drop it, and the next catching up fills it again.
"""

from memograd.memory.index.connection import IndexUnavailable
from memograd.memory.index.milvus_index import MilvusIndex
from memograd.memory.index.schema import IndexHit

__all__ = ["IndexHit", "IndexUnavailable", "MilvusIndex"]
