"""The memory browser: owners, their items, why they are found, their past, and changing them.

    GET  /memory            owners; with owner= that owner's items, q= searches them, at= goes back
    GET  /memory/item/ID    one item with its history, sources and related items
    POST /memory/item/ID/{edit,forget,purge}

Invariant: a change is made by POST alone, and purging needs the confirmation that the form carries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Query
from fastapi.responses import HTMLResponse, Response

from memograd.errors import BadInput
from memograd.memory.records.items import Kind
from memograd.serve import left_by_run
from memograd.serve.keys import Right
from memograd.serve.page import run_files
from memograd.serve.page.page_memory import OwnerCount, PageMemory
from memograd.serve.page.view import PageRefused, View, Viewing
from memograd.serve.page.why import Reasons, explained
from memograd.serve.refusals import NotFound

MOST_EVENTS: Final = 50
"""Of an item's history; differences take their time."""
SHOWN: Final = 3
"""Operations of an owner, and questions, of a memory that a run left."""

routes = APIRouter()

# Views are plain functions, because a memory's methods block: FastAPI runs them in threads.


@dataclass(frozen=True)
class MemoryRow:
    """One item in the list.

    change: against the present, when the past is shown: `changed`, `forgotten`, or nothing. now:
    what a changed item says today.
    """

    item: Mapping[str, Any]
    why: Reasons | None = None
    change: str = ""
    now: str | None = None


@dataclass(frozen=True)
class LeftByRun:
    """A memory that a run left. latest: the newest operations by owner, each with its reason.
    answered: some questions with what was found before and after training, by name."""

    run: str
    latest: Mapping[str, Sequence[Mapping[str, Any]]]
    answered: Sequence[run_files.RunAnswer]


@routes.get("/memory")
def memory(
    view: Viewing,
    owner: str = "",
    q: str = "",
    kind: str = "",
    at: Annotated[int | None, Query(ge=1)] = None,
    after: Annotated[int, Query(ge=0)] = 0,
    find: str = "",
    page: Annotated[int, Query(ge=0)] = 0,
) -> HTMLResponse:
    """The owners, or one owner's items."""
    memory = view.memory
    assert view.identity is not None
    owner = owner or view.identity.owner or ""
    if not owner:
        owners, count = memory.owners(find, page=page)
        return view.page(
            "owners.html",
            owners=owners,
            count=count,
            find=find,
            page=page,
            policy=_policy(view),
            left=None if find or page else _left_by_run(view, memory, owners),
        )
    if kind and kind not in list(Kind):
        raise BadInput(f"There is no kind {kind!r}: choose among {', '.join(Kind)}.")
    changes = memory.changes(owner)
    moment = None if at is None or at >= changes else memory.moment_of_change(owner, at)
    browsed = memory.browse(owner, kind=kind or None, as_of=moment, after=after)
    rows = [MemoryRow(item) for item in browsed.items]
    if q.strip():
        hits = memory.find(q, owner, kind=kind or None, as_of=moment)
        rows = [MemoryRow(hit, why) for hit, why in zip(hits, explained(hits), strict=True)]
    since = 0
    if moment is not None:
        rows, since = _against_now(memory, owner, rows, moment)
    return view.page(
        "memory.html",
        owner=owner,
        q=q,
        kind=kind,
        kinds=list(Kind),
        changes=changes,
        at=changes if moment is None else at,
        as_of=moment,
        rows=rows,
        browsed=browsed,
        since=since,
        after=after,
        policy=_policy(view),
    )


@routes.get("/memory/item/{memory_id}")
def item(view: Viewing, memory_id: str) -> HTMLResponse:
    """One item."""
    memory = view.memory
    found, living = memory.past_or_present(memory_id)
    linked = (found["metadata"] or {}).get("may_change")
    history = memory.history(memory_id)
    return view.page(
        "item.html",
        item=found,
        living=living,
        history=history[: -MOST_EVENTS - 1 : -1],
        earlier=max(len(history) - MOST_EVENTS, 0),
        turns=memory.turns_behind(memory_id) if living else [],
        related=list(memory.related(memory_id, found["memory"], found["owner"])),
        linked=_linked(memory, linked),
        may_write=memory.identity.may(Right.write),
        may_erase=memory.identity.may(Right.erase),
    )


@routes.post("/memory/item/{memory_id}/edit")
def edit(view: Viewing, memory_id: str, text: Annotated[str, Form()]) -> Response:
    """Let an item say something else from now on."""
    if not text.strip():
        raise PageRefused(view.say("item.edit.empty"))
    view.memory.update(memory_id, text.strip(), None)
    return view.moved(f"/memory/item/{memory_id}")


@routes.post("/memory/item/{memory_id}/forget")
def forget(view: Viewing, memory_id: str) -> Response:
    """Forget an item: history and past still know it."""
    memory = view.memory
    owner = memory.past_or_present(memory_id)[0]["owner"]
    memory.delete(memory_id)
    return view.moved("/memory", owner=owner)


@routes.post("/memory/item/{memory_id}/purge")
def purge(view: Viewing, memory_id: str, confirm: Annotated[str, Form()] = "") -> Response:
    """Erase an item for good."""
    if confirm != "erase":
        raise PageRefused(view.say("item.purge.confirm"))
    return view.moved("/memory", owner=view.memory.erase(memory_id))


def _against_now(
    memory: PageMemory, owner: str, rows: list[MemoryRow], moment: datetime
) -> tuple[list[MemoryRow], int]:
    """The rows with what became of each, and how many items were learnt since."""
    living = memory.today(owner, [row.item["id"] for row in rows])

    def judged(row: MemoryRow) -> MemoryRow:
        now = living.get(row.item["id"])
        if now is None:
            return MemoryRow(row.item, row.why, "forgotten")
        if now.text != row.item["memory"]:
            return MemoryRow(row.item, row.why, "changed", now.text)
        return row

    return [judged(row) for row in rows], memory.learnt_since(owner, moment)


def _linked(memory: PageMemory, memory_id: object) -> dict[str, Any] | None:
    """The item that another one may have changed, as it stands or stood; None if it was purged.

    The id stands in metadata, where an application may write whatever it likes.
    """
    if not isinstance(memory_id, str) or "\0" in memory_id:
        return None
    try:
        return memory.past_or_present(memory_id)[0]
    except NotFound:
        return None


def _left_by_run(view: View, memory: PageMemory, owners: Sequence[OwnerCount]) -> LeftByRun | None:
    """What to see at once of a memory that a run left; None of any other memory."""
    settings, runs = view.served.memory.store.settings, view.served.settings.runs
    operator = memory.identity.is_operator()
    name = left_by_run.name_of(settings.path, runs) if operator else None
    if name is None:
        return None
    path = run_files.run_path(runs, name)
    answered = run_files.answers(path, 0)[0] if run_files.has_answers(path) else []
    return LeftByRun(
        run=name,
        latest={one.owner: memory.latest_operations(one.owner, SHOWN) for one in owners},
        answered=answered[:SHOWN],
    )


def _policy(view: Viewing) -> dict[str, str]:
    """Who reads, decides and ranks in this memory."""
    memory = view.served.memory
    settings = memory.store.settings
    return {
        "reader": settings.reader,
        "manager": memory.manager.actor,
        "ranking": "trained" if memory.recall.ranking.ranker is not None else "fusion",
        "embedder": memory.store.embedder.name,
    }
