"""Several servers as one: work goes to whoever is there, and every piece of it is done once.

A piece is one prompt with its answers. It goes to the server with the fewest pieces; if that one is
gone, breaks off or takes too long, the piece goes to another, whole. A server that was away is
asked again before it is given work, and gets the versions that it has missed; one that restarted
and knows them no more (404) gets them too.

Servers that hold one version only (`WeightsServer`) have the newest. An answer of theirs counts if
it was drawn by the version that was asked for, or by newer ones; where it names another, the server
restarted or somebody else told it to load something, and it is told again.

Invariants: `answer_all` returns one result a piece, in their order, whoever computed it, and what a
server says after it was given up is never read; at most the pieces that a server was at are done
again; no call waits longer than `patience` for a server to come back, and then it raises.
"""

from __future__ import annotations

import fcntl
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memograd.errors import BadInput
from memograd.policy.remote.adapters import ServedVersion
from memograd.policy.remote.server import (
    AnswersWanted,
    SamplingFailed,
    ServedAnswers,
    ServerGone,
    ServerRefused,
    VllmServer,
)

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.25
"""Between two looks for a server that came back."""
LOAD_TRIES: Final = 3
"""How often a server is told to load a version that it refuses: files may reach it late."""
UNKNOWN: Final = 404
"""What a server answers that does not know the model that is asked for."""
LOCK: Final = ".loading-"
"""Beginning of the name of a file in the folder of versions: who tells a server to exchange its
weights holds the server's."""


@dataclass(eq=False)
class _Place:
    """One server, what it has loaded, how many pieces it is at, and why it is away, if it is."""

    server: VllmServer
    loaded: set[str] = field(default_factory=set)
    busy: int = 0
    away: str | None = None
    loading: threading.Lock = field(default_factory=threading.Lock)


