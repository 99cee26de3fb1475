"""Routes whose JSON is JSON, for every server of ours.

Python's parser takes NaN and Infinity, which no database, no other server and no client would, and
raises RecursionError for a body of brackets. Of two members with one name it takes the last, where
a proxy or a filter before us may take the first. Invariants: what a route is given can be written
as JSON again, has one meaning for everybody who reads it, and holds no more values than can be
checked while others wait; a truth value is no number, though pydantic takes `true` for 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException

from memograd.web.json_text import DEEPEST, MOST_VALUES, too_deep, too_many


class _StrictRequest(Request):
    async def json(self) -> Any:
        """The body."""
        if not hasattr(self, "_json"):
            self._json = checked_body(await self.body())
        return self._json


class StrictRoute(APIRoute):
    """A route that refuses what is no JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, over a strict request."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return handled


def checked_body(body: bytes) -> Any:
    """What a body holds. Raises JSONDecodeError for what is no JSON for everybody, and
    HTTPException (413) for more values than are taken."""
    told = strictly(body)
    # Only a body of that many brackets can be so deep, or of that many brackets and commas
    # hold so much, and to count them takes no time.
    brackets = body.count(b"[") + body.count(b"{")
    if brackets + body.count(b",") >= MOST_VALUES and too_many(told):
        raise HTTPException(413, f"The body holds more than {MOST_VALUES} values.")
    if brackets > DEEPEST and too_deep(told):
        raise json.JSONDecodeError("nested too deep", "", 0)
    return told


def strictly(text: bytes | str) -> Any:
    """The value of a text that every reader of JSON takes for the same; raises JSONDecodeError.

    Of bytes Python guesses whether they are UTF-16, and takes half a surrogate pair: here they are
    UTF-8, as JSON between programs is.
    """
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=_once,
        )
    except RecursionError:
        raise json.JSONDecodeError("nested too deep", "", 0) from None
    except UnicodeDecodeError:
        raise json.JSONDecodeError("not UTF-8", "", 0) from None


def _no_constant(name: str) -> None:
    raise json.JSONDecodeError(f"{name} is no number", name, 0)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise json.JSONDecodeError(f"{digits[:60]} is no number of a computer", digits, 0)
    return number


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python reads some thousand digits, and no more
        raise json.JSONDecodeError(f"{digits[:60]}… is no number of a computer", "", 0) from None


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in members:
        if name in found:
            raise json.JSONDecodeError(f"{name[:60]!r} is there twice", "", 0)
        found[name] = value
    return found


def _no_truth_value(value: Any) -> Any:
    """What may be a number, as it stands."""
    if isinstance(value, bool):
        raise PydanticCustomError("number", "Input should be a number, not true or false")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth_value)]
Real = Annotated[float, BeforeValidator(_no_truth_value)]
