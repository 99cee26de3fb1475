"""`Memory`: what an application holds. Familiar to mem0's users; everything it does is journaled.

    with Memory.open("memories/") as memory:
        memory.add("I moved to Boston in May.", user_id="alice")
        memory.search("Where does she live?", user_id="alice")["results"]

By default nothing here needs a server, a language model or torch: a small trained model finds the
facts and decides what they change, and search runs in the process. Each part can be another one.

Invariants: any sequence of calls answers like a plain dictionary of items would, and nothing
written under one user is ever returned under another; a keyword that a method does not have is
named in a warning, except where passing it over would forget or erase more than was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memograd.config import MemorySettings
from memograd.errors import BadInput
from memograd.memory.arguments import (
    check_text,
    checked_count,
    checked_days,
    checked_id,
    checked_labels,
    checked_number,
    one_of,
    warn_unknown,
)
from memograd.memory.configured import opened, settings_of
from memograd.memory.filters import scope_filter
from memograd.memory.messages import Messages, to_local_moment, to_moment, to_turns
from memograd.memory.records.events import Event
from memograd.memory.records.items import Kind, to_expiry
from memograd.memory.records.scope import Scope
from memograd.memory.results import (
    added_result,
    history_result,
    hit_result,
    item_result,
    turn_result,
)
from memograd.memory.search.hits import SearchRequest
from memograd.memory.search.recall import Recall
from memograd.memory.upkeep import MemoryUpkeep
from memograd.memory.write.answers import Answered
from memograd.memory.write.calls import (
    AddCall,
    call_keywords,
    call_parts,
    carry_calls,
    named_batch,
    reader_for,
)
from memograd.memory.write.changes import Labels
from memograd.memory.write.edits import delete_item, delete_matching, edit_item

if TYPE_CHECKING:
    from memograd.memory.chat.chat_model import VisionModel
    from memograd.memory.embedders import Embedder
    from memograd.memory.manager import MemoryManager
    from memograd.memory.reader import MemReader
    from memograd.memory.search import Context, Mode, Reranker

Filters = Mapping[str, Any]
AS_IT_IS: Final[Any] = object()  # for what None would remove


class Memory(MemoryUpkeep):
    """The memories of any number of users, agents and runs, in one place."""

    def __init__(
        self,
        config: Mapping[str, Any] | MemorySettings | Any | None = None,
        *,
        path: Path | str | None = None,
        embedder: Embedder | str | None = None,
        reader: MemReader | str | None = None,
        manager: MemoryManager | str | None = None,
        reranker: Reranker | None = None,
        vision: VisionModel | None = None,
        **given: Any,
    ) -> None:
        """Open a memory, or create it; see `Memory.open`.

        config: mem0's configuration, as a dictionary or as its own object, or `MemorySettings`.
        """
        parts = opened(
            settings_of(config),
            path,
            given,
            embedder=embedder,
            reader=reader,
            manager=manager,
            vision=vision,
        )
        self.store, self.reader, self.manager = parts.store, parts.reader, parts.manager
        self.vision = parts.vision
        self.recall = Recall(self.store, reranker)

    @classmethod
    def open(
        cls,
        path: Path | str | None = None,
        *,
        settings: MemorySettings | None = None,
        embedder: Embedder | str | None = None,
        reader: MemReader | str | None = None,
        manager: MemoryManager | str | None = None,
        reranker: Reranker | None = None,
        vision: VisionModel | None = None,
        **given: Any,
    ) -> Memory:
        """Open the memory in the folder `path`, or create it.

        What is not given comes from the environment, from `.env` and from the defaults
        (`memograd.config.MemorySettings` lists all settings; `given` overrides them by name).
        embedder, reader and manager are objects, or names as in the settings (`embedder="minilm"`).
        vision: describes pictures; else the settings' `openai_vision_model` does, if there is one.
        `policy="runs/my-run/final"` lets a trained head decide instead of the manager, but for what
        it is less sure of than `defer_below`. Raises BadInput when a setting is wrong, when the
        place cannot be used, or when another embedder made the memory or trained the policy.
        """
        return cls(
            settings,
            path=path,
            embedder=embedder,
            reader=reader,
            manager=manager,
            reranker=reranker,
            vision=vision,
            **given,
        )

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Memory:
        """Open the memory that a configuration in mem0's form describes."""
        return cls(config)

    # Writing

    def add(
        self,
        /,
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
        expiration_date: date | str | None = None,
        prompt: str | None = None,
        custom_instructions: str | None = None,
        memory_type: str | None = None,
        request_id: str | None = None,
        **unknown: Any,
    ) -> dict[str, Any]:
        """Remember what matters in a text or in chat messages.

        infer: read facts and decide what each changes (ADD, UPDATE, DELETE or nothing); False
        remembers every message word for word. timestamp: when it was said, now if not given;
        "yesterday" is the day before in its zone (without one UTC; now: the machine's).
        metadata, kind and categories are given to all items of this call. expiration_date: the last
        day (or the very moment) on which they are shown; what is said with it changes nothing that
        stays longer. prompt (or custom_instructions): what a reader that is a chat model should
        heed besides. request_id: a name for the call; made again under the same name, it writes
        nothing and answers the same.

        Returns `{"results": [{id, memory, event, reason, ...}]}`, one entry for each item that
        changed, and where somebody asks to forget everything `pending`, a list of what must be
        confirmed first (`delete_all` does it). When this returns, it is written down durably.
        Raises BadInput for messages or ids that cannot be understood; then nothing is written.
        """
        warn_unknown(self.add, unknown)
        given = {
            "user_id": user_id,
            "agent_id": agent_id,
            "run_id": run_id,
            "metadata": metadata,
            "infer": infer,
            "timestamp": timestamp,
            "kind": kind,
            "categories": categories,
            "expiration_date": expiration_date,
            "prompt": prompt,
            "custom_instructions": custom_instructions,
            "memory_type": memory_type,
            "request_id": request_id,
        }
        call = self._call(messages, **call_keywords(given))
        [events] = self._carry([call])
        return added_result(events)

    def add_many(
        self,
        /,
        batch: Iterable[Messages | Mapping[str, Any]],
        *,
        progress: Callable[[int, int], None] | None = None,
        request_id: str | None = None,
        **common: Any,
    ) -> dict[str, Any]:
        """`add` for each entry of a batch, in order; all entries are checked before the first.

        batch: texts or chat messages; or dictionaries of `add`'s keywords with `messages` among
        them, which win over `common`. Entries with infer=False are written many at once. progress:
        called with how many entries are done, and how many there are. request_id: a name for the
        whole batch; made again under the same name, it writes what is missing and answers the same.

        Returns `{"results": [...]}` with one answer of `add` an entry. Raises BadInput, having
        written nothing, when an entry is wrong. Entries that were written stay when a later one
        fails otherwise (name the batch, or each entry, by `request_id` to make the call again).
        """
        if isinstance(batch, str | Mapping):
            raise BadInput("add_many takes a list; give a single text or message to add.")
        calls = []
        for number, entry in enumerate(batch, start=1):
            messages, given = call_parts(entry, common, number)
            warn_unknown(self.add, given)
            try:
                calls.append(self._call(messages, **call_keywords(given)))
            except BadInput as error:
                raise BadInput(f"Entry {number} of the batch: {error}") from None
        if request_id is not None:
            calls = named_batch(calls, request_id)
        done = self._carry(calls, progress)
        return {"results": [added_result(events) for events in done]}

    def learn(
        self,
        messages: Messages,
        *,
        scope: Scope,
        labels: Labels | None = None,
        infer: bool = True,
        timestamp: datetime | str | float | None = None,
        answered: Answered | None = None,
        request_id: str | None = None,
    ) -> list[Event]:
        """What `add` does, as journal events: all four operations, NONE too.

        answered: the answer that was given to these messages, written down with them or not at all.
        """
        call = self._call(
            messages,
            scope=scope,
            labels=labels or Labels(),
            infer=infer,
            timestamp=timestamp,
            request_id=request_id,
            answered=answered,
        )
        [events] = self._carry([call])
        return events

    def _call(
        self,
        messages: Messages,
        *,
        scope: Scope,
        labels: Labels,
        infer: bool,
        timestamp: datetime | str | float | None,
        prompt: str | None = None,
        request_id: str | None = None,
        answered: Answered | None = None,
    ) -> AddCall:
        """The call as it is carried out; checked, and nothing written yet."""
        now = self.store.now().astimezone()  # the machine's zone says which day it is
        turns = to_turns(
            messages,
            heard_at=now if timestamp is None else to_local_moment(timestamp, "timestamp"),
            expires_at=labels.expires_at,
            vision=self.vision,
        )
        reader = reader_for(self.reader, prompt) if infer else None
        return AddCall(
            turns,
            scope,
            labels,
            reader,
            request_id,
            answered,
            prompt=prompt,
            heard_at=now if timestamp is None else None,
        )

    def _carry(
        self, calls: list[AddCall], progress: Callable[[int, int], None] | None = None
    ) -> list[list[Event]]:
        categorise = self.recall.categorise
        return carry_calls(self.store, self.manager, calls, categorise, progress)

    def update(
        self,
        /,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: date | str | None = AS_IT_IS,
        *,
        data: str | None = None,
        **unknown: Any,
    ) -> dict[str, str]:
        """Let an item say `text` from now on, or give it other metadata (merged, None removes).

        expiration_date: the last day on which it is shown; None: it stays. `data` is mem0's older
        name for `text`. Raises BadInput when there is no such item.
        """
        warn_unknown(self.update, unknown)
        text = data if text is None else text
        ends = {} if expiration_date is AS_IT_IS else {"expires_at": to_expiry(expiration_date)}
        if text is None and metadata is None and not ends:
            raise BadInput("update needs a new text or new metadata, or an expiration_date.")
        if text is not None:
            check_text(text, "The new text")
            if not text.strip():
                raise BadInput("update needs a text with something in it; use delete to forget.")
        changed = checked_labels(metadata, None, ()).metadata
        edit_item(self.store, checked_id(memory_id), text, changed, ends)
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

    # Reading

    def search(
        self,
        /,
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
        recency_half_life: timedelta | float | None = None,
        rerank: bool = False,
        explain: bool = False,
        asked_at: datetime | str | None = None,
        reference_date: datetime | str | None = None,
        show_expired: bool = False,
        **unknown: Any,
    ) -> dict[str, Any]:
        """The items that answer a query best, best first.

        The ids may be given by name or inside `filters`, together with conditions on metadata.
        top_k (`limit` in mem0's v1): how many items. threshold: the least score of a hit. as_of:
        answer from what the memory knew at that moment. mode: hybrid, dense or lexical. turns: also
        return that many raw turns behind the items, as `turns`. recency_half_life: the age at
        which a score is halved, in days unless it is a timedelta. rerank: let the reranker order
        them. explain: say of each hit why it was found. asked_at (mem0: reference_date): when the
        question is asked, which "last week" counts from: `as_of`, or now, if not given.
        show_expired: find what has expired, too.

        Returns `{"results": [{id, memory, score, similarity, ...}]}`. `score` is the probability
        that the hit holds what was asked, times its recency; `similarity` is the cosine to the
        query. By rank fusion (the setting `ranking`, another embedder than the ranker's, a mode of
        dense or lexical) the score is the fused rank, 1 for an item that is first in every ranking,
        and threshold is the least similarity. Where the settings name a ranker that cannot be used,
        the result says so as `warning`.
        """
        warn_unknown(self.search, unknown)
        asked_at = one_of("asked_at", asked_at, "reference_date", reference_date)
        request = SearchRequest(
            query,
            scope_filter(user_id, agent_id, run_id, filters),
            top_k=checked_count(
                limit if top_k is None else top_k, self.store.settings.top_k, "top_k", least=1
            ),
            turns=checked_count(turns, 0, "turns"),
            threshold=checked_number(threshold, "threshold"),
            as_of=None if as_of is None else to_moment(as_of, "as_of"),
            asked_at=None if asked_at is None else to_local_moment(asked_at, "asked_at"),
            mode=mode,
            recency_half_life=checked_days(recency_half_life, "recency_half_life"),
            rerank=rerank,
            explain=explain,
            show_expired=show_expired,
        )
        found = self.recall.search(request)
        result: dict[str, Any] = {
            "results": [hit_result(hit, explain=explain, query=query) for hit in found.items]
        }
        if turns:
            result["turns"] = [
                turn_result(hit, explain=explain, query=query) for hit in found.turns
            ]
        if found.warning:
            result["warning"] = found.warning
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
        request = SearchRequest(
            query,
            scope_filter(user_id, agent_id, run_id, filters),
            top_k=checked_count(top_k, self.store.settings.top_k, "top_k", least=1),
            turns=checked_count(turns, 0, "turns"),
        )
        budget = checked_count(token_budget, 0, "token_budget")
        return self.recall.context(request, token_budget=budget)

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """The item as it stands, or None when it never was or is no more."""
        item = self.store.item(checked_id(memory_id))
        return None if item is None else item_result(item)

    def get_all(
        self,
        /,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Filters | None = None,
        limit: int | None = None,
        top_k: int | None = None,
        cursor: str | None = None,
        as_of: datetime | str | None = None,
        show_expired: bool = False,
        **unknown: Any,
    ) -> dict[str, Any]:
        """All items that match, in the order they were learnt; the first `limit` of them.

        cursor: go on where the page ended that gave it, as `next_cursor`, which is None on the last
        page. What changes meanwhile is neither left out nor shown twice. show_expired: list what
        has expired, too.
        """
        warn_unknown(self.get_all, unknown)
        wanted = scope_filter(user_id, agent_id, run_id, filters)
        most = one_of("limit", limit, "top_k", top_k)
        moment = None if as_of is None else to_moment(as_of, "as_of")
        if most is None and cursor is None:
            items = self.recall.all_items(wanted, as_of=moment, show_expired=show_expired)
            return {"results": [item_result(item) for item in items]}
        page = self.recall.page(
            wanted,
            limit=None if most is None else checked_count(most, 0, "limit"),
            cursor=cursor,
            as_of=moment,
            show_expired=show_expired,
        )
        return {"results": [item_result(one) for one in page.items], "next_cursor": page.cursor}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Everything that happened to an item, oldest first: who, when, why, before and after."""
        return [
            history_result(event) for event in self.store.journal.history(checked_id(memory_id))
        ]
