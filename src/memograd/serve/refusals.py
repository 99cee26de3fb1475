"""Why a request is refused: a status and one sentence, which tells nothing of anybody else.

Invariant: an item of another owner is refused exactly as one that never was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from memograd.errors import MemogradError, Unfinished

MOST_DETAIL: Final = 600
"""Characters of a sentence. It may quote what was sent, and that may be megabytes."""


THINGS: Final = {
    "str": "a text",
    "dict[str,any]": "an object",
    "list[dict[str,any]]": "a list of objects",
    "datetime": "a time",
    "float": "a number",
}
"""By pydantic's names."""


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


class HalfErased(Refused):
    """Erased, but for old bytes; what stands in the way is told in the log."""

    status = 500

    def __init__(self) -> None:
        super().__init__(
            "It is erased and found no more, but old bytes of it still stand in files: the server's"
            " log says why, and what to do."
        )


def failure(error: MemogradError) -> Refused:
    """What is told of a failure that is not the caller's; its own words are for the log."""
    return HalfErased() if isinstance(error, Unfinished) else Unavailable()


def misfit(errors: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with a request whose fields do not fit, by what FastAPI found.

    A field that does not exist comes first: it often is the one that is missing, misspelt.
    """
    error = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
    kind, place = error["type"], error["loc"]
    where = ".".join(str(part) for part in place)
    if kind == "json_invalid":
        return f"The body is no JSON: {error['ctx']['error']}."
    if kind == "extra_forbidden":
        return f"There is no field {where!r}: /openapi.json lists those that there are."
    if kind == "bytes_type":
        return "The body is taken as it is: send it with Content-Type: application/x-ndjson."
    if place == ("body",) and kind == "missing":
        return "The body is missing: send a JSON object, {} at the least."
    if place == ("body",) and isinstance(error.get("input"), bytes):
        return "The body is not said to be JSON: send it with Content-Type: application/json."
    either = _either(errors, place)
    if either:
        field = ".".join(str(part) for part in place[:-1])
        return f"{field} must be {', '.join(either[:-1])} or {either[-1]}."
    if kind in ("model_attributes_type", "dict_type"):
        return f"{where} must be a JSON object."
    return f"{where} is missing." if kind == "missing" else f"{where}: {error['msg']}."


def _either(errors: Sequence[Mapping[str, Any]], place: Sequence[str | int]) -> list[str]:
    """What a field may be that may be several things and is none, in words; else nothing.

    pydantic tells of each what is wrong with it, at the field's place and its own name.
    """
    *field, _ = place
    tried = [
        error["loc"][len(field) :] for error in errors if [*error["loc"]][: len(field)] == field
    ]
    named = dict.fromkeys(THINGS[part[0]] for part in tried if part and part[0] in THINGS)
    return list(named) if place[-1] in THINGS and len(named) > 1 else []


def refusal(detail: str) -> dict[str, Any]:
    """The body of every refusal: `detail`, as mem0's clients and FastAPI have it."""
    return {"detail": shortened(detail)}


def shortened(detail: str) -> str:
    """The sentence, or as much of it as is told."""
    return detail if len(detail) <= MOST_DETAIL else f"{detail[:MOST_DETAIL]}…"
