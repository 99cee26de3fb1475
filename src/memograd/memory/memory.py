"""`Memory`: what an application holds. Familiar to mem0's users; everything it does is journaled.

    with Memory.open("memories/") as memory:
        memory.add("I moved to Boston in May.", user_id="alice")
        memory.search("Where does she live?", user_id="alice")["results"]

By default nothing here needs a server, a language model or torch: a rule reader finds the facts, a
rule manager decides what they change, and search runs in the process. Reader, manager, embedder and
reranker can each be another one.

Invariants: any sequence of calls answers like a plain dictionary of items would, and nothing
written under one user is ever returned under another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memograd.config import MemorySettings, from_mem0_config, load_memory_settings
from memograd.errors import BadInput, MemogradError
from memograd.memory.arguments import (
    check_text,
    checked_count,
    checked_id,
    checked_ids,
    checked_labels,
    checked_number,
)
from memograd.memory.filters import scope_filter
from memograd.memory.messages import Messages, to_local_moment, to_moment, to_turns
from memograd.memory.records.events import Event, EventKind
from memograd.memory.records.items import Kind
from memograd.memory.records.scope import Scope
from memograd.memory.results import (
    history_result,
    hit_result,
    item_result,
    operation_result,
    pending_result,
    turn_result,
)
from memograd.memory.search.recall import Recall
from memograd.memory.state.store import MemoryStore
from memograd.memory.write.answers import Answered, check_answered, write_answer, write_feedback
from memograd.memory.write.edits import delete_item, delete_matching, edit_item
from memograd.memory.write.remember import Labels, learn, learn_verbatim

if TYPE_CHECKING:
    from memograd.memory.embedders import Embedder
    from memograd.memory.manager import MemoryManager, StateManager
    from memograd.memory.reader import MemReader
    from memograd.memory.search import Context, Mode, Reranker

Filters = Mapping[str, Any]


class Memory:
    """The memories of any number of users, agents and runs, in one place."""

    def __init__(
        self,
        store: MemoryStore,
        *,
        reader: MemReader,
        manager: MemoryManager | StateManager,
        reranker: Reranker | None = None,
    ) -> None:
        """For `Memory.open`, which makes the parts from settings."""
        self.store, self.reader, self.manager = store, reader, manager
        self.recall = Recall(store, reranker)

    @classmethod
    def open(
        cls,
        path: Path | str | None = None,
        *,
        settings: MemorySettings | None = None,
        embedder: Embedder | str | None = None,
        reader: MemReader | str | None = None,
        manager: MemoryManager | StateManager | str | None = None,
        reranker: Reranker | None = None,
        **given: Any,
    ) -> Memory:
        """Open the memory in the folder `path`, or create it.

        What is not given comes from the environment, from `.env` and from the defaults
        (`memograd.config.MemorySettings` lists all settings; `given` overrides them by name).
        embedder, reader and manager are objects, or names as in the settings (`embedder="minilm"`).
        `policy="runs/my-run/final"` lets a trained head decide instead of the manager, but for what
        it is less sure of than `defer_below`. Raises BadInput when a setting is wrong, when the
        place cannot be used, or when another embedder made the memory or trained the policy.
        """
        from memograd.memory.configured import check_policy, configured_manager, configured_reader
        from memograd.memory.embedders import embedder_from_settings

        parts = {"embedder": embedder, "reader": reader, "manager": manager}
        given |= {name: part for name, part in parts.items() if isinstance(part, str)}
        if settings is None:
            places = {} if path is None else {"path": Path(path)}
            settings = load_memory_settings(**places, **given)
        elif path is not None or given:
            raise BadInput("Give Memory.open either settings or path and single settings.")
        if reader is None or isinstance(reader, str):
            of_own = manager is not None and not isinstance(manager, str)
            if of_own and "reader" not in settings.model_fields_set:
                settings = settings.model_copy(update={"reader": "rules"})
            reader = configured_reader(settings)
        decides: MemoryManager | StateManager
        if manager is None or isinstance(manager, str):
            decides = configured_manager(settings)
        elif settings.policy is not None:
            raise BadInput("Give Memory.open either a policy or a manager of your own.")
        else:
            decides = manager
        if embedder is None or isinstance(embedder, str):
            embedder = embedder_from_settings(settings)
        check_policy(decides, embedder)
        store = MemoryStore(settings, embedder)
        return cls(store, reader=reader, manager=decides, reranker=reranker)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Memory:
        """Open the memory that a configuration in mem0's form describes."""
        return cls.open(settings=from_mem0_config(config))

    def close(self) -> None:
        """Let go of all files and connections. Closing twice is harmless."""
        self.recall.close()
        self.store.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # Writing

    def add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        timestamp: datetime | str | float | None = None,
        kind: Kind | str | None = None,
        categories: Iterable[str] = (),
    ) -> dict[str, Any]:
        """Remember what matters in a text or in chat messages.

        infer: read facts and decide what each changes (ADD, UPDATE, DELETE or nothing); False
        remembers every message word for word. timestamp: when it was said, now if not given;
        "yesterday" is the day before in its zone (without one UTC; now: the machine's).
        metadata, kind and categories are given to all items of this call.

        Returns `{"results": [{id, memory, event, reason, ...}]}`, one entry for each item that
        changed, and where somebody asks to forget everything `pending`, a list of what must be
        confirmed first (`delete_all` does it). When this returns, it is written down durably.
        Raises BadInput for messages or ids that cannot be understood; then nothing is written.
        """
        events = self.learn(
            messages,
            scope=Scope(user_id, agent_id, run_id),
            labels=checked_labels(metadata, kind, categories),
            infer=infer,
            timestamp=timestamp,
        )
        changes = [event for event in events if event.kind is not EventKind.NONE]
        result: dict[str, Any] = {"results": [operation_result(event) for event in changes]}
        pending = [event for event in events if (event.after or {}).get("pending")]
        if pending:
            result["pending"] = [pending_result(event) for event in pending]
        return result

    def learn(
        self,
        messages: Messages,
        *,
        scope: Scope,
        labels: Labels | None = None,
        infer: bool = True,
        timestamp: datetime | str | float | None = None,
        answered: Answered | None = None,
    ) -> list[Event]:
        """What `add` does, as journal events: all four operations, NONE too.

        answered: the answer that was given to these messages, written down with them or not at all.
        """
        now = self.store.now().astimezone()  # the machine's zone says which day it is
        heard_at = now if timestamp is None else to_local_moment(timestamp, "timestamp")
        turns = to_turns(messages, heard_at=heard_at)
        labels = labels or Labels()
        beside = []
        if answered is not None:
            beside = [answered.heard_in([turn.id for turn in turns]).event(scope)]
        if not infer:
            return learn_verbatim(
                self.store, turns, scope, labels, categorise=self.recall.categorise, beside=beside
            )
        return learn(
            self.store,
            self.reader,
            self.manager,
            turns,
            scope,
            labels,
            categorise=self.recall.categorise,
            beside=beside,
        )

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        data: str | None = None,
    ) -> dict[str, str]:
        """Let an item say `text` from now on, or give it other metadata (merged, None removes).

        `data` is mem0's older name for `text`. Raises BadInput when there is no such item.
        """
        text = data if text is None else text
        if text is None and metadata is None:
            raise BadInput("update needs a new text or new metadata.")
        if text is not None:
            check_text(text, "The new text")
            if not text.strip():
                raise BadInput("update needs a text with something in it; use delete to forget.")
        changed = checked_labels(metadata, None, ()).metadata
        edit_item(self.store, checked_id(memory_id), text, changed)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Forget an item: it is found no more, nor are the raw turns that it came from.

        History and `as_of` still know them.

        Raises BadInput when there is no such item. To erase it for good, use `purge`.
        """
        delete_item(self.store, checked_id(memory_id))
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        *,
        filters: Filters | None = None,
    ) -> dict[str, Any]:
        """Forget every item that matches, as `delete` does; returns how many as `deleted`."""
        wanted = scope_filter(user_id, agent_id, run_id, filters)
        count = sum(
            delete_matching(self.store, owner, wanted) for owner in self.store.owners(wanted)
        )
        return {"message": "Memories deleted successfully!", "deleted": count}

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

    # Reading

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Filters | None = None,
        top_k: int | None = None,
        limit: int | None = None,
        threshold: float | None = None,
        as_of: datetime | str | None = None,
        mode: Mode = "hybrid",
        turns: int = 0,
        recency_half_life: timedelta | None = None,
        rerank: bool = False,
        explain: bool = False,
        asked_at: datetime | str | None = None,
    ) -> dict[str, Any]:
        """The items that answer a query best, best first.

        The ids may be given by name or inside `filters`, together with conditions on metadata.
        top_k (`limit` in mem0's v1): how many items. threshold: the least score of a hit. as_of:
        answer from what the memory knew at that moment. mode: hybrid, dense or lexical. turns: also
        return that many raw turns behind the items, as `turns`. recency_half_life: the age at
        which a score is halved. rerank: let the reranker order them. explain: say of each hit why
        it was found. asked_at: when the question is asked, which "last week" counts from: `as_of`,
        or now, if not given.

        Returns `{"results": [{id, memory, score, similarity, ...}]}`. `score` is the probability
        that the hit holds what was asked, times its recency; `similarity` is the cosine to the
        query. By rank fusion (the setting `ranking`, another embedder than the ranker's, a mode of
        dense or lexical) the score is the fused rank, 1 for an item that is first in every ranking,
        and threshold is the least similarity.
        """
        found = self.recall.search(
            query,
            scope_filter(user_id, agent_id, run_id, filters),
            top_k=checked_count(
                limit if top_k is None else top_k, self.store.settings.top_k, "top_k", least=1
            ),
            turns=checked_count(turns, 0, "turns"),
            threshold=checked_number(threshold, "threshold"),
            as_of=None if as_of is None else to_moment(as_of, "as_of"),
            mode=mode,
            recency_half_life=recency_half_life,
            rerank=rerank,
            asked_at=None if asked_at is None else to_local_moment(asked_at, "asked_at"),
            explain=explain,
        )
        result = {"results": [hit_result(hit, explain=explain) for hit in found.items]}
        if turns:
            result["turns"] = [turn_result(hit, explain=explain) for hit in found.turns]
        return result

    def context(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Filters | None = None,
        top_k: int | None = None,
        turns: int = 10,
        token_budget: int = 2_000,
    ) -> Context:
        """What a prompt should show of the memory: core items, found items, raw turns behind them.

        The text of the result never exceeds `token_budget` tokens (estimated; see `recall`).
        """
        return self.recall.context(
            query,
            scope_filter(user_id, agent_id, run_id, filters),
            top_k=checked_count(top_k, self.store.settings.top_k, "top_k", least=1),
            turns=checked_count(turns, 0, "turns"),
            token_budget=checked_count(token_budget, 0, "token_budget"),
        )

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """The item as it stands, or None when it never was or is no more."""
        item = self.store.item(checked_id(memory_id))
        return None if item is None else item_result(item)

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Filters | None = None,
        limit: int | None = None,
        top_k: int | None = None,
        as_of: datetime | str | None = None,
    ) -> dict[str, Any]:
        """All items that match, in the order they were learnt; the first `limit` of them."""
        limit = limit if top_k is None else top_k
        items = self.recall.all_items(
            scope_filter(user_id, agent_id, run_id, filters),
            limit=None if limit is None else checked_count(limit, 0, "limit"),
            as_of=None if as_of is None else to_moment(as_of, "as_of"),
        )
        return {"results": [item_result(item) for item in items]}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Everything that happened to an item, oldest first: who, when, why, before and after."""
        return [
            history_result(event) for event in self.store.journal.history(checked_id(memory_id))
        ]

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

        Importing twice changes nothing. Raises BadInput, having changed nothing, when a line of the
        file is not an event.
        """
        from memograd.memory.write.transfer import import_journal

        return import_journal(self.store, Path(path))
