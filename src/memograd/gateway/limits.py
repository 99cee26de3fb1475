"""What the gateway takes on at most: bytes of a request, calls at once, seconds of a call.

Invariant: a place among the calls is free again however a call ends; `memograd.body_limit` counts
the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from memograd.gateway.protocol import Refused


@dataclass(frozen=True)
class GatewayLimits:
    """`max_body` bytes of a request, `max_calls` answered at once, `call_seconds` an answer may
    take, `choices` a call may ask for."""

    max_body: int = 8 * 1024 * 1024
    max_calls: int = 256
    call_seconds: float = 600.0
    max_choices: int = 16


class Places:
    """The calls that are being answered; for one event loop."""

    def __init__(self, count: int) -> None:
        self.free = count

    def take(self) -> Place:
        """Take a place; raises `Refused` (429) if there is none."""
        if self.free <= 0:
            raise Refused(
                429,
                "The gateway answers as many calls as it may: try again.",
                code="rate_limit_exceeded",
                kind="rate_limit_error",
            )
        self.free -= 1
        return Place(self)


class Place:
    """One of the places, to be given back once."""

    def __init__(self, places: Places | None) -> None:
        self._places = places

    def give_back(self) -> None:
        """Free it. Giving back twice is harmless."""
        if self._places is not None:
            self._places.free += 1
            self._places = None
