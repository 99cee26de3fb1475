"""What is ours alone: context, purge, compaction, answers, export, keys, the access log."""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response
from fastapi.responses import StreamingResponse

from memograd.errors import BadInput
from memograd.memory.results import context_result
from memograd.serve.refusals import NotFound
from memograd.serve.rest.bodies import (
    AnAnswer,
    Compaction,
    ContextQuestion,
    GivenVerdict,
    NewBatch,
    NewKeyAsked,
    Owned,
    Purge,
    at_most,
)
from memograd.serve.rest.door import Door, IdempotencyKey, Limit, check_name, in_turn, router
from memograd.serve.served import Served


def routes(served: Served) -> APIRouter:
    """`/context`, `/purge`, `/compact`, `/answers`, `/export`, `/import`, `/access`, `/keys`..."""
    api = router("memograd")

    @api.post("/context")
    def context(asked: ContextQuestion, memory: Door) -> Any:
        """What a prompt should show of the memory, within a token budget."""
        found = memory.context(
            asked.query,
            ids=asked.ids(),
            filters=asked.filters,
            top_k=asked.top_k,
            turns=asked.turns,
            token_budget=asked.token_budget,
        )
        return context_result(found)

    @api.post("/purge")
    def purge(asked: Purge, memory: Door) -> Any:
        """Erase for good: one memory, or everything of somebody. It cannot be undone."""
        ids, one = asked.ids_alone(), asked.one()
        if one is None:
            return memory.purge_all(ids=ids)
        if any(ids.values()):
            raise BadInput("purge takes either the id of a memory or user, agent and run ids.")
        return memory.purge(one)

    @api.post("/compact")
    async def compact(asked: Compaction, memory: Door) -> Any:
        """Merge what is said twice and retire what is worth least, until the rest fits."""
        ids = asked.ids_alone()
        compacting = partial(memory.compact, asked.budget, ids=ids)
        return await in_turn(served, memory, ids, compacting)

    @api.post("/compact/{batch_id}/undo")
    def undo_compact(batch_id: str, memory: Door) -> Any:
        """Take a compaction back."""
        return memory.undo_compact(batch_id)

    @api.post("/answers")
    def answered(asked: AnAnswer, memory: Door) -> Any:
        """Write down an answer that was given with the memory; returns the id for feedback."""
        ids = asked.ids_alone()
        return memory.answered(asked.question, asked.answer, shown=asked.shown, ids=ids)

    @api.post("/answers/{answer_id}/feedback")
    def feedback(answer_id: str, asked: GivenVerdict, memory: Door) -> Any:
        """Say of an answer that it was good or bad, or what the right one would have been."""
        return memory.feedback(answer_id, asked.verdict)

    @api.post("/memories/batch")
    async def add_many(
        asked: NewBatch, memory: Door, idempotency_key: IdempotencyKey = None
    ) -> Any:
        """Remember several things, in order; all are checked before the first is written."""
        at_most(asked.memories, served.settings.limits.max_batch, "memories")
        check_name(idempotency_key)
        entries, ids = asked.entries(), asked.ids_alone()
        add = partial(memory.add_many, entries, ids=ids, request_id=idempotency_key)
        return await in_turn(served, memory, ids, add)

    @api.post("/sweep")
    def sweep(asked: Owned, memory: Door) -> Any:
        """Forget what has expired; it is hidden before."""
        return memory.sweep(ids=asked.ids_alone())

    @api.get("/users")
    def users(memory: Door) -> Any:
        """Users, agents and runs with how many memories they have, and since when."""
        return {"results": memory.counts()}

    @api.get("/stats")
    def stats(memory: Door) -> Any:
        """How much is kept, and by which embedder; for an admin key."""
        return memory.stats()

    @api.get("/access")
    def access(
        memory: Door,
        before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
        limit: Limit = 100,
    ) -> Any:
        """Who read, wrote or erased what, newest first. The next page is `before` the last `seq`.

        A key with an owner is shown what happened to its owner's memory.
        """
        return {"results": [asdict(line) for line in memory.accesses(before=before, limit=limit)]}

    @api.get("/export", response_class=Response)
    def export(memory: Door) -> Response:
        """The journal as JSON lines: the key's owner's, or everybody's for an admin key."""
        lines = memory.export()
        begun = list(islice(lines, 2))  # a database that is away is told before anything else
        return StreamingResponse(chain(begun, lines), media_type="application/x-ndjson")

    @api.post("/import")
    def import_(
        memory: Door,
        lines: Annotated[bytes, Body(media_type="application/x-ndjson")],
    ) -> Any:
        """Take over what an export gave; twice changes nothing. For an admin key."""
        memory.identity.need_operator()
        handle, path = tempfile.mkstemp(suffix=".jsonl")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(lines)
            return {"imported": memory.import_(path)}
        except BadInput as error:
            told = str(error).replace(f"The file {path}", "The upload")
            raise BadInput(told.replace(path, "the upload")) from None
        finally:
            os.unlink(path)

    @api.get("/keys")
    def keys(memory: Door) -> Any:
        """All keys, and the browsers that are signed in; for an admin key."""
        memory.identity.need_operator()
        return {
            "results": [key.shown() for key in served.keys.list()],
            "sessions": [session.shown() for session in served.keys.sessions()],
        }

    @api.post("/keys", status_code=201)
    def create_key(asked: NewKeyAsked, memory: Door) -> Any:
        """Make a key; its secret is shown this once. For an admin key."""
        memory.identity.need_operator()
        made = served.keys.create(
            asked.name, owner=asked.owner, rights=asked.rights, days=asked.days
        )
        return {**made.key.shown(), "secret": made.secret}

    @api.delete("/keys/{key_id}")
    def revoke_key(key_id: str, memory: Door) -> Any:
        """Let a key, or a browser that is signed in, open nothing from now on; for an admin key."""
        memory.identity.need_operator()
        try:
            return served.keys.revoke(key_id).shown()
        except BadInput:
            raise NotFound(f"There is no key {key_id[:80]!r}.") from None

    return api
