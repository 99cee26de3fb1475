"""What one does to a memory as a whole: answers and feedback, making room, erasing, moving.

`memory.py` has what one does every day. `reindex` computes anew what is computed from the journal
(vectors, search terms, the Milvus index): for another embedder, after a repair, or when the
analysis of texts has changed. The journal is only read. Stopped at any moment, the memory opens
with the old embedder or with the new one, never with a mixture: what is missing is computed when it
is needed, and a process that has the memory open with the old embedder is refused when it writes.

Invariants: nothing here is done by a model unless it says so, and only `purge` and `reset` erase;
after `reindex` every search answers as a memory that was filled with this embedder would.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memograd.config import MemorySettings
from memograd.errors import BadInput, MemogradError, Unfinished
from memograd.memory.arguments import check_text, checked_count, checked_id, checked_ids
from memograd.memory.filters import parse_filter, scope_filter
from memograd.memory.journal import Journal
from memograd.memory.records.scope import Scope
from memograd.memory.results import entity_results
from memograd.memory.search.recall import Recall
from memograd.memory.state.store import MemoryStore, embedder_meta, journal_url
from memograd.memory.write.answers import Answered, check_answered, write_answer, write_feedback
from memograd.memory.write.edits import sweep_owner

if TYPE_CHECKING:
    from memograd.memory.embedders import Embedder
    from memograd.memory.manager import MemoryManager


class MemoryUpkeep:
    """The half of `Memory` that is seldom needed."""

    store: MemoryStore
    manager: MemoryManager
    recall: Recall

    def close(self) -> None:
        """Let go of all files and connections, once what was added has its vectors.

        Closing twice is harmless.
        """
        self.recall.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # Answers and what is said of them

    def answered(
        self,
        question: str,
        answer: str,
        *,
        shown: Iterable[str] = (),
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> str:
        """Write down an answer that was given with the memory; returns the id that feedback names.

        shown: ids of the memories (and raw turns) that the answer was made from. Raises BadInput
        when one of them belongs to somebody else.
        """
        scope = Scope(user_id, agent_id, run_id)
        given = Answered(question, answer, checked_ids(shown, "shown"))
        check_answered(self.store, given, scope)
        return write_answer(self.store, given, scope)

    def feedback(
        self,
        answer_id: str,
        verdict: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Say of an answer that it was `good` or `bad`, or what the right answer would have been.

        `memograd learn` trains the policy on it; the last verdict on an answer counts. Raises
        BadInput when there is no such answer, or none under the ids given.
        """
        check_text(verdict, "The feedback")
        given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        ids = {name: value for name, value in given.items() if value is not None}
        return write_feedback(self.store, checked_id(answer_id), verdict, ids)

    # Making room

    def compact(
        self,
        budget: int,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Merge and retire items until at most `budget` tokens are left of those under these ids.

        The policy says what is said twice and what is worth least; without one the rules do, and
        what happened leaves first, older things before newer. Core items stay. Returns
        `{"batch_id", "merged", "retired", "items", "tokens"}`; `undo_compact` takes it back.
        """
        from memograd.memory.write.compaction import compact

        scope = Scope(user_id, agent_id, run_id)
        return compact(self.store, self.manager, scope, checked_count(budget, 0, "budget"))

    def undo_compact(self, batch_id: str) -> dict[str, Any]:
        """Bring back what a compaction merged and retired, but for what was changed since.

        Raises BadInput when there was no such compaction or nothing of it is left to undo.
        """
        from memograd.memory.write.compaction import undo_compact

        return undo_compact(self.store, checked_id(batch_id))

    def sweep(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Forget what has expired, as `delete` does: of these ids, or of everybody.

        Expired items are hidden anyway; from then on `show_expired` does not show them either.
        Returns how many items there were, as `swept`.
        """
        ids = (user_id, agent_id, run_id)
        wanted = scope_filter(*ids) if any(ids) else parse_filter(None)
        owners = self.store.owners(wanted)
        return {"swept": sum(sweep_owner(self.store, owner) for owner in owners)}

    # How much there is

    def users(self) -> dict[str, Any]:
        """Users, agents and runs with how many items they have, and since when.

        Returns `{"results": [{type, id, name, total_memories, created_at, updated_at}], "count"}`,
        users first. Items that have expired count until they are swept.
        """
        found = entity_results(self.store.journal.living(None))
        return {"results": found, "count": len(found)}

    def stats(self) -> dict[str, Any]:
        """How much is kept, where, and by which embedder."""
        return self.store.journal.stats() | {
            "embedder": self.store.embedder.name,
            "dimension": self.store.embedder.dimension,
        }

    # Erasing and moving

    def purge(
        self,
        memory_id: str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Really erase one item, or everything under the given ids: for the right to be forgotten.

        Items, their whole history, the raw turns behind them and the index are erased; what stays
        is an event without contents that says that, when and by whom something was purged. Returns
        how many items and raw turns were erased. Raises BadInput when there is nothing by that id.
        """
        from memograd.memory.write.erase import purge_item, purge_scope

        if memory_id is not None and (user_id or agent_id or run_id):
            raise BadInput("purge takes either the id of an item or user, agent and run ids.")
        try:
            if memory_id is not None:
                report = purge_item(self.store, checked_id(memory_id))
            else:
                report = purge_scope(self.store, Scope(user_id, agent_id, run_id))
        except BadInput:
            raise  # nothing was purged
        except MemogradError:
            self.recall.after_purge()
            raise
        self.recall.after_purge()
        return report

    def purge_owner(self, owner: str) -> dict[str, Any]:
        """Purge everything that one owner (`user:alice`) has, and nothing of anybody else.

        `purge(agent_id=...)` takes what users said to the agent too; this takes the agent's own.
        """
        from memograd.memory.write.erase import purge_owners

        try:
            return purge_owners(self.store, [owner])
        finally:
            self.recall.after_purge()

    def reset(self) -> dict[str, Any]:
        """Purge everything of everybody."""
        from memograd.memory.write.erase import purge_owners

        try:
            return purge_owners(self.store, self.store.journal.owners())
        finally:
            self.recall.after_purge()

    def export(self, path: Path | str, *, user_id: str | None = None) -> int:
        """Write the journal, or one user's part, to a JSON Lines file; returns how many events.

        The file appears only when it is complete; an existing file is replaced.
        """
        from memograd.memory.write.transfer import export_journal

        owners = None if user_id is None else [Scope(user_id).owner]
        return export_journal(self.store, Path(path), owners)

    def import_(self, path: Path | str) -> int:
        """Take over what `export` wrote; returns how many events were new.

        Importing twice changes nothing. What was purged there is erased here, too, as by `purge`.
        Raises BadInput, having changed nothing, when a line of the file is not an event, and where
        a user was purged there of whom something was told here alone.
        """
        from memograd.memory.write.transfer import import_journal

        try:
            done = import_journal(self.store, Path(path))
        except Unfinished:
            self.recall.after_purge()
            raise
        if done.erased:
            self.recall.after_purge()
        return done.new


def reindex(settings: MemorySettings, embedder: Embedder | None = None) -> dict[str, Any]:
    """Compute everything again with the settings' embedder (or the one given).

    Returns the embedder's name and dimension, and how many owners, items and turns there are.
    """
    from memograd.memory.embedders import embedder_from_settings

    embedder = embedder or embedder_from_settings(settings)
    embedder.embed(["a first text, to see that it works before anything is changed"])
    with Journal.open(journal_url(settings)) as journal:
        journal.reset_derived(embedder_meta(embedder))
    store = MemoryStore(settings, embedder)
    recall = Recall(store, reranker=None)
    try:
        report = {"owners": 0, "items": 0, "turns": 0}
        for owner in store.journal.owners():
            state = store.states.current(owner)
            report["owners"] += 1
            report["items"] += len(state.items)
            report["turns"] += len(state.turns)
        recall.rebuild_index()
    finally:
        recall.close()
        store.close()
    return {"embedder": embedder.name, "dimension": embedder.dimension} | report
