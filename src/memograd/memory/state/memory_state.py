"""What one owner remembers, folded from the journal's events: items, and the turns behind them.

    TURN    the turn is added; with `verbatim`, as older versions said where an item says the same,
            it is kept for reference but not searched
    ADD     the item is added                     UPDATE  its new version takes its place
    DELETE  the item is removed                   ANSWER, FEEDBACK    nothing
    NONE    where it names a living item, its turns said that again (`said_again.py`)
    FORGET  the turn is kept for reference from now on, no longer searched
    PURGE   the subject is removed; everything is, when the subject is the owner
    erased  an event whose contents a purge took away: nothing

An event that does not fit, such as a second DELETE, changes nothing either. The journal refuses
such events (`journal/fit.py`), but may have got one otherwise, and stays readable then.

Folding computes first what is left at the end and asks for vectors and terms of that alone, all
at once, before it changes anything: opening a long journal costs no more than its living records,
and an embedder that fails leaves the state as it was.

Invariant: folding a journal at once, in pieces or event by event gives the same state, and a fork
never sees what happens to its parent; going back (`went_back`) gives what folding up to there
gives. Turns may be folded in before their vectors are known (`fold` with `turns_lookup`); once
`fill` gave them, nothing tells that they came late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic

import numpy as np

from memograd.errors import BadInput
from memograd.memory.records.events import RECORDS, Event, EventKind, said_again
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn
from memograd.memory.state.corpus import Corpus
from memograd.memory.state.said_again import Link, SaidAgain
from memograd.memory.state.segment import T

Analysed = tuple[np.ndarray, Sequence[str]]  # of one text: unit vector float32 [d], search terms
Lookup = Callable[[str], Analysed]
LookupMany = Callable[[Sequence[str]], Sequence[Analysed]]  # one answer a text, in order
Incomplete = tuple[np.ndarray | None, Sequence[str]]  # the vector is still to come
LookupWords = Callable[[Sequence[str]], Sequence[Incomplete]]

logger = logging.getLogger(__name__)

# What reading an item or a turn raises when its JSON is not one.
NOT_READABLE = (BadInput, KeyError, TypeError, ValueError, AttributeError)
_NO_VECTOR = np.zeros(0, np.float32)


class MemoryState:
    """The living items and turns of one owner at one moment of the journal.

    items: searched first. turns: raw turns that are searched. turns_by_id: these, the verbatim and
    the forgotten ones. seq: the last event that has been folded in, 0 before the first. dimension:
    the length of the embedder's vectors.
    """

    def __init__(self, dimension: int) -> None:
        self.items: Corpus[MemoryItem] = Corpus(dimension)
        self.turns: Corpus[RawTurn] = Corpus(dimension)
        self.seq = 0
        self.proposed = False
        self._verbatim: Corpus[RawTurn] = Corpus(0)
        # Ids of what ends by itself, with the moment; never changed, but put in place anew.
        self._items_until: Mapping[str, datetime] = {}
        self._turns_until: Mapping[str, datetime] = {}
        self._unfilled: frozenset[str] = frozenset()  # turns whose vectors are still to come
        self._again = SaidAgain()

    @classmethod
    def from_events(
        cls, events: Iterable[Event], lookup_many: LookupMany, *, dimension: int
    ) -> MemoryState:
        """The state after all these events of one owner; raises as `fold` does."""
        state = cls(dimension)
        state.fold(events, lookup_many)
        return state

    @staticmethod
    def union(states: Sequence[MemoryState], *, dimension: int) -> MemoryState:
        """What several owners remember, as one state to read; shares their memory."""
        union = MemoryState(dimension)
        if states:
            union.items = Corpus.union([state.items for state in states])
            union.turns = Corpus.union([state.turns for state in states])
            union._verbatim = Corpus.union([state._verbatim for state in states])
            union._items_until = _joined([state._items_until for state in states])
            union._turns_until = _joined([state._turns_until for state in states])
            union._again = SaidAgain.union([state._again for state in states])
        return union

    def expired_items(self, at: datetime) -> frozenset[str]:
        """Ids of the items that have ended by themselves at that moment."""
        return frozenset(id for id, until in self._items_until.items() if until <= at)

    def expired_turns(self, at: datetime) -> frozenset[str]:
        """Ids of the turns that are hidden at that moment: ended, or behind ended items alone."""
        ended = frozenset(id for id, until in self._turns_until.items() if until <= at)
        gone = self.expired_items(at)
        if not gone:
            return ended
        behind: set[str] = set()
        living: set[str] = set()
        for item in self.items:
            (behind if item.id in gone else living).update(self.turns_behind(item))
        return ended | (behind - living)

    def turns_behind(self, item: MemoryItem) -> list[str]:
        """Ids of all turns that told of an item: its sources, and those that said it again."""
        return list(dict.fromkeys((*item.sources, *self._again.of(item.id))))

    def said_again_in(self, turns: Collection[str]) -> dict[str, list[str]]:
        """The living items that these turns said again, by id, as they still are; their turns."""
        found: dict[str, list[str]] = {}
        for turn, link in self._again.among(turns):
            item = self.items.get(link.item_id)
            if item is not None and item.text == link.text:
                found.setdefault(item.id, []).append(turn)
        return found

    @property
    def turns_by_id(self) -> Mapping[str, RawTurn]:
        """Every turn that has not been purged, by its id, as of this moment."""
        return _TurnsById(self.turns.fork(), self._verbatim.fork())

    def last_turns(self, k: int) -> list[RawTurn]:
        """The up to k turns heard last, those that are searched no more too; oldest first."""
        found = [*reversed(self.turns.last(k)), *reversed(self._verbatim.last(k))]
        found.sort(key=lambda turn: turn.time.timestamp() if turn.time else 0.0)
        return found[-k:]

    def fork(self) -> MemoryState:
        """A state that holds the same now and goes its own way; costs the same at any size."""
        fork = MemoryState(0)
        fork.items = self.items.fork()
        fork.turns = self.turns.fork()
        fork.seq = self.seq
        fork._verbatim = self._verbatim.fork()
        fork._items_until, fork._turns_until = self._items_until, self._turns_until
        fork._unfilled = self._unfilled
        fork._again = self._again
        return fork

    # Writing without a journal, as rollouts do

    def add_item(self, item: MemoryItem, vector: np.ndarray, terms: Sequence[str]) -> None:
        """Add an item; raises ValueError when its id is taken or the vector does not fit."""
        self.items.add(item, vector, terms)
        self._items_until = _with_ends(self._items_until, [item])

    def replace_item(self, item: MemoryItem, vector: np.ndarray, terms: Sequence[str]) -> None:
        """Put a new version in place of the one with the same id; it becomes the most recent item.

        Raises KeyError when there is no such item, ValueError when the vector does not fit.
        """
        self.items.replace(item, vector, terms)
        self._items_until = _with_ends(_without(self._items_until, [item.id]), [item])

    def remove_item(self, id: str) -> MemoryItem:
        """Remove an item and return it; raises KeyError when it is absent."""
        removed = self.items.remove(id)
        self._items_until = _without(self._items_until, [id])
        return removed

    def add_turn(self, turn: RawTurn, vector: np.ndarray, terms: Sequence[str]) -> None:
        """Add a turn that is searched; raises ValueError when its id is taken."""
        if turn.id in self._verbatim:
            raise ValueError(f"there is a turn with the id {turn.id!r} already")
        self.turns.add(turn, vector, terms)
        self._turns_until = _with_ends(self._turns_until, [turn])

    def say_again(self, item_id: str, turns: Sequence[str]) -> None:
        """Turns said what an item says already; nothing, where it lives no longer."""
        item = self.items.get(item_id)
        if item is not None and turns:
            link = Link(self.seq, item_id, tuple(turns), item.text)
            self._again = self._again.with_links([link])

    # Folding the journal

    def apply(self, event: Event, lookup: Lookup) -> None:
        """Fold one event in; `lookup` gives vector and terms of a text. Raises as `fold` does."""
        self.fold([event], lambda texts: [lookup(text) for text in texts])

    def fill(self, lookup_many: LookupMany) -> None:
        """Give the turns that were folded in without vectors theirs."""
        turns = [turn for id in self._unfilled if (turn := self.turns.get(id)) is not None]
        if turns:
            analysed = lookup_many([turn.index_text() for turn in turns])
            vectors = {turn.id: row for turn, (row, _) in zip(turns, analysed, strict=True)}
            self.turns = self.turns.with_vectors(vectors)
        self._unfilled = frozenset()

    def fold(
        self,
        events: Iterable[Event],
        lookup_many: LookupMany,
        turns_lookup: LookupWords | None = None,
    ) -> None:
        """Fold events of one owner in, in the order of the journal, all or none.

        `lookup_many` is asked once for the texts of the items and once for those of the turns that
        are left at the end, or `turns_lookup`, which may leave vectors for `fill`. An event that
        does not fit what came before it, or whose contents are none, is passed over with a warning:
        one such event must not keep an owner from all that is remembered. Raises ValueError when an
        event is not later than the ones folded before.
        """
        items = _Changes(self.items)
        turns = _Changes(self.turns)
        verbatim = _Changes(self._verbatim)
        again, links, purged = self._again, list[Link](), dict[str, int]()
        seq = self.seq
        for event in events:
            if event.seq <= seq:
                raise ValueError(f"event {event.seq} is folded after event {seq}")
            seq = event.seq
            match event.kind:
                case EventKind.PURGE if event.subject == event.scope.owner:
                    for changes in (items, turns, verbatim):
                        changes.clear()
                    again, links, purged = SaidAgain(), [], {}
                case EventKind.PURGE:
                    for changes in (items, turns, verbatim):
                        changes.discard(event.subject)
                    purged[event.subject] = seq
                case EventKind.NONE if not event.erased and (told := said_again(event)):
                    item = items.get(told[0])
                    if item is not None and told[1]:
                        links.append(Link(seq, item.id, told[1], item.text))
                case _ if event.erased or event.kind in RECORDS:
                    pass
                case EventKind.TURN:
                    turn = _turn(event)
                    if turn is None or turn.id in turns or turn.id in verbatim:
                        _pass_over(event)
                    else:
                        (verbatim if _is_verbatim(event) else turns).add(turn, seq)
                case EventKind.FORGET:
                    forgotten = turns.get(event.subject)
                    if forgotten is not None:  # else it was not searched anyway
                        turns.discard(forgotten.id)
                        verbatim.add(forgotten, seq)
                case EventKind.ADD | EventKind.UPDATE:
                    item = _item(event)
                    if item is None or (item.id in items) != (event.kind is EventKind.UPDATE):
                        _pass_over(event)
                    else:
                        items.discard(item.id)
                        items.add(item, seq)
                case EventKind.DELETE:
                    if event.subject in items:
                        items.discard(event.subject)
                    else:
                        _pass_over(event)
        new_items, _ = items.applied(lookup_many, lambda item: item.text)
        new_turns, unfilled = turns.applied(turns_lookup or lookup_many, RawTurn.index_text)
        new_verbatim, _ = verbatim.applied(
            lambda texts: [(_NO_VECTOR, ())] * len(texts), RawTurn.index_text
        )
        self.items, self.turns, self._verbatim = new_items, new_turns, new_verbatim
        self._items_until = items.ends(self._items_until)
        self._turns_until = turns.ends(self._turns_until)
        self._unfilled |= unfilled
        self._again = (again.with_links(links) if links else again).without(purged)
        self.seq = seq

    def went_back(
        self,
        seq: int,
        changed: Collection[str],
        histories: Iterable[Event],
        lookup_many: LookupMany,
    ) -> MemoryState:
        """The state after the event `seq`, an earlier one, which folding up to there gives.

        changed: the subjects of all events behind it that may take a record away (`CLOSING`); none
        of them may be the owner. histories: their events up to `seq`, with those that purged the
        owner. What happened to one subject does not depend on other subjects, so their histories
        alone are folded; everything else is here already.
        """
        before = MemoryState(self.items.dimension)
        before.fold(histories, lookup_many)
        past = MemoryState(self.items.dimension)
        past.items = self.items.went_back(seq, changed, before.items)
        past.turns = self.turns.went_back(seq, changed, before.turns)
        past._verbatim = self._verbatim.went_back(seq, changed, before._verbatim)
        past._items_until = {
            **_of_those(past.items, _without(self._items_until, changed)),
            **before._items_until,
        }
        past._turns_until = {
            **_of_those(past.turns, _without(self._turns_until, changed)),
            **before._turns_until,
        }
        past._again = self._again.until(seq)
        past.seq = seq
        return past


class _Changes(Generic[T]):
    """What a fold is going to change in a corpus: records that leave it, records that come."""

    def __init__(self, corpus: Corpus[T]) -> None:
        self._corpus = corpus
        self._cleared = False
        self._left: dict[str, None] = {}
        self._came: dict[str, T] = {}
        self._since: dict[str, int] = {}

    def __contains__(self, id: str) -> bool:
        return id in self._came or self._stays(id)

    def get(self, id: str) -> T | None:
        return self._came.get(id) or (self._corpus.get(id) if self._stays(id) else None)

    def add(self, record: T, seq: int) -> None:
        self._came[record.id] = record
        self._since[record.id] = seq

    def discard(self, id: str) -> None:
        self._came.pop(id, None)
        if self._stays(id):
            self._left[id] = None

    def clear(self) -> None:
        self._came.clear()
        self._cleared = True

    def applied(
        self, lookup_many: LookupWords, text_of: Callable[[T], str]
    ) -> tuple[Corpus[T], frozenset[str]]:
        """The corpus after the changes, and what of it has no vector yet but zeros.

        The corpus before is left as it is.
        """
        unfilled: frozenset[str] = frozenset()
        after = Corpus[T](self._corpus.dimension) if self._cleared else self._corpus.fork()
        for id in () if self._cleared else self._left:
            after.remove(id)
        if self._came:
            records = list(self._came.values())
            analysed = lookup_many([text_of(record) for record in records])
            nothing = np.zeros(self._corpus.dimension, np.float32)
            vectors = [nothing if vector is None else vector for vector, _ in analysed]
            since = [self._since[record.id] for record in records]
            after.add_many(records, vectors, [terms for _, terms in analysed], since)
            found = zip(records, analysed, strict=True)
            unfilled = frozenset(record.id for record, (vector, _) in found if vector is None)
        return after, unfilled

    def ends(self, known: Mapping[str, datetime]) -> Mapping[str, datetime]:
        """When what is left ends by itself. known: the same before the changes."""
        before = {} if self._cleared else _without(known, self._left)
        return _with_ends(before, self._came.values())

    def _stays(self, id: str) -> bool:
        return not self._cleared and id not in self._left and id in self._corpus


class _TurnsById(Mapping[str, RawTurn]):
    """The turns of two corpora as one mapping; nothing is copied."""

    def __init__(self, searched: Corpus[RawTurn], verbatim: Corpus[RawTurn]) -> None:
        self._corpora = (searched, verbatim)

    def __getitem__(self, id: str) -> RawTurn:
        for corpus in self._corpora:
            turn = corpus.get(id)
            if turn is not None:
                return turn
        raise KeyError(id)

    def __iter__(self) -> Iterator[str]:
        return (turn.id for corpus in self._corpora for turn in corpus)

    def __len__(self) -> int:
        return sum(map(len, self._corpora))


def _joined(several: Sequence[Mapping[str, datetime]]) -> Mapping[str, datetime]:
    return {id: until for one in several for id, until in one.items()}


def _without(known: Mapping[str, datetime], ids: Iterable[str]) -> Mapping[str, datetime]:
    gone = known.keys() & set(ids) if known else ()
    return {id: until for id, until in known.items() if id not in gone} if gone else known


def _with_ends(known: Mapping[str, datetime], records: Iterable[Any]) -> Mapping[str, datetime]:
    new = {one.id: one.expires_at for one in records if one.expires_at is not None}
    return {**known, **new} if new else known


def _of_those(corpus: Corpus[Any], known: Mapping[str, datetime]) -> Mapping[str, datetime]:
    return {id: until for id, until in known.items() if id in corpus}


def _item(event: Event) -> MemoryItem | None:
    """The item in an ADD or UPDATE, None when there is none that belongs to the event."""
    try:
        item = MemoryItem.from_json(event.after or {})
    except NOT_READABLE:
        return None
    return item if item.id == event.subject and isinstance(item.text, str) else None


def _turn(event: Event) -> RawTurn | None:
    """The turn in a TURN, None when there is none that belongs to the event."""
    try:
        turn = replace(RawTurn.from_json((event.after or {})["turn"]), scope=event.scope)
        turn.index_text()
    except NOT_READABLE:
        return None
    return turn if turn.id == event.subject else None


def _is_verbatim(event: Event) -> bool:
    return (event.after or {}).get("verbatim") is True


def _pass_over(event: Event) -> None:
    logger.warning(
        "Event %d of the journal (%s of %r of %s) does not fit the events before it and is passed"
        " over: two copies of the journal were mixed, or it was changed by hand.",
        event.seq,
        event.kind,
        event.subject,
        event.scope.owner,
    )
