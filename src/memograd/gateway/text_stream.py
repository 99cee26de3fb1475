"""From tokens to text while they are drawn, and where a stop string ends it.

A byte-level token may hold a part of a character only, and the beginning of a stop string may turn
out to be ordinary text: both are held back until it is clear. Of several stop strings the one that
is complete first ends the text, since nothing is drawn after it. Invariant: the pieces put together
are the text of all tokens up to that stop string, however they were cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

UNFINISHED = "\ufffd"
LONGEST_CHARACTER = 8
"""Tokens after which what is still no character is taken for broken bytes."""


class TextStream:
    """One answer's text; `decode` gives the text of any stretch of tokens, `stops` end it."""

    def __init__(self, decode: Callable[[list[int]], str], stops: Sequence[str] = ()) -> None:
        self._decode = decode
        self._stops = tuple(stops)
        self._ids: list[int] = []
        self._begin = self._whole = 0  # the last stretch that ended with a whole character
        self._held = ""
        self.stopped = False

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts that end it."""
        return self._stops

    def push(self, token: int) -> str:
        """Take a token; returns the text that is certain now, often nothing."""
        self._ids.append(token)
        before = self._decode(self._ids[self._begin : self._whole])
        now = self._decode(self._ids[self._begin :])
        unfinished = len(self._ids) - self._whole < LONGEST_CHARACTER and now.endswith(UNFINISHED)
        if unfinished:
            return ""
        self._begin, self._whole = self._whole, len(self._ids)
        return self._release(now[len(before) :], last=False)

    def finish(self) -> str:
        """The rest, once there are no more tokens."""
        if self.stopped:
            return ""
        before = self._decode(self._ids[self._begin : self._whole])
        now = self._decode(self._ids[self._begin :])
        return self._release(now[len(before) :], last=True)

    def _release(self, piece: str, *, last: bool) -> str:
        text = self._held + piece
        places = [(text.find(stop), len(stop)) for stop in self._stops]
        found = [(place + length, place) for place, length in places if place >= 0]
        if found:
            self.stopped, self._held = True, ""
            _, begin = min(found)
            return text[:begin]
        keep = 0 if last else max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of `text` may begin `stop`."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if stop.startswith(text[-n:])), 0)
