"""Where memories are kept: the journal, and everything that is computed from it.

The journal is the truth. Writing appends to it and does nothing else; reading folds it into states
(`states`) or, when a query reaches further than states should, asks the Milvus index (`index`),
which catches up with the journal first. So there is no second copy to keep in step by hand.

Invariant: **scope is a wall**: a read that names an owner touches the events of that owner only.
"""

from __future__ import annotations

import random
import threading
import time
import zlib
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
from memograd.memory.state.derived_texts import DerivedTexts
from memograd.memory.state.owners import States

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from memograd.memory.embedders import Embedder
    from memograd.memory.filters import Filter

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


def embedder_meta(embedder: Embedder) -> dict[str, str]:
    """What the journal notes about the embedder that made its vectors."""
    return {"embedder": embedder.name, "dimension": str(embedder.dimension)}


def journal_url(settings: MemorySettings) -> str | URL:
    """Where the journal is: the URL of the settings, else a SQLite file in their folder."""
    if settings.journal_url:
        return settings.journal_url
    folder = Path(settings.path).expanduser().resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
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
