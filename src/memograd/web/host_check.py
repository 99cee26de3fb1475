"""Which names a server answers to and whose pages may ask it: Host and Origin, before all else.

A page of any site can send requests to a server on its reader's machine, and read the answers too
once the site's name is made to point at 127.0.0.1 (DNS rebinding). Its browser then says so: `Host`
is the site's name, and `Origin` the site. So a request is taken only where `Host` is this machine
(a loopback name or address), the very address that was connected to, or a name that the operator
gave; and where there is an `Origin`, it must be one of these too, on any port.

Invariant: what is refused reaches no route, and the refusal is a 403 in the server's own form. Pure
ASGI, for every server of ours.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from memograd.errors import BadInput
from memograd.web.body_limit import Application, Receive, Scope, Send, refuse, still_sending

_SHOWN = 100
_LOOKED_AT = (b"host", b"origin", b"content-length", b"transfer-encoding")
_ONCE = (
    *(b"authorization", b"x-api-key", b"x-memograd-token", b"x-memograd-owner"),
    *(b"idempotency-key", b"last-event-id"),
)
"""Who asks, and what for: of two, a proxy before us may have looked at the other one."""
_AUTHORITY = re.compile(
    r"(?:(?P<name>[\w.-]+)|\[(?P<address>[\da-f:.]+)\])(?::\d{0,5})?", re.A | re.I
)


class HostCheck:
    """ASGI middleware that answers 403 to a foreign `Host` or `Origin`.

    `hosts`: further names that are accepted, as `checked_host` gives them. `refusal` makes the body
    of a refusal, as JSON, out of one sentence.
    """

    def __init__(
        self,
        app: Application,
        hosts: Collection[str],
        refusal: Callable[[str], Mapping[str, Any]],
    ) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may be asked."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        problem = self._problem(scope)
        if problem is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "foreign host"})
        else:
            body = json.dumps(self._refusal(problem)).encode()
            await refuse(send, still_sending(scope, receive), 403, body)

    def _problem(self, scope: Scope) -> str | None:
        """Why the request is not taken, in a sentence; None if it is."""
        said: dict[bytes, list[str]] = {name: [] for name in (*_LOOKED_AT, *_ONCE)}
        for name, value in scope["headers"]:
            if name in said:
                said[name].append(value.decode("latin-1"))
        if said[b"content-length"] and said[b"transfer-encoding"]:
            # A proxy before us may go by the other one, and take what follows for a request.
            return "A request says how long it is by Content-Length or by Transfer-Encoding alone."
        if len(said[b"host"]) != 1 or len(said[b"origin"]) > 1:
            return "A request needs one Host header, and has one Origin header at most."
        for name in _ONCE:
            if len(said[name]) > 1:
                return f"A request has one {name.decode().title()} header at most."
        [host], origins = said[b"host"], said[b"origin"]
        if not self._accepts(_host_of(host), scope):
            return (
                f"This server does not answer for the host {host[:_SHOWN]!r}; whoever runs it can "
                "allow the name."
            )
        for origin in origins:
            scheme, _, authority = origin.partition("://")
            web = scheme in ("http", "https")
            if not web or not self._accepts(_host_of(authority), scope):
                return f"Pages of {origin[:_SHOWN]!r} may not ask this server."
        return None

    def _accepts(self, host: str | None, scope: Scope) -> bool:
        if host is None:
            return False
        if host == "localhost" or host in self._hosts:
            return True
        address = _address(host)
        if address is None:
            return False
        # An address cannot be made to point elsewhere, as a name can; this one was connected to.
        connected = _address((scope.get("server") or ("",))[0])
        return address.is_loopback or str(address) in self._hosts or address == connected


def _host_of(authority: str) -> str | None:
    """The host of `name:port` in small letters, without brackets, port and last dot; None if the
    text is anything else."""
    found = _AUTHORITY.fullmatch(authority)
    return None if found is None else (found["name"] or found["address"]).lower().rstrip(".")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def checked_host(host: str) -> str:
    """A host as it is compared; raises BadInput for what is no name and no address."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    address = _address(bare)
    known = str(address) if address is not None else _host_of(host)
    if known is None or (address is None and ":" in host):
        raise BadInput(f"{host!r} is no host: give a name or an address, without a port or a path.")
    return known
