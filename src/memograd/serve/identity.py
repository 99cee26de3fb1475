"""Who asks: an API key, the server's own token, or a session of the page.

`identify` reads them off a request's headers, for REST, MCP and the page alike: `Authorization:
Bearer KEY` or `Token KEY` (as mem0's client sends it), `X-API-Key: KEY`, or the session's cookie.
A key is said by whoever asks, so it goes before a cookie, and two keys that differ are refused.
A cookie is sent by the browser unasked, so a change by cookie needs two things that another site's
page cannot give: an `Origin` (which `HostCheck` has checked) and the session's own token in the
header `X-Memograd-Token`. Invariant: there is no anonymous access, on loopback neither.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from memograd.serve.keys import Key, KeyKind, Keys, Right, hashed
from memograd.serve.refusals import Forbidden, Unauthorised

COOKIE: Final = "memograd_session"
TOKEN_HEADER: Final = "x-memograd-token"
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_SECRET: Final = 512


@dataclass(frozen=True)
class Identity:
    """Who asks, and what they may do: in the memory of `owner` (None: everybody's)."""

    key_id: str
    name: str
    owner: str | None
    rights: frozenset[Right]
    page_token: str | None = None
    """What a session's page sends along with changes; None for API keys."""

    def may(self, right: Right) -> bool:
        """Whether the key has this right."""
        return right in self.rights or Right.admin in self.rights

    def need(self, right: Right) -> None:
        """Raise `Forbidden` unless the key has this right."""
        if not self.may(right):
            raise Forbidden(f"This key may not do that: it needs the right {right.value!r}.")

    def is_operator(self) -> bool:
        """Whether this is an admin over everybody's memory."""
        return self.owner is None and self.may(Right.admin)

    def need_operator(self) -> None:
        """Raise `Forbidden` unless this is an admin over everybody's memory."""
        if not self.is_operator():
            raise Forbidden("This needs an admin key that is bound to no owner.")


class Identities:
    """Tells who asks."""

    def __init__(self, keys: Keys, token: str | None) -> None:
        """token: the server's own admin key, kept nowhere."""
        self._keys = keys
        self._token = None if token is None else hashed(token)

    def at_once(self, headers: Mapping[str, str], method: str) -> Identity | None:
        """`of`, if it can be told without waiting for the database."""
        secret, by_cookie = secret_of(headers)
        if secret is None:
            return None
        own = self._own(secret, by_cookie)
        if own is not None:
            return own
        key = self._keys.known(secret)
        return None if key is None else _identity(key, secret, headers, method, by_cookie)

    def of(self, headers: Mapping[str, str], method: str) -> Identity:
        """Who asks. headers: by names in small letters. Raises `Unauthorised` for nobody we know,
        `Forbidden` for a change by cookie that another site may have caused."""
        secret, by_cookie = secret_of(headers)
        if secret is None:
            raise Unauthorised
        own = self._own(secret, by_cookie)
        if own is not None:
            return own
        key = self._keys.find(secret)
        if key is None:
            raise Unauthorised
        return _identity(key, secret, headers, method, by_cookie)

    def _own(self, secret: str, by_cookie: bool) -> Identity | None:
        if self._token is None or by_cookie:
            return None
        if not secrets.compare_digest(self._token, hashed(secret)):
            return None
        return Identity("token", "the server's token", None, frozenset(Right))


def page_token(session_secret: str) -> str:
    """What the pages of a session send along with changes; tells nothing of the session's key."""
    return hashlib.sha256(f"page:{session_secret}".encode()).hexdigest()[:40]


def secret_of(headers: Mapping[str, str]) -> tuple[str | None, bool]:
    """The secret in a request's headers, and whether a cookie brought it. Raises `Forbidden` for
    two that differ: who put one there, a proxy for example, may have meant another owner."""
    scheme, _, value = headers.get("authorization", "").strip().partition(" ")
    bearer = value.strip() if scheme.lower() in ("bearer", "token") else ""
    api_key = headers.get("x-api-key", "").strip()
    if bearer and api_key and bearer != api_key:
        raise Forbidden("Authorization and X-API-Key hold two different keys: send one of them.")
    if bearer or api_key:
        return _fitting(bearer or api_key), False
    # Cookies of a host are those of all its ports, so other programs' stand among them. What is
    # wrong with one of these must not hide ours, as it does where all are read by their grammar.
    for cookie in headers.get("cookie", "").split(";"):
        name, _, value = cookie.strip().partition("=")
        if name == COOKIE:
            return _fitting(value), True
    return None, True


def _fitting(secret: str) -> str | None:
    return secret if len(secret) <= MOST_SECRET else None


def _identity(
    key: Key, secret: str, headers: Mapping[str, str], method: str, by_cookie: bool
) -> Identity:
    if (key.kind is KeyKind.session) is not by_cookie or key.kind is KeyKind.login:
        raise Unauthorised
    token = page_token(secret) if by_cookie else None
    if token is not None and method not in READING:
        sent = headers.get(TOKEN_HEADER, "")
        if "origin" not in headers or not secrets.compare_digest(
            token.encode(), sent.encode("utf-8", "surrogatepass")
        ):
            raise Forbidden("A change from the page needs the page's own token: load it again.")
    return Identity(key.id, key.name, key.owner, key.rights, token)
