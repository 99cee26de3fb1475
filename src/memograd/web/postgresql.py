"""How long one waits for a PostgreSQL that does not answer, for every database of ours.

A server that is gone refuses, and that is an error at once. One behind a connection that was cut on
the way, or that takes connections and says nothing, would be waited for until the operating system
gives up, a quarter of an hour or never, and each call meanwhile holds a thread. Invariant: what the
URL says itself stands.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy.engine import URL

DRIVERS: Final = ("psycopg", "psycopg2")  # over libpq, whose words these are
CONNECT_SECONDS = 10
UNHEARD_SECONDS = 30
"""How long what was sent may stay without the other side's receipt, by a busy or a silent
connection; how long an answer takes is not limited."""


def patience(url: URL) -> dict[str, int]:
    """Arguments for the driver of a URL."""
    if url.get_driver_name() not in DRIVERS:
        return {}
    wanted = {
        "connect_timeout": CONNECT_SECONDS,
        "tcp_user_timeout": UNHEARD_SECONDS * 1000,
        "keepalives_idle": UNHEARD_SECONDS // 3,
        "keepalives_interval": UNHEARD_SECONDS // 3,
        "keepalives_count": 2,
    }
    return {name: value for name, value in wanted.items() if name not in url.query}
