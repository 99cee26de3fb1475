"""Why a request is refused: a status and one sentence, which tells nothing of anybody else.

Invariant: an item of another owner is refused exactly as one that never was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MOST_DETAIL: Final = 600
"""Characters of a sentence. It may quote what was sent, and that may be megabytes."""


class Refused(Exception):
    """A request that is not answered as asked; `detail` is one sentence."""

    status = 400

    def __init__(self, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = dict(headers or {})


class Unauthorised(Refused):
    """Nobody we know."""

    status = 401

    def __init__(self, detail: str = "Give a valid API key of this server.") -> None:
        super().__init__(detail, {"WWW-Authenticate": "Bearer"})


class Forbidden(Refused):
    """Somebody we know, who may not do that."""

    status = 403


class NotFound(Refused):
    """There is nothing by that name that this key may know of."""

    status = 404


class Unprocessable(Refused):
    """Understood, and still wrong."""

    status = 422


class TooMany(Refused):
    """More than one may ask for."""

    status = 429

    def __init__(self, detail: str, seconds: int = 1) -> None:
        super().__init__(detail, {"Retry-After": str(seconds)})


class NotOffered(Refused):
    """A part of somebody's interface that memograd does not have."""

    status = 501


class Unavailable(Refused):
    """The memory cannot be reached just now; nothing was written."""

    status = 503

    def __init__(
        self, detail: str = "The memory cannot be reached just now, nothing was changed: try again."
    ) -> None:
        super().__init__(detail, {"Retry-After": "2"})


def refusal(detail: str) -> dict[str, Any]:
    """The body of every refusal: `detail`, as mem0's clients and FastAPI have it."""
    return {"detail": detail if len(detail) <= MOST_DETAIL else f"{detail[:MOST_DETAIL]}…"}
