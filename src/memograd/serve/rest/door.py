"""What the routes share: the memory of whoever asks, documented refusals, text in answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor

from memograd.errors import BadInput
from memograd.memory.results import item_result
from memograd.serve.owned_memory import OwnedMemory
from memograd.serve.refusals import Unprocessable
from memograd.serve.rest.bodies import Listing, NewMemories, at_most
from memograd.serve.served import Asking, Served
from memograd.serve.wall import Ids
from memograd.web.strict_json import StrictRoute

_ANY: Final[TypeAdapter[Any]] = TypeAdapter(Any)  # writes what is JSON as it stands


class _AnyText(Convertor[str]):
    """A part of a path that may hold anything, `{name:any_text}`: an owner's name does.

    Starlette's own kinds stop at a slash (`str`) or at a line break (`path`).
    """

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        """As it stands."""
        return value

    def to_string(self, value: str) -> str:
        """As it stands."""
        return value


register_url_convertor("any_text", _AnyText())


class RefusalBody(BaseModel):
    """Why a request was refused, in one sentence."""

    detail: str


# By name: given the model itself, FastAPI makes a validator a route and status, for most of the
# server's start. `/healthz` gives it.
_REFUSED: Final = {"$ref": f"#/components/schemas/{RefusalBody.__name__}"}
REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"content": {"application/json": {"schema": _REFUSED}}}
    for status in (400, 401, 403, 404, 408, 413, 422, 429, 501, 503)
}
PAGE: Final = 1000


def router(tag: str) -> APIRouter:
    """A router whose routes take strict JSON and document their refusals."""
    return APIRouter(tags=[tag], route_class=StrictRoute, responses=REFUSALS)


async def _owned(request: Request, identity: Asking) -> OwnedMemory:
    check_address(request)
    served: Served = request.app.state.served
    return served.memory_of(identity, via="rest")


def check_address(request: Request) -> None:
    """Raise `Unprocessable` for an address that is not UTF-8: what is no text in it would be read
    as question marks, and somebody else may be called so. And for a parameter that would be passed
    over, or stands there twice: what is asked for would reach further than it says, and
    `DELETE /memories?user=bob` too far."""
    for part in (request.scope.get("raw_path", b""), request.scope["query_string"]):
        try:
            unquote_to_bytes(part).decode()
        except UnicodeDecodeError:
            raise Unprocessable("The address is not UTF-8: percent-encode its text.") from None
    route: APIRoute = request.scope["route"]
    known = [field.alias for field in route.dependant.query_params]
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        if name not in known:
            use = f"use {', '.join(known)}" if known else "there is none"
            raise Unprocessable(f"There is no parameter {name[:60]!r} here: {use}.")
        if given.count(name) > 1:
            raise Unprocessable(f"The parameter {name} is given more than once: give one.")


Door = Annotated[OwnedMemory, Depends(_owned)]
"""A route's parameter: the memory as whoever asks may see it."""

IdempotencyKey = Annotated[str | None, Header(max_length=255)]
Limit = Annotated[int, Query(ge=1, le=PAGE)]


async def in_turn(served: Served, memory: OwnedMemory, ids: Ids, write: Callable[[], Any]) -> Any:
    """What a call gives that writes for one owner, in a thread, in its turn among these calls.

    A key with an owner has its turn already (`served.asking`); the key of everybody's memory speaks
    for many owners, and says whom in the body.
    """
    if memory.identity.owner is not None:
        return await run_in_threadpool(write)
    async with served.turns.taken(memory.whose(ids)):
        return await run_in_threadpool(write)


def check_name(request_id: str | None) -> None:
    """Raise BadInput for a call whose name is empty."""
    if request_id == "":
        raise BadInput("Idempotency-Key is empty: give the call a name, or leave the header out.")


async def add_in_turn(
    served: Served, memory: OwnedMemory, asked: NewMemories, request_id: str | None
) -> Response:
    """The answer to a call that adds. request_id: its name, by which it can be made again."""
    at_most(asked.messages, served.settings.limits.max_batch, "messages")
    check_name(request_id)
    ids, given = asked.ids_alone(), asked.given()

    def add() -> Response:
        return told(memory.add(asked.messages, ids=ids, request_id=request_id, **given))

    answer: Response = await in_turn(served, memory, ids, add)
    return answer


def told(result: Any) -> Response:
    """A result of `Memory`, which is JSON as it stands, as the answer of a route.

    What a route returns otherwise, FastAPI hands to another thread to look at before it writes it:
    a quarter of a millisecond, and a wait where many ask at once. And json's writer takes four
    times as long as pydantic's.
    """
    return Response(_ANY.dump_json(result), media_type="application/json")


def listed(
    memory: OwnedMemory, asked: Listing, *, cursor: str | None, limit: int
) -> dict[str, Any]:
    """One page of a list of items, with the cursor of the next one and how many there are."""
    ids, filters = asked.ids(), asked.conditions()
    page = memory.page(
        ids=ids,
        filters=filters,
        limit=limit,
        cursor=cursor,
        as_of=asked.as_of,
        show_expired=bool(asked.show_expired),
    )
    return {
        "results": [item_result(item) for item in page.items],
        "next_cursor": page.cursor,
        "total": page.total,
    }
