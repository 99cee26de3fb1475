"""What is settled before a server runs: who may come in, under which names, by which first key.

On this machine a server without a key makes an admin token for its own life; beyond it, a key and
the names that clients call it by must be given. Invariant: what cannot be served safely is refused
before the memory is opened.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.gateway.store import TraceReader
from memograd.serve.access import KEPT_DAYS
from memograd.serve.database import ServeDatabase
from memograd.serve.identity import MOST_SECRET
from memograd.serve.keys import Keys, Right
from memograd.serve.served import ServeSettings
from memograd.serve.session import login_path
from memograd.web.host_check import checked_host, is_loopback

LEAST_TOKEN = 16
MOST_DAYS = 100_000


@dataclass(frozen=True)
class Start:
    """settings: of the application. made_token: the admin token made for this run, if one was.
    login: the path that opens the page once."""

    settings: ServeSettings
    made_token: str | None
    login: str


def settle(
    memory: MemorySettings,
    host: str,
    *,
    token: str | None,
    allowed: Sequence[str],
    runs: Path,
    traces: str | None = None,
    access_days: float = KEPT_DAYS,
    clients: bool = True,
) -> Start:
    """Check what was asked for, and make the first keys. Raises BadInput.

    clients: whether there shall be a token for them where there is no key yet.
    """
    hosts = [checked_host(name) for name in (host, *allowed)]
    if token is not None and len(token) < LEAST_TOKEN:
        raise BadInput(f"The token is too easily guessed: give at least {LEAST_TOKEN} characters.")
    if token is not None and (len(token) > MOST_SECRET or not re.fullmatch("[!-~]+", token)):
        raise BadInput(
            "No client could send the token: give letters, digits and signs of ASCII without a"
            f" space or the end of a line, {MOST_SECRET} at most."
        )
    if not 0 <= access_days <= MOST_DAYS:
        raise BadInput(
            f"The access log cannot be kept for {access_days} days: give a number from 0, which is"
            f" for ever, to {MOST_DAYS}."
        )
    if traces is not None:
        TraceReader(traces).close()
    local = is_loopback(host)
    with closing(ServeDatabase.beside(memory)) as database:
        keys = Keys(database)
        needs_key = token is None and not keys.exist()
        if needs_key and not local:
            raise BadInput(
                f"The address {host} can be reached from other machines, so the server needs a key:"
                " run memograd serve keys create NAME, set MEMOGRAD_SERVE_TOKEN, or listen on"
                " 127.0.0.1."
            )
        if not local and not allowed:
            raise BadInput(
                f"The address {host} can be reached from other machines: say by --allow-host NAME"
                " which names clients may call it by."
            )
        made = f"mg-{secrets.token_urlsafe(32)}" if needs_key and clients else None
        login = keys.login_token(name="first page", owner=None, rights=[Right.admin])
    settings = ServeSettings(
        hosts=tuple(hosts),
        token=token or made,
        runs=runs,
        traces=traces,
        access_days=access_days,
    )
    return Start(settings, made, login_path(login))
