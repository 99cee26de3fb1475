"""Raw turns, for tasks that read whole conversations: write under a scope, search within it.

A search either takes the turns whose vectors are nearest to the question's, or ranks them as
`Memory.search` does, by the trained ranker. For the second the turns' facts are remembered too:
they are not shown, but they say what a turn is about.

Invariants: nothing written under one scope is ever returned under another; adding a turn twice
stores it once, also when two do so at once; searches keep to `top_k` and to the token budget.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memograd.config import MemorySettings
from memograd.errors import BadInput, MemogradError
from memograd.memory.filters import scope_filter
from memograd.memory.journal import Conflict
from memograd.memory.records.events import NewEvent
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope, check_unicode
from memograd.memory.records.turns import RawTurn
from memograd.memory.search.context import RetrievedTurn, fill_budget
from memograd.memory.search.hits import SearchRequest
from memograd.memory.search.recall import Recall
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore
from memograd.memory.write.changes import added, heard

if TYPE_CHECKING:
    from memograd.memory.embedders import Embedder
    from memograd.memory.reader import MemReader

ATTEMPTS: Final = 10


class TurnMemory:
    """The raw turns of any number of scopes (conversations), searched by meaning."""

    def __init__(self, store: MemoryStore) -> None:
        """For `TurnMemory.open`."""
        self._store = store
        self._recall = Recall(store, None)

    @classmethod
    def open(cls, path: Path | str, embedder: Embedder) -> TurnMemory:
        """Open the memory in the folder `path`, or create it.

        Raises BadInput when the place cannot be used or another embedder made the memory.
        """
        return cls(MemoryStore(MemorySettings(path=Path(path)), embedder))

    def close(self) -> None:
        """Let go of all files. Closing twice is harmless."""
        self._recall.close()
        self._store.close()

    def __enter__(self) -> TurnMemory:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def add_turns(
        self, scope: str, turns: Sequence[RawTurn], *, reader: MemReader | None = None
    ) -> int:
        """Store the turns in the order they were said; returns how many were new.

        reader: whose facts of the new turns are remembered with them, for `ranked` searches.

        A turn that the scope holds already is left as it is, so adding twice is safe. Raises
        BadInput, before anything is stored, when one id comes with two different contents or a text
        cannot be stored.
        """
        owner = _scope(scope)
        for turn in turns:
            for text in (turn.id, turn.speaker, turn.text, turn.caption or ""):
                check_unicode(text, f"turn {turn.id!r}")
        with self._store.writing(owner.owner):
            for _ in range(ATTEMPTS):
                new = _unknown(turns, self._state(scope).turns_by_id)
                events = [heard(turn, owner) for turn in new]
                events += _facts(new, reader, owner) if reader else []
                try:
                    self._store.write(owner.owner, events)
                    return len(new)
                except Conflict:
                    continue  # another process stored some of them: look again
        raise MemogradError(
            f"The turns of {scope!r} were changed by others {ATTEMPTS} times while this call stored"
            " some: nothing was written, try again."
        )

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
        ranked: bool = False,
    ) -> list[list[RetrievedTurn]]:
        """`search` for several queries, embedded in one batch; one result a query.

        ranked: as `Memory.search` ranks turns; its scores are probabilities.
        """
        _check_top_k(top_k)
        for query in queries:
            check_unicode(query, "a query")
        if ranked:
            return [
                fill_budget(
                    self._ranked(query, scope, top_k),
                    token_budget=token_budget,
                    count_tokens=count_tokens,
                )
                for query in queries
            ]
        state = self._state(scope)
        places = {turn.id: place for place, turn in enumerate(state.turns)}
        found = []
        for vector in self._store.embedder.embed_queries(queries):
            nearest = [
                RetrievedTurn(hit.record, hit.score, rank, places[hit.record.id])
                for rank, hit in enumerate(state.turns.dense(vector, k=top_k, eligible=None), 1)
            ]
            found.append(fill_budget(nearest, token_budget=token_budget, count_tokens=count_tokens))
        return found

    def _ranked(self, query: str, scope: str, top_k: int) -> list[RetrievedTurn]:
        """The best turns; "last week" counts from the day on which the conversation ended."""
        turns = self._state(scope).turns
        places = {turn.id: place for place, turn in enumerate(turns)}
        ended = max((turn.time for turn in turns if turn.time), default=None)
        request = SearchRequest(
            query, scope_filter(run_id=scope), top_k=1, turns=top_k, asked_at=ended
        )
        return [
            RetrievedTurn(hit.record, hit.score, rank, places[hit.record.id])
            for rank, hit in enumerate(self._recall.search(request).turns, start=1)
        ]

    def last_turns(
        self, scope: str, *, top_k: int, token_budget: int, count_tokens: Callable[[str], int]
    ) -> list[RetrievedTurn]:
        """The baseline without search: the `top_k` most recent turns, as far as they fit."""
        _check_top_k(top_k)
        placed = list(enumerate(self._state(scope).turns))
        latest = sorted(placed, key=lambda pair: (pair[1].session, pair[0]), reverse=True)
        ranked = [
            RetrievedTurn(turn, 0.0, rank, place)
            for rank, (place, turn) in enumerate(latest[:top_k], start=1)
        ]
        return fill_budget(ranked, token_budget=token_budget, count_tokens=count_tokens)

    def count(self, scope: str) -> int:
        """How many turns the scope holds."""
        return len(self._state(scope).turns)

    def _state(self, scope: str) -> MemoryState:
        return self._store.states.current(_scope(scope).owner)


def _scope(name: str) -> Scope:
    if not name:
        raise BadInput("A memory scope must not be empty: name the conversation it belongs to.")
    return Scope(run_id=name)


def _facts(turns: Sequence[RawTurn], reader: MemReader, scope: Scope) -> list[NewEvent]:
    """What the reader finds, remembered as it stands: nothing is decided between facts."""
    written = []
    for number, fact in enumerate(reader.read(turns)):
        told = fact.told_at or datetime.now(UTC)
        item = MemoryItem(
            id=hashlib.sha256(f"{number}\0{fact.sources}\0{fact.text}".encode()).hexdigest()[:32],
            text=fact.text,
            scope=scope,
            kind=fact.kind,
            created_at=told,
            updated_at=told,
            valid_from=fact.valid_from,
            sources=fact.sources,
        )
        written.append(added(item, actor="reader", reason="what the turn says"))
    return written


def _unknown(turns: Sequence[RawTurn], stored: Mapping[str, RawTurn]) -> list[RawTurn]:
    """Those that are not stored, each once; BadInput for a stored id with other content."""
    known = dict(stored)
    new = []
    for turn in turns:
        if turn.id not in known:
            known[turn.id] = turn
            new.append(turn)
        elif known[turn.id] != turn:
            raise BadInput(
                f"Turn {turn.id!r} is stored already with other content: give a turn that says"
                " something else an id of its own."
            )
    return new


def _check_top_k(top_k: int) -> None:
    if top_k < 1:
        raise BadInput(f"top_k is {top_k}: ask for at least one turn.")
