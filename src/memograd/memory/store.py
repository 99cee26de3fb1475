"""Raw turns in Milvus Lite: write under a scope, search within it.

Invariants: **scope is a wall**, nothing written under one scope is ever returned under another,
whatever characters the scopes hold; adding a turn twice stores it once; searches keep to `top_k`
and to the token budget (`tests/memory/test_store.py`). May import errors and the other files of
this room.

Why it looks as it does: filters are Milvus expressions, so a scope never enters one as text, only
as its SHA-256 in hexadecimal. The index is FLAT because approximate indexes lose recall under a
selective filter. Raw turns are only ever added, so the number already held is a position that never
repeats.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from memograd.errors import BadInput, MemogradError
from memograd.memory.embedder import Embedder
from memograd.memory.milvus import COLLECTION, MAX_STRING_BYTES, Database
from memograd.memory.retrieved import RetrievedTurn, fill_budget
from memograd.memory.turns import RawTurn

if TYPE_CHECKING:
    import numpy as np

BATCH_ROWS: Final = 500  # keeps one request near a megabyte at 384 dimensions
TURN_FIELDS: Final = ["turn_id", "speaker", "text", "time", "caption", "session", "position"]

T = TypeVar("T")


class TurnMemory:
    """The raw turns of any number of scopes (users, conversations) in one local database."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        """For `TurnMemory.open`; the database must have been made by this embedder."""
        self._database, self._client, self._embedder = database, database.client, embedder

    @classmethod
    def open(cls, path: Path | str, embedder: Embedder) -> TurnMemory:
        """Open the memory at `path`, or create it (a directory whose name ends in `.db`).

        Raises BadInput when Milvus Lite cannot use the path, when the memory is open already (here
        or in another process), or when another embedder made it.
        """
        return cls(Database(path, embedder), embedder)

    def close(self) -> None:
        """Release the memory for other processes. Closing twice is harmless."""
        self._database.close()

    def __enter__(self) -> TurnMemory:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def add_turns(self, scope: str, turns: Sequence[RawTurn]) -> int:
        """Store the turns in the order they were said; returns how many were new.

        A turn that the scope holds already is left as it is, so adding twice is safe. Raises
        BadInput, before anything is stored, when one id comes with two different contents or a text
        cannot be stored.
        """
        new = self._unknown_turns(_scope_key(scope), turns)
        held = self.count(scope)
        rows = [
            _to_row(turn, _scope_key(scope), position) for position, turn in enumerate(new, held)
        ]
        for batch in _batches(list(zip(new, rows, strict=True))):
            vectors = self._embed([turn.index_text() for turn, _ in batch])
            self._client.upsert(
                COLLECTION,
                [
                    row | {"vector": vector.tolist()}
                    for (_, row), vector in zip(batch, vectors, strict=True)
                ],
            )
        if new:
            self._client.flush(COLLECTION)
        return len(new)

    def search(
        self,
        query: str,
        *,
        scope: str,
        top_k: int,
        token_budget: int,
        count_tokens: Callable[[str], int],
    ) -> list[RetrievedTurn]:
        """The `top_k` turns most similar to the query, as far as they fit in `token_budget`.

        Filled by relevance (see `fill_budget`), returned in chronological order.
        """
        return self.search_many(
            [query], scope=scope, top_k=top_k, token_budget=token_budget, count_tokens=count_tokens
        )[0]

    def search_many(
        self,
        queries: Sequence[str],
        *,
        scope: str,
        top_k: int,
        token_budget: int,
        count_tokens: Callable[[str], int],
    ) -> list[list[RetrievedTurn]]:
        """`search` for several queries, embedded in one batch; one result a query."""
        _check_top_k(top_k)
        if not queries:
            return []
        hits_per_query = self._client.search(
            COLLECTION,
            data=self._embed(queries).tolist(),
            filter=_in_scope(_scope_key(scope)),
            limit=top_k,
            output_fields=TURN_FIELDS,
        )
        return [
            fill_budget(_ranked(hits), token_budget=token_budget, count_tokens=count_tokens)
            for hits in hits_per_query
        ]

    def last_turns(
        self, scope: str, *, top_k: int, token_budget: int, count_tokens: Callable[[str], int]
    ) -> list[RetrievedTurn]:
        """The baseline without search: the `top_k` most recent turns, as far as they fit."""
        _check_top_k(top_k)
        # Milvus Lite ignores `order_by` in silence, so the order is made here.
        rows = self._client.query(
            COLLECTION, filter=_in_scope(_scope_key(scope)), output_fields=TURN_FIELDS
        )
        latest = sorted(rows, key=lambda row: (row["session"], row["position"]), reverse=True)
        found = [
            RetrievedTurn(_to_turn(row), 0.0, rank, row["position"])
            for rank, row in enumerate(latest[:top_k], start=1)
        ]
        return fill_budget(found, token_budget=token_budget, count_tokens=count_tokens)

    def count(self, scope: str) -> int:
        """How many turns the scope holds."""
        rows = self._client.query(
            COLLECTION, filter=_in_scope(_scope_key(scope)), output_fields=["count(*)"]
        )
        return int(rows[0]["count(*)"])

    def _unknown_turns(self, scope_key: str, turns: Sequence[RawTurn]) -> list[RawTurn]:
        """The turns whose id the scope does not hold yet, without repetitions."""
        known: dict[str, RawTurn] = {}
        for batch in _batches(turns):
            keys = [_turn_key(scope_key, turn) for turn in batch]
            for row in self._client.get(COLLECTION, ids=keys, output_fields=TURN_FIELDS):
                known[row["turn_id"]] = _to_turn(row)
        unknown = []
        for turn in turns:
            if turn.id not in known:
                known[turn.id] = turn
                unknown.append(turn)
            elif known[turn.id] != turn:
                raise BadInput(
                    f"Turn {turn.id!r} is stored already with other content: give a turn that says"
                    " something else an id of its own."
                )
        return unknown

    def _embed(self, texts: Sequence[str]) -> np.ndarray:
        for text in texts:
            _utf8(text, "a turn or a query")
        vectors = self._embedder.embed(texts)
        if vectors.shape != (len(texts), self._embedder.dimension):
            raise MemogradError(
                f"The embedder {self._embedder.name!r} returned an array of shape {vectors.shape}"
                f" for {len(texts)} texts, not {(len(texts), self._embedder.dimension)}."
            )
        return vectors


def _to_row(turn: RawTurn, scope_key: str, position: int) -> dict[str, Any]:
    row = {
        "key": _turn_key(scope_key, turn),
        "scope_key": scope_key,
        "turn_id": turn.id,
        "speaker": turn.speaker,
        "text": turn.text,
        "time": turn.time.isoformat() if turn.time else None,
        "caption": turn.caption,
        "session": turn.session,
        "position": position,
    }
    for field, value in row.items():
        if (
            isinstance(value, str)
            and len(_utf8(value, f"the {field} of a turn")) > MAX_STRING_BYTES
        ):
            raise BadInput(
                f"The {field} of turn {turn.id[:40]!r} is longer than {MAX_STRING_BYTES} bytes:"
                " split it into several turns."
            )
    return row


def _to_turn(row: dict[str, Any]) -> RawTurn:
    return RawTurn(
        id=row["turn_id"],
        speaker=row["speaker"],
        text=row["text"],
        time=datetime.fromisoformat(row["time"]) if row["time"] else None,
        session=row["session"],
        caption=row["caption"],
    )


def _ranked(hits: Sequence[dict[str, Any]]) -> list[RetrievedTurn]:
    """The hits of one query, best first; equals in the order of the story, so it is repeatable."""
    # Six decimals: the same text scores a few units of float noise apart in another batch.
    scored = [(round(float(hit["distance"]), 6), hit["entity"]) for hit in hits]
    scored.sort(key=lambda pair: (-pair[0], pair[1]["session"], pair[1]["position"]))
    return [
        RetrievedTurn(_to_turn(row), score, rank, row["position"])
        for rank, (score, row) in enumerate(scored, start=1)
    ]


def _scope_key(scope: str) -> str:
    if not scope:
        raise BadInput(
            "A memory scope must not be empty: name the user or conversation it belongs to."
        )
    return hashlib.sha256(_utf8(scope, "a memory scope")).hexdigest()


def _turn_key(scope_key: str, turn: RawTurn) -> str:
    pair = json.dumps([scope_key, turn.id])  # unambiguous, unlike joining with any separator
    return hashlib.sha256(pair.encode("utf-8")).hexdigest()


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput(
            f"The text {text[:40]!r} in {what} is not valid Unicode (half a surrogate pair): repair"
            " it where it was read."
        ) from None


def _in_scope(scope_key: str) -> str:
    return f'scope_key == "{scope_key}"'


def _check_top_k(top_k: int) -> None:
    if top_k < 1:
        raise BadInput(f"top_k is {top_k}: ask for at least one turn.")


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), BATCH_ROWS):
        yield items[start : start + BATCH_ROWS]
