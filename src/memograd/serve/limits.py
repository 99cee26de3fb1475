"""What a server takes on at most: calls at once, threads of one owner, calls a minute of one key,
characters of a text and of an owner's name, conditions of a filter.

`memograd.web.body_limit` counts the bytes and the seconds of a body. Invariants: a
place and a turn are free again however a call ends; the calls of one owner leave most threads to
all others; a body is read of somebody known.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from starlette.requests import HTTPConnection

from memograd.errors import BadInput
from memograd.serve.identity import Identity
from memograd.serve.keys import LONGEST_ID
from memograd.serve.refusals import Refused, TooMany, refusal
from memograd.web.body_limit import Application, Receive, Scope, Send, refuse, still_sending

KEYS_COUNTED: Final = 65_536
SHARES: Final = 4
TURNS: Final = 40 // SHARES
"""Calls of one owner that are carried out at a time: the routes have 40 threads (anyio's)."""
LONGEST_TEXT: Final = 100_000
"""Characters of one text that is remembered or looked for. Each fact of a text is decided by
itself, so one full of short facts takes a core about a minute, and nothing can interrupt it."""

MOST_CONDITIONS: Final = 1000
"""Conditions and values of a filter. To read one takes some ten microseconds, more than once, and
to look at an item by all of them as long again."""


def check_filters(filters: object) -> None:
    """Raise BadInput for a filter of more conditions and values than are read."""
    count, level = 0, [filters]
    while level:
        parts = [
            part
            for one in level
            if isinstance(one, Mapping | list | tuple)
            for part in (one.values() if isinstance(one, Mapping) else one)
        ]
        count += len(parts)
        if count > MOST_CONDITIONS:
            raise BadInput(
                f"The filters hold more than {MOST_CONDITIONS} conditions and values: ask in parts."
            )
        level = parts


def check_ids(ids: Mapping[str, str]) -> None:
    """Raise BadInput for an id that is too long to write under, and for one that no path holds: on
    its way every client leaves out `/./`, and takes what is before `/../` away."""
    for field, value in ids.items():
        if value in (".", ".."):
            raise BadInput(f"{field} is {value!r}, which no address can name: choose another name.")
        if len(value) > LONGEST_ID:
            raise BadInput(
                f"{field} has {len(value)} characters, and {LONGEST_ID} is the most: shorten it."
            )


class Places:
    """The calls that are being answered by this process; for one event loop.

    A key that is bound to an owner gets a quarter of them at most, so that one user's client shuts
    nobody else out. The key of everybody's memory belongs to an application and speaks for all.
    """

    def __init__(self, count: int, what: str) -> None:
        self.free, self._what = count, what
        self._of_one = max(1, count // SHARES)
        self._held: Counter[str] = Counter()

    @contextmanager
    def taken(self, who: Identity) -> Iterator[None]:
        """A place within this block; raises `TooMany` if there is none."""
        if self.free <= 0:
            raise TooMany(f"The server answers as many {self._what} as it may: try again.")
        if who.owner is not None and self._held[who.key_id] >= self._of_one:
            raise TooMany(f"This key holds as many {self._what} as one key may: try again.")
        self.free -= 1
        self._held[who.key_id] += 1
        try:
            yield
        finally:
            self.free += 1
            self._held[who.key_id] -= 1
            if not self._held[who.key_id]:
                del self._held[who.key_id]


class Turns:
    """Whose calls are carried out, for one event loop: `TURNS` of one owner at a time, the others
    wait in line. What waits holds a place and no thread.

    Calls that write for one owner follow one another anyway. In threads they would wait for each
    other there, until none is left for anybody else.
    """

    def __init__(self, of_one: int = TURNS) -> None:
        self._of_one = of_one
        self._lines: dict[str, asyncio.Semaphore] = {}
        self._in_line: Counter[str] = Counter()

    @asynccontextmanager
    async def taken(self, owner: str | None) -> AsyncIterator[None]:
        """A turn of the owner within this block; at once where nobody is named."""
        if owner is None:
            yield
            return
        line = self._lines.setdefault(owner, asyncio.Semaphore(self._of_one))
        self._in_line[owner] += 1
        try:
            async with line:
                yield
        finally:
            self._in_line[owner] -= 1
            if not self._in_line[owner]:
                del self._in_line[owner], self._lines[owner]


class Rates:
    """Calls a minute, by who makes them: a full minute's worth may come at once, and refills
    steadily."""

    def __init__(self, per_minute: int) -> None:
        self._most, self._per_second = float(per_minute), per_minute / 60
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # calls left, at

    def take(self, who: str) -> int:
        """Count one call; returns the seconds to wait where none is left, else 0."""
        left = self._now_left(who)
        self._left[who] = (left - 1 if left >= 1 else left, time.monotonic())
        self._left.move_to_end(who)
        if len(self._left) > KEYS_COUNTED:
            self._left.popitem(last=False)
        return self._seconds_from(left)

    def wait(self, who: str) -> int:
        """What `take` would return; counts nothing."""
        return self._seconds_from(self._now_left(who))

    def _now_left(self, who: str) -> float:
        now = time.monotonic()
        left, at = self._left.get(who, (self._most, now))
        return min(self._most, left + (now - at) * self._per_second)

    def _seconds_from(self, left: float) -> int:
        return 0 if left >= 1 else math.ceil((1 - left) / self._per_second)


class KnownFirst:
    """ASGI middleware that reads a body only of who has a key, so that nobody else fills the
    memory with bodies that are never whole."""

    def __init__(
        self, app: Application, known: Callable[[HTTPConnection], Awaitable[Identity]]
    ) -> None:
        """known: raises `Refused` for nobody we know."""
        self._app, self._known = app, known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what has no body, or a key."""
        if scope["type"] == "http":
            asked = HTTPConnection(scope)
            headers = asked.headers
            if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
                try:
                    await self._known(asked)
                except Refused as error:
                    body = json.dumps(refusal(error.detail)).encode()
                    rest = still_sending(scope, receive)
                    await refuse(send, rest, error.status, body, error.headers)
                    return
        await self._app(scope, receive, send)
