"""API keys: whose memory each one opens, and what may be done there.

A key is bound to one *owner* (`user:alice`, `agent:planner`, `run:42`) or to none, which opens
everybody's: for the server of an application, which says in each request whose memory is meant. Its
rights are read, write (forgetting too), erase (purge and reset) and admin, which includes the
others and lets make keys. A session of the page and the one-time token in the address that begins
one are keys of another kind. Invariants: only a hash of a secret is kept, the secret is shown once;
a revoked or expired key opens nothing, in every process within `KNOWN_SECONDS`.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Row, bindparam, select, update

from memograd.errors import BadInput
from memograd.memory.records.scope import SCOPE_FIELDS, Scope
from memograd.serve.database import KEYS, ServeDatabase, moment, now_micros

KNOWN_SECONDS: Final = 2.0
KNOWN_KEYS: Final = 65_536
SESSION_DAYS: Final = 30
LOGIN_DAYS: Final = 15 / (24 * 60)
MOST_NAME: Final = 200
DAY_SECONDS: Final = 86_400
MOST_DAYS: Final = 36_500
LONGEST_ID: Final = 500
"""Characters of an id under which something is written: it stands in every event and on the page of
owners, and PostgreSQL finds rows by 2,700 bytes at most."""

_FIND: Final = select(KEYS).where(KEYS.c.hash == bindparam("hash"))


class Right(StrEnum):
    """What a key may do; `admin` includes the others."""

    read = "read"
    write = "write"
    erase = "erase"
    admin = "admin"


class KeyKind(StrEnum):
    """key: of a client. session: of a browser. login: of the address that begins a session."""

    key = "key"
    session = "session"
    login = "login"


@dataclass(frozen=True)
class Key:
    """A key as it is kept, without its secret."""

    id: str
    kind: KeyKind
    name: str
    owner: str | None
    rights: frozenset[Right]
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None

    def opens(self) -> bool:
        """Whether it is neither revoked nor expired."""
        expired = self.expires_at is not None and self.expires_at <= now_micros()
        return self.revoked_at is None and not expired

    def shown(self) -> dict[str, Any]:
        """What may be told of it."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "name": self.name,
            "owner": self.owner,
            "rights": sorted(self.rights),
            "created_at": moment(self.created_at),
            "expires_at": moment(self.expires_at),
            "revoked_at": moment(self.revoked_at),
        }


@dataclass(frozen=True)
class NewKey:
    """A key just made, with the secret that is shown this once."""

    key: Key
    secret: str


