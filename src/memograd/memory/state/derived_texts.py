"""Vector and search terms of every remembered text: computed once, kept beside the journal.

What an embedder and `analyse` make of a text depends on the text alone, so it is kept by content
hash, for each owner apart: purging one owner neither leaves nor takes anything of another. A
bounded cache in the process holds what was just used. Search terms, which cost little, are computed
when they are needed. Vectors that no decision needed, those of messages and of what assistants
said, are computed behind the answer of `Memory.add`, in a thread that lives as long as there is
something to do, short texts first: the next message is compared with the items, so it computes
those that are still missing, and a search computes all and never finds less for being early. A
crash loses nothing: whoever needs a vector next computes it from the journal.

Invariants: what comes back for a text equals what embedder and analysis say of it, whether it came
from the process, the table or the model. After `finish` no thread runs and every text was handed to
the embedder, unless that failed for its owner or the owner was forgotten.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from memograd.memory.analysis import analyse
from memograd.memory.journal import DatabaseFailed, DerivedText, Journal
from memograd.memory.language import simplified
from memograd.memory.records.items import content_hash

if TYPE_CHECKING:
    import numpy as np

    from memograd.memory.embedders import Embedder

logger = logging.getLogger(__name__)
HELD_TEXTS: Final = 20_000  # 30 MB of vectors at 384 dimensions
EMBED_BATCH: Final = 256
FULL_SCAN_FROM: Final = 2_000
TEXTS_A_BATCH: Final = 8  # a search may have to wait for one batch, and so may the next message
CHARACTERS_A_BATCH: Final = 2_000
LONGEST_END: Final = 10.0  # seconds that a process waits for an embedder when it ends
Derivation = tuple["np.ndarray", tuple[str, ...]]
WordsFirst = tuple["np.ndarray | None", tuple[str, ...]]
Embed = Callable[[str, Sequence[str], int], object]  # owner, texts, the last event that was seen


class DerivedTexts:
    """Looks up, or computes, what is derived from an owner's texts."""

    def __init__(self, journal: Journal, embedder: Embedder) -> None:
        self._journal, self._embedder = journal, embedder
        self._held: OrderedDict[tuple[str, str], DerivedText] = OrderedDict()
        self._lock = threading.Lock()
        self._computing = threading.Lock()  # so that no text is computed by two readers at once
        self._words: dict[tuple[str, str], tuple[str, ...]] = {}  # of texts without a vector yet
        self._forgotten = 0
        self._behind = EmbeddingBehind(self._compute)

    def prepare(self, owner: str, texts: Sequence[str]) -> list[DerivedText]:
        """What is known of these texts and can be stored with the events that bring them."""
        hashes = dict.fromkeys(content_hash(text) for text in texts)
        return [one for key in hashes if (one := self._known(owner, key, {})) is not None]

    def embed_behind(self, owner: str, texts: Sequence[str], *, seen: int) -> None:
        """Compute and store, while nobody waits, what is not known of texts that are written down.

        seen: the event that brought the last of them.
        """
        unknown = dict.fromkeys(t for t in texts if not self._known(owner, content_hash(t), {}))
        self._behind.put(owner, list(unknown), seen=seen)

    def finish(self) -> None:
        """Return when all that was to be embedded behind an answer is stored."""
        self._behind.finish()

    def derive(self, owner: str, texts: Sequence[str]) -> list[Derivation]:
        """`(vector [d], terms)` of each text; nothing is stored, for no event may ever hold it."""
        found, _ = self._find(owner, texts, self._stored(owner, texts))
        return _in_order(found, texts)

    def look_up(self, owner: str, texts: Sequence[str], *, seen: int) -> list[Derivation]:
        """`(vector [d], terms)` of each text that stands in the owner's events.

        What the table does not hold is computed and stored, unless a purge came after the event
        `seen`, the last one that the caller has read: then it may have erased these texts. A full
        disk keeps nobody from reading: what cannot be stored is computed again another time.
        """
        stored = self._stored(owner, texts)
        if all(self._known(owner, content_hash(text), stored) for text in texts):
            found, _ = self._find(owner, texts, stored)
            return _in_order(found, texts)
        with self._computing:
            found, computed = self._find(owner, texts, self._stored(owner, texts))
            try:
                self._store(computed, seen)
            except DatabaseFailed as error:
                logger.warning("Vectors of texts of %s are not kept: %s", owner, error)
        return _in_order(found, texts)

    def words_first(self, owner: str, texts: Sequence[str]) -> list[WordsFirst]:
        """`(vector [d], terms)` of each text, without the vector where it is not known yet."""
        stored = self._stored(owner, texts)
        derived: list[WordsFirst] = []
        for text in texts:
            key = content_hash(text)
            one = self._known(owner, key, stored)
            if one is not None:
                derived.append((one.vector, one.terms))
            else:
                words = analyse(text)
                self._words[owner, key] = words
                derived.append((None, words))
        return derived

    def forget(self, owner: str | None = None) -> None:
        """Drop what the process holds of an owner, or all of it."""
        self._behind.forget(owner)
        with self._lock:
            self._forgotten += 1
            for key in [key for key in self._held if owner is None or key[0] == owner]:
                del self._held[key]
            for key in [key for key in self._words if owner is None or key[0] == owner]:
                del self._words[key]

    def _compute(self, owner: str, texts: Sequence[str], seen: int) -> None:
        """`look_up` for nobody who waits, which ends where nothing can be stored."""
        with self._computing:
            _, computed = self._find(owner, texts, self._stored(owner, texts))
            self._store(computed, seen)

    def _store(self, computed: Sequence[DerivedText], seen: int) -> None:
        self._journal.store_derived(computed, embedder=self._embedder.name, purged_until=seen)

    def _find(
        self, owner: str, texts: Sequence[str], stored: Mapping[str, DerivedText]
    ) -> tuple[dict[str, DerivedText], list[DerivedText]]:
        """The derivation of every text by content hash, and those that had to be computed."""
        with self._lock:
            forgotten = self._forgotten
        by_hash = {content_hash(text): text for text in texts}
        found: dict[str, DerivedText] = {}
        for key in by_hash:
            known = self._known(owner, key, stored)
            if known is not None:
                found[key] = known
        missing = [key for key in by_hash if key not in found]
        computed = []
        for start in range(0, len(missing), EMBED_BATCH):
            batch = missing[start : start + EMBED_BATCH]
            vectors = self._embedder.embed([by_hash[key] for key in batch])
            for key, vector in zip(batch, vectors, strict=True):
                words = self._words.pop((owner, key), None) or analyse(by_hash[key])
                found[key] = DerivedText(owner, key, vector, words)
                computed.append(found[key])
        if len(found) <= FULL_SCAN_FROM:  # more than that goes into a state, which holds it
            self._hold(list(found.values()), forgotten)
        return found, computed

    def _stored(self, owner: str, texts: Sequence[str]) -> dict[str, DerivedText]:
        """What the table holds of the texts that the process does not.

        Older versions cut traditional characters into terms of one each; these are made anew.
        """
        missing = {
            key: text for text in texts if self._get(owner, key := content_hash(text)) is None
        }
        if not missing:
            return {}
        # One scan of the owner's rows is faster than thousands of look-ups.
        wanted = None if len(missing) > FULL_SCAN_FROM else list(missing)
        stored = self._journal.derived(owner, wanted)
        return {
            key: derived
            if simplified(missing[key]) == missing[key]
            else replace(derived, terms=analyse(missing[key]))
            for key, derived in stored.items()
            if key in missing
        }

    def _get(self, owner: str, key: str) -> DerivedText | None:
        with self._lock:
            held = self._held.get((owner, key))
            if held is not None:
                self._held.move_to_end((owner, key))
            return held

    def _known(self, owner: str, key: str, stored: Mapping[str, DerivedText]) -> DerivedText | None:
        """What is known of a text; a vector of another length was made by another embedder."""
        known = self._get(owner, key) or stored.get(key)
        fits = known is not None and len(known.vector) == self._embedder.dimension
        return known if fits else None

    def _hold(self, texts: Sequence[DerivedText], forgotten: int) -> None:
        with self._lock:
            if forgotten != self._forgotten:
                return  # a purge came meanwhile, maybe of these
            for text in texts:
                self._held[(text.owner, text.content_hash)] = text
            while len(self._held) > HELD_TEXTS:
                self._held.popitem(last=False)


