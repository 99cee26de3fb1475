"""Keys and the access log: who may come in, and who read, wrote or erased what.

    GET  /keys              all keys, the browsers that are signed in, and the newest lines of the
                            log; before= goes on
    POST /keys              make a key; its secret is shown this once
    POST /keys/ID/revoke    let a key or a browser open nothing from now on

For an admin key that is bound to no owner. Invariant: a secret is in the answer that makes its key
and in no other.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Form, Query
from fastapi.responses import HTMLResponse, Response

from memograd.errors import BadInput
from memograd.serve.keys import NewKey, Right
from memograd.serve.page.texts import catalogue
from memograd.serve.page.view import PageRefused, View, Viewing

PAGE_LINES = 50

routes = APIRouter()


@routes.get("/keys")
def keys(view: Viewing, before: Annotated[int | None, Query(ge=1, le=2**62)] = None) -> Response:
    """All keys, and a page of the access log."""
    return _page(view, before=before)


@routes.post("/keys")
def create_key(
    view: Viewing,
    name: Annotated[str, Form()],
    rights: Annotated[list[str] | None, Form()] = None,
    owner: Annotated[str, Form()] = "",
    days: Annotated[str, Form()] = "",
) -> Response:
    """Make a key for one owner, or for everybody's memory where none is named."""
    assert view.identity is not None
    view.identity.need_operator()
    made = view.served.keys.create(
        name, owner=owner.strip() or None, rights=rights or [], days=_days(days)
    )
    return _page(view, made=made)


@routes.post("/keys/{key_id}/revoke")
def revoke_key(view: Viewing, key_id: str) -> Response:
    """Let a key open nothing from now on."""
    assert view.identity is not None
    view.identity.need_operator()
    try:
        view.served.keys.revoke(key_id)
    except BadInput:
        raise PageRefused(view.say("keys.unknown"), 404) from None
    return view.moved("/keys")


def _page(view: View, *, before: int | None = None, made: NewKey | None = None) -> HTMLResponse:
    assert view.identity is not None
    view.identity.need_operator()
    lines = view.memory.accesses(before=before, limit=PAGE_LINES + 1)
    return view.page(
        "keys.html",
        keys=[(key.shown(), key.opens()) for key in reversed(view.served.keys.list())],
        sessions=[session.shown() for session in reversed(view.served.keys.sessions())],
        own=view.identity.key_id,
        rights=list(Right),
        made=made,
        lines=lines[:PAGE_LINES],
        before=before,
        did=partial(_did, view),
        via=partial(_via, view),
        by=partial(_by, view),
        kept_days=view.served.settings.access_days,
        older=lines[PAGE_LINES - 1].seq if len(lines) > PAGE_LINES else None,
    )


def _days(days: str) -> float | None:
    """What the field says; of what is no number 0, which no key is made for."""
    if not days.strip():
        return None
    try:
        return float(days)
    except ValueError:
        return 0.0


def _did(view: View, action: str) -> str:
    """What was done, in the language of the page; as it stands where another version wrote it."""
    known = _knows(view, f"access.did.{action}")
    return view.say("access.did." + action) if known else action


def _via(view: View, door: str) -> str:
    return view.say("access.by." + door) if _knows(view, f"access.by.{door}") else door


def _by(view: View, name: str) -> str:
    """Who did it: a key by the name that somebody gave it, what has no key by ours."""
    return view.say("access.key." + name) if _knows(view, f"access.key.{name}") else name


def _knows(view: View, text: str) -> bool:
    return text in catalogue()[view.language]
