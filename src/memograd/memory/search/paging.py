"""Pages of a list that others change meanwhile.

A cursor names the last item that was shown and when it was learnt. The next page begins behind that
item or, should it be gone, at the first one learnt then or later. A page looks at every item once,
and keeps and orders no more than it shows. Invariant: what stays in the list while it is read is
shown, in order, and not left out.
"""

from __future__ import annotations

import base64
import heapq
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from memograd.errors import BadInput
from memograd.memory.records.items import MemoryItem


@dataclass(frozen=True, slots=True)
class Page:
    """items: in the order they were learnt. cursor: of the next page, None behind the last one.
    total: how many items there are on all pages."""

    items: list[MemoryItem]
    cursor: str | None
    total: int


def page_of(items: Iterable[MemoryItem], cursor: str | None, limit: int | None) -> Page:
    """The first `limit` of the items behind the cursor (None: of all); items come in any order.

    Raises BadInput for a cursor that no page gave.
    """
    learnt, last = (None, "") if cursor is None else _read(cursor)
    total = 0
    same: list[MemoryItem] = []  # learnt in the moment of the cursor

    def later() -> Iterable[MemoryItem]:
        nonlocal total
        for item in items:
            total += 1
            if learnt is None or item.created_at > learnt:
                yield item
            elif item.created_at == learnt:
                same.append(item)

    if limit is None:
        found = sorted(later(), key=lambda item: item.created_at)
    else:
        found = heapq.nsmallest(limit + 1, later(), key=lambda item: item.created_at)
    behind = next((at for at, item in enumerate(same, start=1) if item.id == last), 0)
    found = [*same[behind:], *found]
    page = found[:limit]
    return Page(page, _write(page[-1]) if page and len(found) > len(page) else None, total)


def _write(item: MemoryItem) -> str:
    text = json.dumps([item.created_at.isoformat(), item.id])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[datetime, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        learnt, last = json.loads(base64.urlsafe_b64decode(padded))
        moment = datetime.fromisoformat(learnt)
        if moment.tzinfo is None or not isinstance(last, str):
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise BadInput(
            f"There is no cursor {str(cursor)[:60]!r}: give one that a page gave."
        ) from None
    return moment, last
