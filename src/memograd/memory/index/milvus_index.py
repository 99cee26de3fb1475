"""The journal's items and raw turns, searchable in Milvus: `Index = f(journal)`.

One row of the collection, the *watermark*, is not searchable: it holds the place in the journal
up to which the rows are right, whose journal that is, the embedder, and how many rows there were.
It lives among the rows so that it goes wherever they go: an index that is deleted, damaged or
exchanged notices at opening, empties itself with a sentence in the log, and the next `catch_up`
fills it.

Invariants: however catching up is cut into pieces, interrupted or repeated, the rows are those that
a rebuild gives; a row never goes back to an older event; after a purge the erased bytes are in no
file of a Milvus Lite folder.

Order makes a crash safe: rows are written and flushed before the watermark moves, and folding a
batch twice changes nothing. On a server several processes may fold at once. Rows with a newer
sequence number are left alone, and each process goes on from its own place to the end of the
journal, so a row that a slow process brought back after a faster one deleted it is deleted again
by the slow one. It stays only if the slow process is killed in between; callers map hits back
through the journal, so such a row is never an answer, and `rebuild` removes it.

Lexical hits carry ranks only: Milvus Lite's BM25 is negative and weighs terms by the statistics of
one file, so rows written lately rank lower than they should until Lite merges its files.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from memograd.errors import BadInput, MemogradError
from memograd.memory.index.connection import Connection, IndexUnavailable
from memograd.memory.index.schema import (
    FIELDS,
    MAX_HITS,
    MAX_STRING_BYTES,
    META_KEY,
    META_LAYER,
    OWNERS_PER_FILTER,
    SCHEMA_VERSION,
    Effects,
    IndexHit,
    IndexRow,
    Layer,
    create_collection,
    digest,
    encode_terms,
    filters,
    fold,
    merged,
    one_of,
    ordered,
    score,
)

if TYPE_CHECKING:
    import numpy as np

    from memograd.memory.journal import Journal

BATCH_EVENTS: Final = 1_000
BATCH_ROWS: Final = 200  # 20 MB in the worst case; servers refuse requests over 64 MB

logger = logging.getLogger(__name__)

Mode = Literal["hybrid", "dense", "lexical"]
Embed = Callable[[str, Sequence[str]], "list[tuple[np.ndarray, tuple[str, ...]]]"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far the rows are right, and what made them. rows: how many, None while folding."""

    seq: int
    store_id: str
    embedder: str
    rows: int | None

    def to_row(self, dimension: int) -> dict[str, Any]:
        """The row that keeps it; its vector is any that is not zero, its layer is never asked."""
        note = {
            "store_id": self.store_id,
            "embedder": self.embedder,
            "rows": self.rows,
            "schema_version": SCHEMA_VERSION,
        }
        return {
            "key": META_KEY,
            "layer": META_LAYER,
            **dict.fromkeys(("owner_key", "agent_key", "run_key", "owner", "terms"), ""),
            "item_id": json.dumps(note),
            "seq": self.seq,
            "vector": [1.0] + [0.0] * (dimension - 1),
        }


