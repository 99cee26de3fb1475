"""What is folded before anybody asks: the largest memories, while a server starts.

A memory is folded out of its journal when it is first needed, and a hundred thousand items take
seconds: whoever opened the page after a start waited for them. So a thread does it behind the
start, the largest memory first. Small ones are left, since their fold is quicker than a page.

Invariants: no start waits for it, and no call for more than the fold it would have made itself; it
folds no more than stays held; what goes wrong is told by the call that meets it, not here.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from memograd.errors import MemogradError
from memograd.memory.state.store import HELD_RECORDS, MemoryStore

logger = logging.getLogger(__name__)

LEAST_ITEMS: Final = 1000
MOST_ITEMS: Final = HELD_RECORDS // 2
"""Of all that are folded here; what was said to each is held too."""


@asynccontextmanager
async def warming(store: MemoryStore) -> AsyncIterator[None]:
    """Fold within this block, in a thread; the block's end waits for the fold that has begun."""
    ending = threading.Event()
    thread = threading.Thread(
        target=_fold_the_largest, args=(store, ending), name="memograd-warming", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ending.set()
        await asyncio.to_thread(thread.join)


def _fold_the_largest(store: MemoryStore, ending: threading.Event) -> None:
    items: Counter[str] = Counter()
    try:
        for scope, living, _, _ in store.journal.living(None):
            items[scope.owner] += living
        left = MOST_ITEMS
        for owner, count in items.most_common():
            if count < LEAST_ITEMS or ending.is_set():
                return
            if count <= left:
                store.states.current(owner)
                left -= count
    except MemogradError as error:
        logger.warning("No memory was made ready behind the start: %s", error)
