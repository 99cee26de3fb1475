"""What a server is told: the names it answers to, its limits, what its page shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ServeLimits:
    """`max_body` bytes of a request, sent within `body_seconds`; `max_calls` answered at once and
    `max_streams` feeds held open by the process; `calls_per_minute` of one key; `max_batch`
    elements of a list in a request."""

    max_body: int = 8 * 1024 * 1024
    body_seconds: float = 30.0
    max_calls: int = 256
    max_streams: int = 64
    calls_per_minute: int = 6000
    max_batch: int = 1000


@dataclass(frozen=True)
class ServeSettings:
    """hosts: names that the server answers to besides those of this machine. token: an admin key
    that is kept nowhere (`MEMOGRAD_SERVE_TOKEN`). runs: the folder of training runs that the page
    shows. traces: the URL of a gateway's trace store that the page shows, which nothing changes."""

    hosts: tuple[str, ...] = ()
    token: str | None = field(default=None, repr=False)
    limits: ServeLimits = ServeLimits()
    runs: Path = Path("runs")
    traces: str | None = None
