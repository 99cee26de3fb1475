"""What is mounted on the server's application: REST, MCP, the page, in this order.

A part is a function that adds its routes to the application and may return what has to run as long
as the server does: an asynchronous context manager (MCP's session manager is one). To add a part,
import it here and add it to `PARTS`. Invariant: the paths of an earlier part win, so the page,
which answers at `/`, is the last.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from fastapi import FastAPI

from memograd.serve import session
from memograd.serve.mcp import http as mcp
from memograd.serve.page import mount
from memograd.serve.rest import routes
from memograd.serve.served import Served

Part = Callable[[FastAPI, Served], AbstractAsyncContextManager[Any] | None]

PARTS: Final[tuple[Part, ...]] = (
    session.add_to,
    routes.add_to,
    mcp.add_to,
    mount.add_to,
)
