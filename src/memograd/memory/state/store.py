"""Where memories are kept: the journal, and everything that is computed from it.

The journal is the truth. Writing appends to it and does nothing else; reading folds it into
`States` or, when a query reaches further than states should, asks the Milvus index, which catches
up with the journal first. So there is no second copy to keep in step by hand.

A state is folded when it is first needed and afterwards catches up by tailing the journal, so what
any process has written is seen by the next read. The least recently used states are let go when all
of them together hold too many records; they can always be folded again.

Invariants: **scope is a wall**: a read that names an owner touches the events of that owner only. A
state that was read holds exactly what folding the owner's events from the beginning gives. Readers
get forks, which nobody changes under their hands.
"""

from __future__ import annotations

import random
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory.embedders import CachedEmbedder
from memograd.memory.journal import Journal, sqlite_url
from memograd.memory.records.events import RECORDS, Event, EventKind, NewEvent
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.turns import RawTurn
from memograd.memory.state import MemoryState
from memograd.memory.state.derived_texts import DerivedTexts, WordsFirst
from memograd.memory.state.memory_state import Analysed
from memograd.memory.text_caches import drop_texts

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from memograd.memory.embedders import Embedder
    from memograd.memory.filters import Filter
    from memograd.memory.records.events import Event

HELD_RECORDS: Final = 300_000  # about 0.8 GB at 384 dimensions
HELD_MOMENTS: Final = 8
# What going back costs, in events that are folded meanwhile.
EVENTS_A_SUBJECT: Final = 2
ROWS_AN_EVENT: Final = 25
WRITER_LOCKS: Final = 64
LEAST_WAIT: Final = 0.005  # seconds; 0.16 at most


class MemoryStore:
    """An open journal with its states, its derived texts and, once it is needed, its index."""

    def __init__(self, settings: MemorySettings, embedder: Embedder) -> None:
        """Open what the settings name, or create it.

        Raises BadInput when the place cannot be used or another embedder made it.
        """
        self.settings = settings
        self.embedder: Embedder = CachedEmbedder(embedder)
        self.journal = Journal.open(journal_url(settings))
        try:
            self._check_embedder()
        except BaseException:
            self.journal.close()
            raise
        self.texts = DerivedTexts(self.journal, self.embedder)
        self.states = States(self.journal, self.texts, embedder.dimension)
        self._writers = [threading.Lock() for _ in range(WRITER_LOCKS)]

    def close(self) -> None:
        """Let go of all files and connections, once every text has its vector.

        Closing twice is harmless.
        """
        self.texts.finish()
        self.journal.close()

    @staticmethod
    def now() -> datetime:
        """The present moment, in UTC."""
        return datetime.now(UTC)

    # Writing

    def write(
        self,
        owner: str,
        events: Sequence[NewEvent],
        *,
        expect: Mapping[str, int] | None = None,
        expect_last: int | None = None,
    ) -> list[Event]:
        """Append events of one owner in one transaction.

        What their texts need for search is written with them where it is known already, and
        computed behind the answer where it is not. Raises `Conflict`, having written nothing, if an
        item in `expect` has a later event, or if the owner's newest event is not `expect_last`.
        """
        if not events:
            return []
        texts = _searchable_texts(events)
        written = self.journal.append(
            events,
            expect=expect,
            expect_last=None if expect_last is None else {owner: expect_last},
            derived=self.texts.prepare(owner, texts),
            embedder=self.embedder.name,
        )
        self.texts.embed_behind(owner, texts, seen=written[-1].seq)
        return written

    @contextmanager
    def writing(self, owner: str) -> Iterator[None]:
        """One decision at a time for an owner, here and in other processes."""
        here = self._writers[zlib.crc32(owner.encode()) % WRITER_LOCKS]
        with here, self.journal.deciding(owner):
            yield

    @staticmethod
    def step_aside(attempt: int) -> None:
        """Wait a random moment, longer after more attempts, so that colliding writers part."""
        time.sleep(random.uniform(0, LEAST_WAIT * 2 ** min(attempt, 5)))

    def forget(self, owner: str) -> None:
        """Let go of what the process holds of an owner, as after a purge."""
        self.states.forget(owner)
        self.texts.forget(owner)

    # Reading

    def owners(self, wanted: Filter) -> list[str]:
        """The owners whose items the filter may let through."""
        users = wanted.pinned("user_id")
        if users is not None:
            return [f"user:{user}" for user in sorted(users)]
        owners: set[str] = set()
        agents, runs = wanted.pinned("agent_id"), wanted.pinned("run_id")
        for agent in sorted(agents) if agents is not None else [None]:
            for run in sorted(runs) if runs is not None else [None]:
                owners.update(self.journal.owners(agent_id=agent, run_id=run))
        return sorted(owners)

    def item(self, item_id: str) -> MemoryItem | None:
        """The item as it stands, or None when it never was or is no more."""
        latest = self.journal.latest(item_id)
        if latest is None or latest.kind not in (EventKind.ADD, EventKind.UPDATE):
            return None
        return None if latest.after is None else MemoryItem.from_json(latest.after)

    def turn(self, owner: str, turn_id: str) -> RawTurn | None:
        """The raw turn that is searched under this id, or None when there is none (any more)."""
        latest = self.journal.latest(turn_id, owner=owner)
        if latest is None or latest.kind is not EventKind.TURN or latest.scope.owner != owner:
            return None
        if latest.after is None or latest.after["verbatim"]:
            return None
        return RawTurn.from_json(latest.after["turn"])

    def _check_embedder(self) -> None:
        """Remember who made the vectors, or refuse to mix them with others'."""
        embedder = self.embedder
        wanted = embedder_meta(embedder)
        found = self.journal.set_meta_all(wanted, if_absent=True)
        made_by, dimension = found["embedder"], found["dimension"]
        if found != wanted:
            raise BadInput(
                f"The memory in {self.settings.path} was made with the embedder {made_by!r}"
                f" ({dimension} dimensions), not {embedder.name!r} ({embedder.dimension}): open it"
                f" with the first, or run memograd memory reindex --embedder {embedder.name}."
            )