class ServerPool:
    """Servers that all serve the same model.

    holds_one: they hold one version at a time. folder: where versions are written, which all
    servers can read. patience: seconds that work may wait for any server to be there. connections:
    pieces that a server is given at once.
    """

    def __init__(
        self,
        servers: Sequence[VllmServer],
        folder: Path,
        *,
        patience: float = 120.0,
        connections: int = 64,
    ) -> None:
        self.folder = folder
        self._places = [_Place(server) for server in servers]
        self._versions: dict[str, ServedVersion] = {}
        self._patience = patience
        self._connections = connections
        self._state = threading.Lock()
        self._closed = threading.Event()
        self.model, self.longest = self._same_model()
        self.holds_one = servers[0].holds_one
        for server in servers:
            server.check_fit()

    def close(self) -> None:
        """Close all connections; versions that are loaded stay loaded (`unload` them before)."""
        self._closed.set()
        for place in self._places:
            place.server.close()

    @property
    def away(self) -> dict[str, str]:
        """The servers that are not there, and why."""
        with self._state:
            return {place.server.url: place.away for place in self._places if place.away}

    def load(self, version: ServedVersion) -> None:
        """Let every server that is there answer as this version; at least one must.

        Raises `SamplingFailed` if none can within the patience, and `OSError` if it cannot be
        written.
        """
        version.write(self.folder)
        self.know(version)
        ends = time.monotonic() + self._patience
        while True:
            present = self._present()
            with ThreadPoolExecutor(max_workers=len(present)) as threads:
                list(threads.map(lambda place: self._try_load(place, version.name), present))
            if any(version.name in place.loaded and not place.away for place in self._places):
                return
            if time.monotonic() > ends:
                raise SamplingFailed(
                    f"No sampling server could load {version.name} from {self.folder}: "
                    f"{self._why()}."
                )
            time.sleep(POLL_SECONDS)

    def know(self, version: ServedVersion) -> None:
        """Load it wherever work for it goes, from here on; it is the newest now."""
        self._versions[version.name] = version

    def unload(self, name: str) -> None:
        """Let all servers forget a version; its folder stays until all that are there have."""
        self._versions.pop(name, None)
        for place in self._places:
            if place.away or name not in place.loaded:
                continue
            try:
                place.server.unload(name)
            except ServerRefused as error:
                logger.warning("%s", error)
            except ServerGone as error:
                self._went_away(place, error)
            place.loaded.discard(name)

    def forget(self, name: str) -> None:
        """Load it nowhere any more; who loaded it lets the servers forget it."""
        self._versions.pop(name, None)

    def restore(self) -> None:
        """Let servers whose weights were exchanged have again what they were started with, and
        remove what exchanging needed. Those that do not say so in the log."""
        for number, place in enumerate(self._places):
            (self.folder / f"{LOCK}{number}").unlink(missing_ok=True)
            try:
                if place.away is None:
                    place.server.restore()
            except (ServerGone, ServerRefused) as error:
                logger.warning("a sampling server keeps the weights of this run: %s", error)

    def each(self, work: Callable[[VllmServer], None]) -> None:
        """Do something with every server that is there; one that fails is away."""
        for place in self._present():
            try:
                work(place.server)
            except ServerGone as error:
                self._went_away(place, error)
            except ServerRefused as error:
                raise SamplingFailed(f"{error}.") from error

    def answer_all(self, pieces: Sequence[AnswersWanted]) -> list[ServedAnswers]:
        """The answers to each piece, in their order.

        Raises `SamplingFailed` where a piece cannot be answered by any server; the others are given
        up then.
        """
        if not pieces:
            return []
        given_up = threading.Event()
        threads = ThreadPoolExecutor(
            max_workers=min(len(pieces), self._connections * len(self._places))
        )
        try:
            futures = [threads.submit(self._answer, piece, given_up) for piece in pieces]
            wait(futures, return_when=FIRST_EXCEPTION)
            failed = next((f.exception() for f in futures if f.done() and f.exception()), None)
            if failed is not None:
                raise failed
            return [future.result() for future in futures]
        finally:
            # Whoever is still waiting for an answer ends by itself, within its seconds.
            given_up.set()
            threads.shutdown(wait=False, cancel_futures=True)

    def answer_everywhere(self, piece: AnswersWanted) -> list[tuple[str, ServedAnswers]]:
        """What each server that is there answers to the same piece, by its URL."""
        found = []
        for place in self._present():
            try:
                found.append((place.server.url, self._ask(place, piece)))
            except ServerGone as error:
                self._went_away(place, error)
            except ServerRefused as error:
                raise SamplingFailed(f"{error}.") from error
        return found

    def answer(self, piece: AnswersWanted) -> ServedAnswers:
        """The answers to one piece; raises as `answer_all` does."""
        return self._answer(piece, threading.Event())

    def _answer(self, piece: AnswersWanted, given_up: threading.Event) -> ServedAnswers:
        tries, failed = 0, 0
        while not (given_up.is_set() or self._closed.is_set()):
            place = self._take(given_up)
            try:
                return self._ask(place, piece)
            except ServerGone as error:
                self._went_away(place, error)
                failed += 1
                # A piece that takes every server down must not wander for ever.
                if failed > 2 * len(self._places):
                    raise SamplingFailed(
                        f"No sampling server could answer a prompt of {len(piece.prompt)} tokens: "
                        f"{self._why()}."
                    ) from error
            except ServerRefused as error:
                unknown = error.status == UNKNOWN and self._has_versions_for(piece)
                if not unknown or tries == LOAD_TRIES:
                    raise SamplingFailed(f"{error}.") from error
                tries += 1
                # It restarted, and knows it no more.
                place.loaded.clear() if self.holds_one else place.loaded.discard(piece.model)
            finally:
                with self._state:
                    place.busy -= 1
        raise SamplingFailed("The work was given up, because another part of it failed.")

    def _take(self, given_up: threading.Event) -> _Place:
        """The server that a piece goes to; counted as busy with it."""
        ends = time.monotonic() + self._patience
        while True:
            with self._state:
                present = [place for place in self._places if place.away is None]
                if present:
                    place = min(present, key=lambda one: one.busy)
                    place.busy += 1
                    return place
            if given_up.is_set() or self._closed.is_set():
                raise SamplingFailed("The work was given up, because another part of it failed.")
            if self._look_again():
                continue
            if time.monotonic() > ends:
                raise SamplingFailed(
                    f"No sampling server came back within {self._patience:g} s: {self._why()}. "
                    "Start it again, and go on with the run by resume=FOLDER."
                )
            time.sleep(POLL_SECONDS)

    def _present(self) -> list[_Place]:
        """The servers that are there, those that came back among them; waits for one at least."""
        self._look_again()
        given_up = threading.Event()
        first = self._take(given_up)
        with self._state:
            first.busy -= 1
            return [place for place in self._places if place.away is None]

    def _look_again(self) -> bool:
        """Ask those that are away; returns whether one came back."""
        back = False
        for place in self._places:
            if place.away is None:
                continue
            try:
                place.server.check_health()
            except ServerGone:
                continue
            with self._state:
                place.loaded.clear()
                place.away = None
            back = True
            logger.info("the sampling server %s is back", place.server.url)
        return back

    def _try_load(self, place: _Place, name: str) -> None:
        try:
            self._load(place, name)
        except ServerGone as error:
            self._went_away(place, error)
        except ServerRefused as error:
            # It answers, but not as this version: nothing of the step may come from it.
            self._went_away(place, ServerGone(str(error)))

    def _ask(self, place: _Place, piece: AnswersWanted) -> ServedAnswers:
        """What a server answers, told before of what it has not loaded."""
        if self._has_versions_for(piece):
            self._load(place, piece.model)
        answers = place.server.answer(piece)
        if self.holds_one:
            self._check_drawn_by(place, piece, answers)
        return answers

    def _has_versions_for(self, piece: AnswersWanted) -> bool:
        return bool(self._versions) if self.holds_one else piece.model in self._versions

    def _check_drawn_by(self, place: _Place, piece: AnswersWanted, answers: ServedAnswers) -> None:
        """Raises `ServerRefused` where the server drew from what was not asked for."""
        known = list(self._versions)
        asked = known.index(piece.model) if piece.model in known else 0
        allowed = {piece.model, *known[asked:]}
        for drawn_by in {name for answer in answers.answers for name, _ in answer.spans}:
            if drawn_by not in allowed:
                raise ServerRefused(
                    f"{place.server.url} drew from {drawn_by!r} where {piece.model} was asked "
                    "for, and it was told to load that: does another run use it?",
                    UNKNOWN,
                )

    def _load(self, place: _Place, name: str) -> None:
        """Have `name` loaded there, or the newest, where there is room for one; raises
        `ServerGone`, or `ServerRefused` after several tries."""
        with place.loading:
            if self.holds_one:
                name = list(self._versions)[-1]
            if name in place.loaded:
                return
            folder = self._versions[name].write(self.folder)  # somebody may have removed it
            with self._alone_at(place):
                for attempt in range(LOAD_TRIES):
                    try:
                        place.server.load(name, str(folder))
                        break
                    except ServerRefused as error:
                        if "already been loaded" in str(error):
                            break
                        if attempt == LOAD_TRIES - 1:
                            raise
                        time.sleep(POLL_SECONDS * (attempt + 1))
            if self.holds_one:
                place.loaded.clear()
            place.loaded.add(name)

    @contextmanager
    def _alone_at(self, place: _Place) -> Iterator[None]:
        """Within this block no other process of the run exchanges the weights of this server."""
        if not self.holds_one:
            yield
            return
        with (self.folder / f"{LOCK}{self._places.index(place)}").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _went_away(self, place: _Place, error: ServerGone) -> None:
        with self._state:
            if place.away is None:
                logger.warning("a sampling server is away: %s", error)
            place.away = str(error)

    def _why(self) -> str:
        return "; ".join(place.away for place in self._places if place.away) or "all refused"

    def _same_model(self) -> tuple[str, int | None]:
        """The model that all serve, and the longest sequence that all take."""
        found: list[tuple[str, int | None]] = []
        for place in self._places:
            try:
                first = place.server.models()[0]
                found.append((first.name, first.longest))
            except IndexError:
                raise BadInput(f"{place.server.url} serves no model.") from None
            except ServerGone as error:
                raise BadInput(
                    f"sampler.url: {error}; start the server (vllm serve ...), or let memograd "
                    "start one by sampler.start=true."
                ) from error
            except ServerRefused as error:
                raise BadInput(f"sampler.url: {error}; see sampler.api_key_env.") from error
        if len({name for name, _ in found}) > 1:
            served = ", ".join(
                f"{place.server.url} serves {name}"
                for place, (name, _) in zip(self._places, found, strict=True)
            )
            raise BadInput(
                f"All servers of sampler.url must serve one model under one name: {served}."
            )
        lengths = [length for _, length in found if length is not None]
        return found[0][0], min(lengths) if lengths else None
