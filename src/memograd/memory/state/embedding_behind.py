"""Texts that are in the journal already and get their vectors while nobody waits for them.

`Memory.add` answers as soon as what it decided is written; the vectors of long messages, which no
decision needs, are computed behind the answer, in a thread that lives as long as there is something
to do. A search needs them all, so it computes what is still missing and never finds less for being
early. A crash loses nothing: what has no vector is computed by the next search, from the journal.

Invariant: after `finish` no thread runs and every text was handed to `embed`, unless that failed
for its owner or the owner was forgotten.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final

logger = logging.getLogger(__name__)

TEXTS_A_BATCH: Final = 8  # a search may have to wait for one batch

Embed = Callable[[str, Sequence[str], int], object]  # owner, texts, the last event that was seen


class EmbeddingBehind:
    """A queue of texts by owner, and the thread that empties it."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._waiting: dict[str, tuple[list[str], int]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, owner: str, texts: Sequence[str], *, seen: int) -> None:
        """Have these texts embedded soon; `seen` is the event that brought the last of them."""
        if not texts:
            return
        with self._lock:
            before, _ = self._waiting.get(owner, ([], 0))
            self._waiting[owner] = ([*before, *texts], seen)
            # In a forked child the parent's thread is not alive.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._work, name="memograd-embedding", daemon=True
                )
                self._thread.start()

    def forget(self, owner: str | None = None) -> None:
        """Drop what waits of an owner, or all of it; what still lives, a search embeds."""
        with self._lock:
            for name in [name for name in self._waiting if owner in (None, name)]:
                del self._waiting[name]

    def finish(self) -> None:
        """Return when nothing waits any more."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            owner, texts, seen = batch
            try:
                self._embed(owner, texts, seen)
            except Exception as error:  # whatever an embedder or a database raises
                if sys.is_finalizing() or "interpreter shutdown" in str(error):
                    return  # the process ends: nothing is lost, and nobody can do anything
                logger.warning(
                    "Texts of %s are written down but have no vectors yet; the next search"
                    " computes them: %s",
                    owner,
                    error,
                )
                self.forget(owner)

    def _next(self) -> tuple[str, list[str], int] | None:
        with self._lock:
            if not self._waiting:
                self._thread = None
                return None
            owner, (texts, seen) = next(iter(self._waiting.items()))
            if len(texts) > TEXTS_A_BATCH:
                self._waiting[owner] = (texts[TEXTS_A_BATCH:], seen)
            else:
                del self._waiting[owner]
            return owner, texts[:TEXTS_A_BATCH], seen