class States:
    """The folded states of a journal's owners."""

    def __init__(self, journal: Journal, texts: DerivedTexts, dimension: int) -> None:
        self._journal, self._texts, self._dimension = journal, texts, dimension
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._held = 0  # records in all slots
        self._moments: OrderedDict[tuple[str, int, int], MemoryState] = OrderedDict()
        self._lock = threading.Lock()

    def current(self, owner: str, *, turn_vectors: bool = True) -> MemoryState:
        """The owner's state, up to date; a fork of the caller's own.

        turn_vectors: False where nobody searches the turns by meaning: those that were just heard
        may have no vectors yet, and nobody waits for them.
        """
        with self._lock:
            slot = self._slots.get(owner) or _Slot()
            if owner in self._slots:
                self._slots.move_to_end(owner)
        with slot.lock:
            state = slot.state or MemoryState(self._dimension)
            events = self._journal.tail(owner, after=state.seq)
            if state.seq and any(event.kind is EventKind.PURGE for event in events):
                self._texts.forget(owner)  # another process purged: nothing of it stays here either
                drop_texts()
            if events:
                self._fold(owner, state, events, turn_vectors)
                slot.state = state
                self._keep(owner, slot)
            if turn_vectors:
                state.fill(lambda texts: self._texts.look_up(owner, texts, seen=state.seq))
            return state.fork()

    def at(self, owner: str, moment: datetime) -> MemoryState:
        """A state of its own: what the memory had learnt by `moment`."""
        # A purge erases the past too, so a state from before it must not be used again.
        key = (owner, self._journal.seq_at(owner, moment), self._journal.last_purge(owner))
        with self._lock:
            held = self._moments.get(key)
        if held is None:
            held = self._made(*key, moment)
            with self._lock:
                self._moments[key] = held
                while len(self._moments) > HELD_MOMENTS:
                    self._moments.popitem(last=False)
        return held.fork()

    def _made(self, owner: str, place: int, purged: int, moment: datetime) -> MemoryState:
        """The state after the event at `place`, the last one by `moment`, made of what is held.

        The nearest one before it is folded on, or the nearest one behind it goes back, whichever
        reads less of the journal.
        """
        journal = self._journal
        with self._lock:
            slot = self._slots.get(owner)
            moments = [
                state
                for (whose, _, until), state in self._moments.items()
                if (whose, until) == (owner, purged)
            ]
        if slot is not None and slot.state is not None:
            moments.append(self.current(owner))
        before = max(
            (state for state in moments if state.seq <= place),
            key=lambda state: state.seq,
            default=MemoryState(self._dimension),
        )
        behind = min(
            (state for state in moments if state.seq >= place),
            key=lambda state: state.seq,
            default=None,
        )
        if behind is not None and before.seq < place:
            changed = journal.changed_between(owner, place, behind.seq)
            work = EVENTS_A_SUBJECT * len(changed.subjects)
            if changed.subjects:
                work += (len(behind.items) + len(behind.turns)) // ROWS_AN_EVENT
            if not changed.everything and work <= journal.count_between(owner, before.seq, place):
                subjects = changed.subjects and {*changed.subjects, owner}
                events = journal.histories(owner, subjects, until=place)

                def whole(texts: Sequence[str]) -> Sequence[Analysed]:
                    return self._texts.look_up(owner, texts, seen=place)

                return behind.went_back(place, changed.subjects, events, whole)
        state = before.fork()
        later = journal.tail(owner, after=state.seq, until=moment) if state.seq < place else []
        events = [event for event in later if event.seq <= place]  # one may have come just now
        if events:
            self._fold(owner, state, events)
        return state

    def holds(self, owners: Sequence[str]) -> bool:
        """Whether the states of all these owners are folded already."""
        with self._lock:
            slots = [self._slots.get(owner) for owner in owners]
        return all(slot is not None and slot.state is not None for slot in slots)

    def forget(self, owner: str | None = None) -> None:
        """Let go of an owner's states, or of all."""
        with self._lock:
            for key in [key for key in self._moments if owner in (None, key[0])]:
                del self._moments[key]
            for name in [name for name in self._slots if owner in (None, name)]:
                self._drop(name)

    def _fold(
        self, owner: str, state: MemoryState, events: Sequence[Event], turn_vectors: bool = True
    ) -> None:
        def whole(texts: Sequence[str]) -> Sequence[Analysed]:
            return self._texts.look_up(owner, texts, seen=events[-1].seq)

        def words_first(texts: Sequence[str]) -> Sequence[WordsFirst]:
            return self._texts.words_first(owner, texts)

        state.fold(events, whole, whole if turn_vectors else words_first)

    def _keep(self, owner: str, slot: _Slot) -> None:
        """Hold a slot as the most recently used, and let go of others while too much is held."""
        assert slot.state is not None
        with self._lock:
            if owner in self._slots:
                self._drop(owner)
            slot.records = len(slot.state.items) + len(slot.state.turns)
            self._held += slot.records
            self._slots[owner] = slot
            while self._held > HELD_RECORDS and len(self._slots) > 1:
                self._drop(next(iter(self._slots)))

    def _drop(self, owner: str) -> None:
        self._held -= self._slots.pop(owner).records


