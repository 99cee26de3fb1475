"""Wrong keys: who sends them stands in the log, and an address guesses no faster than it may.

A key that the server made is 256 random bits, so nobody guesses it; the operator's own token may be
shorter. So wrong keys are counted by address, and one that has sent too many is told so (429). From
then on a secret that is short enough to be guessed is not looked at when it comes from there, or
the answer would tell whether it was right. A longer one always is: whoever shares an address with a
guesser, behind a proxy for example, comes in by a key all the same. Invariants: no line of the log
holds a key; a secret of `UNGUESSABLE` characters or more is refused for nobody else's mistakes.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections import OrderedDict
from typing import Final

from memograd.serve.limits import KEYS_COUNTED, Rates
from memograd.serve.refusals import TooMany

logger = logging.getLogger(__name__)

WRONG_A_MINUTE: Final = 30
UNGUESSABLE: Final = 32
"""Characters of a secret that nobody finds by trying, if it was drawn."""
LOG_SECONDS: Final = 60.0
"""From one line about an address to the next."""
IPV6_SITE: Final = 64
"""Bits of an IPv6 address that a provider gives to one customer, who has all the others."""


class WrongKeys:
    """Counts the wrong keys of each address; for one event loop."""

    def __init__(self, per_minute: int = WRONG_A_MINUTE) -> None:
        self._rates = Rates(per_minute)
        # When a line was written, and how many came since.
        self._logged: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def check(self, address: str, secret: str) -> None:
        """Raise `TooMany` for a secret that may not be looked at."""
        if len(secret) < UNGUESSABLE:
            _refuse(self._rates.wait(address))

    def note(self, address: str) -> None:
        """Count a wrong key; raises `TooMany` where the address has sent too many."""
        now = time.monotonic()
        at, unsaid = self._logged.get(address, (-LOG_SECONDS, 0))
        if now - at >= LOG_SECONDS:
            more = f", and {unsaid} times before since the last such line" if unsaid else ""
            logger.warning("A wrong key came from %s%s.", address, more)
            at, unsaid = now, -1
        self._logged[address] = (at, unsaid + 1)
        self._logged.move_to_end(address)
        if len(self._logged) > KEYS_COUNTED:
            self._logged.popitem(last=False)
        _refuse(self._rates.take(address))


def _refuse(seconds: int) -> None:
    if seconds:
        told = f"This address has sent too many wrong keys: try again in {seconds} s."
        raise TooMany(told, seconds)


def address_of(client: tuple[str, int] | None) -> str:
    """By what a client is counted: its address, of IPv6 the network of its site."""
    host = client[0] if client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host or "somewhere"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), IPV6_SITE), strict=False))
