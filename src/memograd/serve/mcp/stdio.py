"""MCP over standard input and output, for a client that starts the server itself.

Whoever starts the process may read the memory's folder, so there is no key; whose memory it is was
said when it was started. Standard output carries the protocol and nothing else.
"""

from __future__ import annotations

from memograd.memory import Memory
from memograd.serve.identity import Identity
from memograd.serve.keys import Right, checked_owner
from memograd.serve.mcp.server import memory_server
from memograd.serve.served import Served
from memograd.serve.settings import ServeSettings


def serve_stdio(memory: Memory, owner: str) -> None:
    """Serve one owner's memory until standard input ends. Raises BadInput for no owner."""
    rights = frozenset({Right.read, Right.write})
    identity = Identity("stdio", "mcp over stdio", checked_owner(owner), rights)
    served = Served(memory, ServeSettings())
    try:
        of_owner = served.memory_of(identity, via="mcp")
        memory_server(lambda _: of_owner).run("stdio")
    finally:
        served.close()