class Keys:
    """All keys of a server."""

    def __init__(self, database: ServeDatabase) -> None:
        self._database = database
        self._known: OrderedDict[str, tuple[float, Key | None]] = OrderedDict()
        self._lock = threading.Lock()

    def create(
        self,
        name: str,
        *,
        owner: str | None,
        rights: Iterable[Right | str],
        kind: KeyKind = KeyKind.key,
        days: float | None = None,
    ) -> NewKey:
        """Make a key. owner: as `owner_of` gives it; None opens everybody's memory. days: how long
        it opens anything; None: until it is revoked. Raises BadInput for a name, rights or days
        that cannot be."""
        name = name.strip()
        if not name or len(name) > MOST_NAME or not name.isprintable():
            raise BadInput(f"A key needs a name of 1 to {MOST_NAME} printable characters.")
        if owner is not None and len(owner_field(owner)[1]) > LONGEST_ID:
            raise BadInput(f"The owner of a key has {LONGEST_ID} characters at most: shorten it.")
        if days is not None and not 0 < days <= MOST_DAYS:
            raise BadInput(
                f"Days are a number above 0 and no more than {MOST_DAYS}; without them a key opens"
                " until it is revoked."
            )
        now = now_micros()
        key = Key(
            id=secrets.token_hex(6),
            kind=kind,
            name=name,
            owner=None if owner is None else checked_owner(owner),
            rights=checked_rights(rights),
            created_at=now,
            expires_at=None if days is None else now + int(days * DAY_SECONDS * 1e6),
        )
        secret = f"mg-{secrets.token_urlsafe(32)}"
        row = {
            **vars(key),
            "kind": key.kind.value,
            "rights": ",".join(sorted(key.rights)),
            "hash": hashed(secret),
        }
        with self._database.writing() as connection:
            connection.execute(KEYS.insert(), row)
        return NewKey(key, secret)

    def known(self, secret: str) -> Key | None:
        """The key, if it was looked up just now; never asks the database, so it never waits."""
        with self._lock:
            entry = self._known.get(hashed(secret))
        if entry is None or entry[0] < time.monotonic() or entry[1] is None:
            return None
        return entry[1] if entry[1].opens() else None

    def find(self, secret: str) -> Key | None:
        """The key of this secret, if it opens anything."""
        known = self.known(secret)
        if known is not None:
            return known
        digest = hashed(secret)
        with self._database.reading() as connection:
            row = connection.execute(_FIND, {"hash": digest}).one_or_none()
        key = None if row is None else _key(row)
        if key is None or not key.opens():
            return None
        with self._lock:
            self._known[digest] = (time.monotonic() + KNOWN_SECONDS, key)
            while len(self._known) > KNOWN_KEYS:
                self._known.popitem(last=False)
        return key

    def sessions(self) -> Sequence[Key]:
        """The browsers that are signed in, in the order in which they came."""
        return [one for one in self.list(kind=KeyKind.session) if one.opens()]

    def list(self, *, kind: KeyKind = KeyKind.key) -> list[Key]:
        """All keys that were ever made, revoked ones too, in that order."""
        query = select(KEYS).where(KEYS.c.kind == kind.value).order_by(KEYS.c.created_at, KEYS.c.id)
        with self._database.reading() as connection:
            return [_key(row) for row in connection.execute(query)]

    def exist(self) -> bool:
        """Whether there is a key of a client that opens anything."""
        return any(key.opens() for key in self.list())

    def revoke(self, key_id: str) -> Key:
        """Let a key open nothing from now on. Raises BadInput when there is no such key."""
        revoking = (
            update(KEYS)
            .where(KEYS.c.id == key_id, KEYS.c.revoked_at.is_(None))
            .values(revoked_at=now_micros())
        )
        with self._database.writing() as connection:
            connection.execute(revoking)
            row = connection.execute(select(KEYS).where(KEYS.c.id == key_id)).one_or_none()
        with self._lock:
            self._known.clear()
        if row is None:
            raise BadInput(f"There is no key {key_id!r}: memograd serve keys list shows them.")
        return _key(row)

    # Sessions of the page

    def login_token(self, *, name: str, owner: str | None, rights: Iterable[Right | str]) -> str:
        """A token that begins one session, soon."""
        made = self.create(name, owner=owner, rights=rights, kind=KeyKind.login, days=LOGIN_DAYS)
        return made.secret

    def begin_session(self, login_token: str) -> NewKey | None:
        """The session that a token begins; None if it begins none (any more)."""
        now = now_micros()
        spend = (
            update(KEYS)
            .where(
                KEYS.c.hash == hashed(login_token),
                KEYS.c.kind == KeyKind.login.value,
                KEYS.c.revoked_at.is_(None),
                KEYS.c.expires_at > now,
            )
            .values(revoked_at=now)
            .returning(KEYS)
        )
        with self._database.reading() as connection:  # whoever guesses holds up no writer
            if connection.execute(_FIND, {"hash": hashed(login_token)}).one_or_none() is None:
                return None
        with self._database.writing() as connection:
            row = connection.execute(spend).one_or_none()
        if row is None:
            return None
        spent = _key(row)
        return self.create(
            spent.name,
            owner=spent.owner,
            rights=spent.rights,
            kind=KeyKind.session,
            days=SESSION_DAYS,
        )


def owner_of(
    user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
) -> str | None:
    """The owner that exactly one id names; None where none is given. Raises BadInput for more."""
    given = [value for value in (user_id, agent_id, run_id) if value is not None]
    if len(given) > 1:
        raise BadInput(
            "A key opens the memory of one user, one agent or one run: give one of them."
        )
    return Scope(user_id, agent_id, run_id).owner if given else None


def owner_field(owner: str) -> tuple[str, str]:
    """`("user_id", "alice")` for `user:alice`."""
    sort, _, value = owner.partition(":")
    return f"{sort}_id", value


def checked_owner(owner: str) -> str:
    """The owner, if it is one; raises BadInput."""
    field, value = owner_field(owner)
    if field not in SCOPE_FIELDS:
        raise BadInput(f"There is no owner {owner!r}: write user:NAME, agent:NAME or run:NAME.")
    return Scope(**{field: value}).owner


def checked_rights(rights: Iterable[Right | str]) -> frozenset[Right]:
    """Some rights, by name; raises BadInput for others and for none."""
    named = list(rights)
    try:
        known = frozenset(Right(right) for right in named)
    except ValueError:
        known = frozenset()
    if not known:
        raise BadInput(f"A key needs rights among {', '.join(Right)}, not {', '.join(named)!r}.")
    return known


def hashed(secret: str) -> str:
    """What is kept of a secret. It is random and long, so a plain hash cannot be turned round."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _key(row: Row[Any]) -> Key:
    values = row._asdict()
    del values["hash"]
    return Key(
        **{
            **values,
            "kind": KeyKind(values["kind"]),
            "rights": frozenset(map(Right, values["rights"].split(","))),
        }
    )
