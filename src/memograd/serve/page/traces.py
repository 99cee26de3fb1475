"""Traces of the gateway: the rollouts of agents, their calls, what was said and answered.

    GET /traces                   rollouts, the newest first; state= chooses, after= goes on
    GET /traces/ID                one rollout with its calls; first= goes on

The store is `memograd serve --traces URL`. Traces hold what agents and their users said, so only an
admin key that is bound to no owner sees any. Invariant: nothing here changes a trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from memograd.errors import BadInput
from memograd.gateway.records import STATES, CallRecord
from memograd.gateway.store import TraceReader
from memograd.serve.page.view import PageRefused, View, Viewing

PAGE_ROLLOUTS: Final = 50
PAGE_CALLS: Final = 20

routes = APIRouter()


@dataclass(frozen=True)
class ShownCall:
    """One call. messages, answers: role or reason and text."""

    call: CallRecord
    messages: Sequence[tuple[str, str]]
    answers: Sequence[tuple[str, str]]


@routes.get("/traces")
def traces(view: Viewing, state: str = "", after: str | None = None) -> HTMLResponse:
    """The rollouts."""
    store = _store(view)
    if state and state not in STATES:
        raise BadInput(f"There is no state {state[:80]!r}: choose among {', '.join(STATES)}.")
    page = (
        None if store is None else store.page(state=state or None, after=after, limit=PAGE_ROLLOUTS)
    )
    return view.page(
        "traces.html",
        page=page,
        place="" if store is None else store.place,
        states=STATES,
        state=state,
        after=after,
    )


@routes.get("/traces/{rollout_id}")
def trace(
    view: Viewing, rollout_id: str, first: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0
) -> HTMLResponse:
    """One rollout with some of its calls."""
    store = _store(view)
    rollout = None if store is None else store.rollout(rollout_id)
    if store is None or rollout is None:
        raise PageRefused(view.say("traces.unknown"), 404)
    calls = store.calls(rollout_id, first=first, limit=PAGE_CALLS + 1)
    more = calls[PAGE_CALLS].number if len(calls) > PAGE_CALLS else None
    return view.page(
        "trace.html",
        rollout=rollout,
        metadata={name: _text(value) for name, value in rollout.metadata.items()},
        calls=[_shown(call) for call in calls[:PAGE_CALLS]],
        first=first,
        more=more,
    )


def _store(view: View) -> TraceReader | None:
    assert view.identity is not None
    view.identity.need_operator()
    return view.served.traces


def _shown(call: CallRecord) -> ShownCall:
    return ShownCall(
        call=call,
        messages=[(str(one.get("role", "")), _said(one)) for one in call.messages],
        answers=[
            (choice.finish_reason, "\n".join(_parts(choice.text, choice.tool_calls)))
            for choice in call.choices
        ],
    )


def _said(message: Mapping[str, Any]) -> str:
    return "\n".join(_parts(message.get("content"), message.get("tool_calls") or ()))


def _parts(content: Any, tool_calls: Sequence[Any]) -> Iterator[str]:
    if content:
        yield _text(content)
    for one in tool_calls:
        yield _text(one)


def _text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
