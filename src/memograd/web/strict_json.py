"""Routes whose JSON is JSON, for every server of ours.

Python's parser takes NaN and Infinity, which no database, no other server and no client would, and
raises RecursionError for a body of brackets. Invariant: what a route is given can be written as
JSON again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute


class _StrictRequest(Request):
    async def json(self) -> Any:
        """The body."""
        if not hasattr(self, "_json"):
            body = await self.body()
            try:
                self._json = json.loads(body, parse_constant=_no_constant)
            except RecursionError:
                raise json.JSONDecodeError("nested too deep", "", 0) from None
            except UnicodeDecodeError:
                raise json.JSONDecodeError("not UTF-8", "", 0) from None
        return self._json


class StrictRoute(APIRoute):
    """A route that refuses what is no JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, over a strict request."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return handled


def _no_constant(name: str) -> None:
    raise json.JSONDecodeError(f"{name} is no number", name, 0)