def _in_order(found: Mapping[str, DerivedText], texts: Sequence[str]) -> list[Derivation]:
    derived = [found[content_hash(text)] for text in texts]
    return [(one.vector, one.terms) for one in derived]


class EmbeddingBehind:
    """A queue of texts by owner, and the thread that empties it."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._waiting: dict[str, tuple[list[str], int]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ending = False
        _QUEUES.add(self)

    def put(self, owner: str, texts: Sequence[str], *, seen: int) -> None:
        """Have these texts embedded soon; `seen` is the event that brought the last of them."""
        if not texts:
            return
        with self._lock:
            before, _ = self._waiting.get(owner, ([], 0))
            self._waiting[owner] = (sorted([*before, *texts], key=len), seen)
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

    def end(self) -> None:
        """Return when the thread has put down what it holds, or after `LONGEST_END` seconds; what
        waits, the next search embeds."""
        with self._lock:
            self._ending, thread = True, self._thread
        if thread is not None:
            thread.join(LONGEST_END)

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
            if not self._waiting or self._ending:
                self._thread = None
                return None
            owner, (texts, seen) = next(iter(self._waiting.items()))
            sums = accumulate(len(text) for text in texts[:TEXTS_A_BATCH])
            count = max(1, sum(characters <= CHARACTERS_A_BATCH for characters in sums))
            if len(texts) > count:
                self._waiting[owner] = (texts[count:], seen)
            else:
                del self._waiting[owner]
            return owner, texts[:count], seen


_QUEUES: Final[weakref.WeakSet[EmbeddingBehind]] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """A thread that computes in C++ when the interpreter ends would abort the process: programs
    need not close their memories."""
    for queue in list(_QUEUES):
        queue.end()
