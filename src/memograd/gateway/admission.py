"""Whose request is taken, and how many at once: API keys, and a place among the calls.

A rollout's own key opens that rollout and nothing else. The gateway's key, where it has one, opens
`/v1` and makes rollouts; where it has none, whoever reaches the address may, so such a gateway
listens on this machine only.

Invariants: no key opens another rollout's paths; a place among the calls is free again however a
call ends. (`memograd.web.body_limit` counts the bytes of a request and its seconds.)
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from memograd.errors import BadInput
from memograd.gateway.protocol import CallRefused
from memograd.web.host_check import is_loopback

KNOWN_KEYS: Final = 65_536
"""Rollouts whose keys are known without asking the store."""


class KnownKeys:
    """Keys, as hashes, that the store has said are a rollout's own; a rollout's key never changes.

    A key that is not known here says nothing: the store is asked.
    """

    def __init__(self) -> None:
        self._hashes: OrderedDict[str, bytes] = OrderedDict()

    def opens(self, rollout_id: str, key: str) -> bool:
        """Whether this is known to be the rollout's key."""
        known = self._hashes.get(rollout_id)
        return known is not None and secrets.compare_digest(known, _hashed(key))

    def remember(self, rollout_id: str, key: str) -> None:
        """The store has said that this is the rollout's key."""
        self._hashes[rollout_id] = _hashed(key)
        if len(self._hashes) > KNOWN_KEYS:
            self._hashes.popitem(last=False)


def bearer(authorization: str | None) -> str:
    """The key in an `Authorization` header; empty if there is none."""
    scheme, _, key = (authorization or "").strip().partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _hashed(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def check_key(given: str, expected: str | None) -> None:
    """Raise `CallRefused` (401) unless `given` is the gateway's key; any will do if it has none."""
    if expected is None:
        return
    # Hashes, because comparing takes the same time for texts of the same length only.
    if not secrets.compare_digest(_hashed(given), _hashed(expected)):
        raise unauthorised("This is not the gateway's API key.")


def unauthorised(message: str) -> CallRefused:
    """A 401 in OpenAI's words."""
    return CallRefused(401, message, code="invalid_api_key", kind="authentication_error")


def check_address(host: str, key: str | None) -> None:
    """Raise BadInput for an address that others reach while no key protects the gateway."""
    if not is_loopback(host) and not key:
        raise BadInput(
            f"The address {host} can be reached from other machines, so the gateway needs a key: "
            "set MEMOGRAD_GATEWAY_KEY, or listen on 127.0.0.1."
        )


@dataclass(frozen=True)
class GatewayLimits:
    """`max_body` bytes of a request, sent within `body_seconds`; `max_calls` answered at once,
    `call_seconds` an answer may take, `choices` a call may ask for."""

    max_body: int = 8 * 1024 * 1024
    body_seconds: float = 30.0
    max_calls: int = 256
    call_seconds: float = 600.0
    max_choices: int = 16


class CallPlaces:
    """The calls that are being answered; for one event loop."""

    def __init__(self, count: int) -> None:
        self.free = count

    def take(self) -> CallPlace:
        """Take a place; raises `CallRefused` (429) if there is none."""
        if self.free <= 0:
            raise CallRefused(
                429,
                "The gateway answers as many calls as it may: try again.",
                code="rate_limit_exceeded",
                kind="rate_limit_error",
            )
        self.free -= 1
        return CallPlace(self)


class CallPlace:
    """One of the places, to be given back once."""

    def __init__(self, places: CallPlaces | None) -> None:
        self._places = places

    def give_back(self) -> None:
        """Free it. Giving back twice is harmless."""
        if self._places is not None:
            self._places.free += 1
            self._places = None