class MilvusIndex:
    """Search over all owners of a journal. Safe to share between threads."""

    def __init__(
        self,
        connection: Connection,
        collection: str,
        journal: Journal,
        embed: Embed,
        embedder_name: str,
        dimension: int,
    ) -> None:
        """For `MilvusIndex.open`."""
        self._connection, self._collection = connection, collection
        self._journal, self._embed = journal, embed
        self._embedder_name, self._dimension = embedder_name, dimension
        self._store_id = _store_id(journal)
        self._lock = threading.RLock()
        self._place = 0  # this process's own place in the journal
        # Purges up to here erased the journal before these rows were read from it.
        self._erased_until = 0

    @classmethod
    def open(
        cls,
        uri: str,
        *,
        token: str | None = None,
        collection: str = "memograd",
        journal: Journal,
        embed: Embed,
        embedder_name: str,
        dimension: int,
        replace: bool = False,
    ) -> MilvusIndex:
        """Open the index at `uri`, or create it empty; `catch_up` fills it.

        uri: a path ending in `.db` (Milvus Lite) or `http(s)://...`. embed: owner and texts to one
        (unit vector float32 `[dimension]`, terms) a text. replace: start afresh whatever is found,
        which is what `memograd memory reindex` does.

        An index that is damaged, or whose journal was replaced, is emptied with a sentence in the
        log. Raises BadInput when another embedder made it, or when a server's collection belongs
        to another memory or another program; IndexUnavailable when another process holds the
        folder or no server answers.
        """
        index = cls(Connection(uri, token), collection, journal, embed, embedder_name, dimension)
        try:
            index._prepare(replace=replace)
        except BaseException:
            index.close()
            raise
        return index

    def close(self) -> None:
        """Release the index for other processes. Closing twice is harmless."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> MilvusIndex:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def check(self) -> str | None:
        """What is wrong with the index in a sentence, None if nothing is.

        Raises IndexUnavailable when Milvus cannot read its files.
        """
        with self._lock:
            mark = self._watermark()
            if mark is None:
                return "it holds no watermark: it was never finished or is damaged"
            if mark.store_id != self._store_id:
                return "it was made from another journal"
            if mark.seq > self._journal.last_seq():
                return (
                    f"it knows event {mark.seq}, but the journal ends at"
                    f" {self._journal.last_seq()}: the journal was replaced by an older one"
                )
            if mark.rows is not None and mark.rows != (held := self._count()):
                return f"it holds {held} rows, not the {mark.rows} that were written"
            return None

    def catch_up(self) -> int:
        """Fold in what the journal holds beyond the watermark; returns the number of events.

        Raises IndexUnavailable when Milvus fails; what was folded by then is kept.
        """
        with self._lock, self._connection.explained("be brought up to date"):
            if not self._connection.is_lite:
                shared = self._watermark()
                self._place = max(self._place, shared.seq) if shared else 0
            folded = 0
            while events := self._journal.tail_all(after=self._place, limit=BATCH_EVENTS):
                effects = fold(events)
                if effects.purged_at > self._erased_until and self._connection.is_lite:
                    # Lite keeps deleted rows in its files until it happens to merge them.
                    self._start_afresh()
                    continue
                if folded == 0:
                    self._mark(rows=None)
                self._apply(effects)
                if effects.purged_at and not self._connection.is_lite:
                    self._connection.client.compact(self._collection)
                folded += len(events)
                self._place = events[-1].seq
                self._mark(rows=None)
            if folded:
                self._mark(rows=self._count())
            return folded

    def rebuild(self) -> int:
        """Drop everything and fill the index from the journal; returns the number of events."""
        with self._lock:
            self._start_afresh()
            return self.catch_up()

    def search(
        self,
        vector: np.ndarray | None,
        terms: Sequence[str],
        *,
        layer: Layer,
        k: int,
        owners: Collection[str] | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        mode: Mode = "hybrid",
    ) -> list[IndexHit]:
        """The `k` best rows of each list, by fused rank; the index is taken as it stands.

        vector: unit vector `[dimension]`, may be None in mode "lexical". owners: None means all.
        Equal scores rank by age, oldest first. Raises BadInput when `k` is not in 1..16384 or the
        vector's length is not that of the index, IndexUnavailable when Milvus fails.
        """
        if not 1 <= k <= MAX_HITS:
            raise BadInput(f"A search of the index can return 1 to {MAX_HITS} rows, not {k}.")
        keys = None if owners is None else sorted(digest(owner) for owner in set(owners))
        where = list(
            filters(
                layer,
                keys,
                None if agent_id is None else digest(agent_id),
                None if run_id is None else digest(run_id),
            )
        )
        dense: list[tuple[float, dict[str, Any]]] = []
        lexical: list[tuple[float, dict[str, Any]]] = []
        with self._reading(), self._connection.explained("be searched"):
            if mode != "lexical":
                dense = self._list("vector", [self._checked(vector)], where, k)
            if mode != "dense" and terms:
                lexical = self._list("lexical", [encode_terms(terms)], where, k)
        return merged(dense, lexical)

    def stats(self) -> dict[str, Any]:
        """rows, items, turns, watermark, lag (events) and bytes (None on a server)."""
        with self._reading(), self._connection.explained("be counted"):
            mark = self._watermark()
            rows, items = self._count(), self._count('layer == "item"')
            seq = mark.seq if mark else 0
            return {
                "rows": rows,
                "items": items,
                "turns": rows - items,
                "watermark": seq,
                "lag": self._journal.last_seq() - seq,
                "bytes": self._connection.size_bytes(),
            }

    def _prepare(self, *, replace: bool) -> None:
        """Load the collection and check it; empty it where that is called for."""
        exists, problem = True, None
        try:
            with self._connection.explained("be looked at"):
                exists = self._connection.client.has_collection(self._collection)
            if exists and not replace:
                self._refuse_strangers()
                with self._connection.explained("be loaded"):
                    # Needed after every reopening, or searches fail.
                    self._connection.client.load_collection(self._collection)
                self._refuse_another_embedder()
                problem = self.check()
        except IndexUnavailable as error:
            if not self._connection.is_lite:
                raise
            problem = str(error)
        if problem is not None:
            logger.warning(
                "The index %s is emptied and will be filled from the journal: %s.",
                self._connection.where,
                problem.rstrip("."),
            )
        if problem is not None or replace or not exists:
            self._start_afresh()
        else:
            mark = self._watermark()
            self._place = mark.seq if mark else 0

    def _refuse_strangers(self) -> None:
        """Raise BadInput if the collection is not one that we may empty."""
        with self._connection.explained("be described"):
            described: Any = self._connection.client.describe_collection(self._collection)
        if {field["name"] for field in described["fields"]} != FIELDS:
            raise BadInput(
                f"The collection {self._collection!r} of {self._connection.where} was not made by"
                " this version of memograd: choose another collection name, or run"
                " `memograd memory reindex` if its contents may be dropped."
            )
        vector = next(field for field in described["fields"] if field["name"] == "vector")
        self._check_dimension(int(vector["params"]["dim"]))

    def _check_dimension(self, dimension: int) -> None:
        if dimension != self._dimension:
            raise BadInput(
                f"The index {self._connection.where} holds vectors of {dimension} numbers, but the"
                f" embedder {self._embedder_name!r} makes {self._dimension}: use the embedder that"
                " made it, or run `memograd memory reindex`."
            )

    def _refuse_another_embedder(self) -> None:
        mark = self._watermark()
        if mark is None:
            return
        if mark.store_id != self._store_id and not self._connection.is_lite:
            raise BadInput(
                f"The collection {self._collection!r} of {self._connection.where} belongs to"
                " another memory: choose another collection name, or run"
                " `memograd memory reindex` if that memory is gone."
            )
        if mark.embedder != self._embedder_name and mark.store_id == self._store_id:
            raise BadInput(
                f"The index {self._connection.where} was made with the embedder {mark.embedder!r},"
                f" not {self._embedder_name!r}: use the first, or run `memograd memory reindex`."
            )

    def _start_afresh(self) -> None:
        """An empty collection with the watermark at the beginning of the journal."""
        self._connection.discard(self._collection)
        with self._connection.explained("be created"):
            create_collection(
                self._connection.client,
                self._collection,
                dimension=self._dimension,
                partitioned=not self._connection.is_lite,
            )
            self._place, self._erased_until = 0, self._journal.last_seq()
            self._mark(rows=0)

    def _apply(self, effects: Effects) -> None:
        """Remove, write, flush; what Milvus holds already in a newer form stays."""
        client = self._connection.client
        for owners in _batches(list(effects.owners), OWNERS_PER_FILTER):
            last = max(effects.owners[owner] for owner in owners)
            condition = f"{one_of('owner_key', owners)} and seq <= {last}"
            client.delete(self._collection, filter=condition)
        newer = self._newer(effects)
        removed = [key for key in effects.removed if key not in newer]
        for keys in _batches(removed, BATCH_ROWS):
            client.delete(self._collection, ids=list(keys))
        rows = [row for key, row in effects.rows.items() if key not in newer and _fits(row)]
        for batch in _batches(self._embedded(rows), BATCH_ROWS):
            client.upsert(self._collection, list(batch))
        client.flush(self._collection)

    def _newer(self, effects: Effects) -> set[str]:
        """Keys whose row another process wrote from a later event; none in a folder of our own."""
        if self._connection.is_lite:
            return set()
        ours = {key: row.seq for key, row in effects.rows.items()} | effects.removed
        held: dict[str, int] = {}
        for keys in _batches(list(ours), BATCH_ROWS):
            found = self._connection.client.get(
                self._collection, ids=list(keys), output_fields=["seq"]
            )
            held.update((row["key"], int(row["seq"])) for row in found)
        return {key for key, seq in held.items() if seq > ours[key]}

    def _embedded(self, rows: Sequence[IndexRow]) -> list[dict[str, Any]]:
        """The rows as Milvus takes them, embedded owner by owner."""
        by_owner: dict[str, list[IndexRow]] = {}
        for row in rows:
            by_owner.setdefault(row.owner, []).append(row)
        return [
            {
                "key": row.key,
                "layer": row.layer,
                **row.digests(),
                "owner": owner,
                "item_id": row.item_id,
                "seq": row.seq,
                "vector": self._checked(vector),
                "terms": encode_terms(terms),
            }
            for owner, group in by_owner.items()
            for row, (vector, terms) in zip(
                group, self._embed(owner, [row.text for row in group]), strict=True
            )
        ]

    def _checked(self, vector: np.ndarray | None) -> list[float]:
        if vector is None or vector.shape != (self._dimension,):
            shape = None if vector is None else vector.shape
            raise BadInput(
                f"The index needs vectors of shape ({self._dimension},), but the embedder gave"
                f" {shape}: check the embedder's dimension."
            )
        values: list[float] = vector.tolist()
        return values

    def _list(
        self, field: str, data: list[Any], where: Sequence[str], k: int
    ) -> list[tuple[float, dict[str, Any]]]:
        """(score, row) of the `k` best rows under all filters together, best first."""
        scored: list[tuple[float, dict[str, Any]]] = []
        for condition in where:
            hits: Any = self._connection.client.search(
                self._collection,
                data=data,
                anns_field=field,
                filter=condition,
                limit=k,
                output_fields=["owner", "item_id", "seq"],
            )
            # Lite returns BM25 below zero, servers above.
            scored.extend((score(field, hit["distance"]), dict(hit["entity"])) for hit in hits[0])
        return ordered(scored)[:k]

    def _watermark(self) -> Watermark | None:
        with self._connection.explained("read its watermark"):
            rows = self._connection.client.get(
                self._collection, ids=[META_KEY], output_fields=["seq", "item_id"]
            )
        if not rows:
            return None
        try:
            note = json.loads(rows[0]["item_id"])
            if note["schema_version"] != SCHEMA_VERSION:
                return None
            return Watermark(int(rows[0]["seq"]), note["store_id"], note["embedder"], note["rows"])
        except (ValueError, KeyError, TypeError):
            return None

    def _mark(self, *, rows: int | None) -> None:
        mark = Watermark(self._place, self._store_id, self._embedder_name, rows)
        if not self._connection.is_lite:
            shared = self._watermark()
            if shared is not None and shared.seq > mark.seq:
                return  # it only moves forward
        self._connection.client.upsert(self._collection, [mark.to_row(self._dimension)])

    def _count(self, condition: str = "") -> int:
        """The rows under a condition; without one, which Milvus answers at once, all but one."""
        rows: Any = self._connection.client.query(
            self._collection, filter=condition, output_fields=["count(*)"]
        )
        return int(rows[0]["count(*)"]) - (0 if condition else 1)  # the watermark

    def _reading(self) -> AbstractContextManager[object]:
        """Readers of a Lite folder wait for writers, who may have to close it for a moment."""
        return self._lock if self._connection.is_lite else nullcontext()


def _fits(row: IndexRow) -> bool:
    """Whether Milvus can hold the row's ids; if not, it is left out with a sentence in the log."""
    fits = all(len(text.encode("utf-8")) <= MAX_STRING_BYTES for text in (row.owner, row.item_id))
    if not fits:
        logger.warning(
            "The %s %.40r of %.40r is not in the index: its id or its owner's is longer than %d"
            " bytes.",
            row.layer,
            row.item_id,
            row.owner,
            MAX_STRING_BYTES,
        )
    return fits


def _store_id(journal: Journal) -> str:
    """The journal's own name, given on first use: it tells one journal from another."""
    if (store_id := journal.get_meta("store_id")) is None:
        journal.set_meta("store_id", uuid.uuid4().hex)
        store_id = journal.get_meta("store_id")
    if store_id is None:
        raise MemogradError("The journal did not keep its store_id: check that it can be written.")
    return store_id


def _batches(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