class _Slot:
    """One owner's place: its lock, its state once it was folded, and how much that holds."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.state: MemoryState | None = None
        self.records = 0


def embedder_meta(embedder: Embedder) -> dict[str, str]:
    """What the journal notes about the embedder that made its vectors."""
    return {"embedder": embedder.name, "dimension": str(embedder.dimension)}


def journal_url(settings: MemorySettings) -> str | URL:
    """Where the journal is: the URL of the settings, else a SQLite file in their folder."""
    if settings.journal_url:
        return settings.journal_url
    folder = Path(settings.path).expanduser().resolve()
    try:
        # What people said is for whoever runs this, not for all users of the machine.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise BadInput(
            f"The memory path {folder} is a file, but a memory is a directory: choose another path."
        ) from None
    except OSError as error:
        raise BadInput(
            f"The memory {folder} cannot be created ({error.strerror}): choose another path."
        ) from None
    return sqlite_url(folder / "journal.db")


def _searchable_texts(events: Sequence[NewEvent]) -> list[str]:
    """The texts that a state will need vectors for when it folds these events."""
    texts = []
    for event in events:
        after = event.after
        if after is None or event.kind in RECORDS:
            continue
        if event.kind is not EventKind.TURN:
            texts.append(after["text"])
        elif not after["verbatim"]:
            texts.append(RawTurn.from_json(after["turn"]).index_text())
    return texts
