"""Making a memory smaller: what it can do without, leaving it out, and taking that back.

`compaction_plan` says what leaves. The items are told anew, in the order in which they were learnt,
to a memory that is empty at first, and the policy decides on each as it would on a fact:

    UPDATE of an item               it is out of date: it leaves, the newer one stands for it
    NONE, but not in an empty       it says again what is there: it leaves, the item nearest to it
    memory                          stands for it
    ADD, DELETE, NONE anyway        it stays for now

Then items leave until the rest fits the budget: those that the policy is least inclined to write
(log odds), of equal ones the older. Without a policy the rules decide, and what happened (episodic)
leaves before what is so, older things first.

The plan is written in one transaction: the item that stands for others takes over their sources and
labels, the others are deleted, each with the reason `compact <batch>:...`. By that mark
`undo_compact` finds them and brings them back, under their old ids and as they were, except what
changed since.

Invariants: core items stay, and so do documents, which are not counted; items merge within one
scope only; the rest fits the budget; undoing at once gives the very same items; nothing of other
owners or scopes is touched.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from memograd.errors import BadInput
from memograd.memory.analysis import analyse
from memograd.memory.journal import Conflict
from memograd.memory.language import estimate_tokens
from memograd.memory.manager import MemoryManager, decide_by_rules
from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.manager import TrainedManager, settled
from memograd.memory.manager.trained.network import Batch, logits_BA, writing_worth
from memograd.memory.manager.trained.observation import NONE, SLOTS, observe, seconds
from memograd.memory.reader import Fact
from memograd.memory.records.documents import is_document
from memograd.memory.records.events import Event, EventKind, NewEvent
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.operations import OpKind
from memograd.memory.records.scope import Scope
from memograd.memory.search import Hit, Query
from memograd.memory.search.related import find_related
from memograd.memory.state import MemoryState
from memograd.memory.state.store import MemoryStore
from memograd.memory.write.changes import added, deleted, updated
from memograd.memory.write.remember import ATTEMPTS

Worth = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Opinion:
    """What is thought of an item beside those told before it.

    repeats: the item that says it already. outdates: the item that it takes the place of. worth:
    the least leaves first.
    """

    worth: Worth
    repeats: str | None = None
    outdates: str | None = None


ItemJudge = Callable[[MemoryState, Fact, Query, Sequence[Hit[MemoryItem]]], Opinion]


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """merged: items that leave, each with the one that stands for it. retired: the others."""

    merged: Mapping[str, str]
    retired: tuple[str, ...]

    @property
    def leaving(self) -> frozenset[str]:
        """All items that leave."""
        return frozenset({*self.merged, *self.retired})


def plan_compaction(
    state: MemoryState, items: Sequence[MemoryItem], judge: ItemJudge, budget: int
) -> CompactionPlan:
    """What leaves, so that the rest of `items`, which live in `state`, has `budget` tokens at most.

    Tokens are estimated (`language.estimate_tokens`). Raises BadInput when the core items alone
    have more.
    """
    core = sum(estimate_tokens(item.text) for item in items if item.kind is Kind.CORE)
    if core > budget:
        raise BadInput(
            f"The core memories alone have {core} tokens, and they always stay: give a budget of at"
            " least that, or make some of them another kind."
        )
    several = len({item.scope for item in items}) > 1  # else nothing has to be asked
    told = MemoryState(state.items.dimension)
    kept: dict[str, MemoryItem] = {}
    worth: dict[str, Worth] = {}
    merged: dict[str, str] = {}
    for item in sorted(items, key=lambda item: item.updated_at):
        [vector] = state.items.vectors([item.id])
        query = Query(item.text, vector, tuple(analyse(item.text)))
        hits = find_related(told.items, query, eligible=_in_scope(item.scope) if several else None)
        opinion = judge(told, _as_fact(item), query, hits)
        worth[item.id] = opinion.worth
        if opinion.repeats is not None and item.kind is not Kind.CORE:
            merged[item.id] = opinion.repeats
            continue
        out = opinion.outdates
        if out is not None and kept[out].kind is not Kind.CORE:
            merged[out] = item.id
            told.remove_item(out)
            del kept[out]
        told.add_item(item, vector, query.terms)
        kept[item.id] = item
    retired = _over_budget(kept, worth, budget)
    return CompactionPlan({gone: _standing(merged, gone) for gone in merged}, retired)


def judge_by_head(head: TrainedHead) -> ItemJudge:
    """The opinion of a trained policy."""

    def judge(
        state: MemoryState, fact: Fact, query: Query, hits: Sequence[Hit[MemoryItem]]
    ) -> Opinion:
        hits = hits[:SLOTS]
        seen = [observe(state, fact, query, hits), observe(state, fact, query, ())]
        logits_A, alone_A = logits_BA(head.weights, head.shape, Batch.of(seen))
        action = int(logits_A.argmax())
        worth = (writing_worth(logits_A), _since(fact))
        if action == NONE and hits and writing_worth(alone_A) > 0:
            return Opinion(worth, repeats=hits[0].record.id)
        if 2 <= action < 2 + SLOTS:
            return Opinion(worth, outdates=hits[action - 2].record.id)
        return Opinion(worth)

    return judge


def judge_by_rules(
    state: MemoryState, fact: Fact, query: Query, hits: Sequence[Hit[MemoryItem]]
) -> Opinion:
    """The opinion of the rules, which need no training."""
    op = decide_by_rules(fact, [hit.record for hit in hits]).op
    worth = (float(fact.kind is not Kind.EPISODIC), _since(fact))
    if op.kind is OpKind.NONE and op.item_id is not None:
        return Opinion(worth, repeats=op.item_id)
    # Rules rewrite one clause of several; then the older item says more than the newer.
    if op.kind is OpKind.UPDATE and op.text == fact.text:
        return Opinion(worth, outdates=op.item_id)
    return Opinion(worth)


def _in_scope(scope: Scope) -> Callable[[MemoryItem], bool]:
    return lambda item: item.scope == scope


def _as_fact(item: MemoryItem) -> Fact:
    told = item.valid_from or item.updated_at
    return Fact(item.text, item.sources, item.kind, valid_from=told, told_at=told)


def _since(fact: Fact) -> float:
    return seconds(fact.told_at) if fact.told_at else 0.0


def _over_budget(
    kept: Mapping[str, MemoryItem], worth: Mapping[str, Worth], budget: int
) -> tuple[str, ...]:
    """What leaves of the kept items until the rest fits, in that order."""
    tokens = sum(estimate_tokens(item.text) for item in kept.values())
    retired = []
    may_leave = [item for item in kept.values() if item.kind is not Kind.CORE]
    for item in sorted(may_leave, key=lambda item: worth[item.id]):
        if tokens <= budget:
            break
        tokens -= estimate_tokens(item.text)
        retired.append(item.id)
    return tuple(retired)


def _standing(merged: Mapping[str, str], item_id: str) -> str:
    """Who stands for an item in the end: its successor may have been outdated itself."""
    while item_id in merged:
        item_id = merged[item_id]
    return item_id


MARK: Final = "compact"
UNDO_MARK: Final = "undo compact"
VERSIONS: Final = (EventKind.ADD, EventKind.UPDATE)
_MARKED: Final = re.compile(rf"(?:{MARK}|{UNDO_MARK}) [0-9a-f]{{12}}: ")
_MERGED: Final = re.compile(rf"{MARK} [0-9a-f]{{12}}: said again by (?P<standing>\S+)")


def compact(
    store: MemoryStore, manager: MemoryManager, scope: Scope, budget: int
) -> dict[str, Any]:
    """Merge what is said twice and retire what is worth least, until `budget` tokens are left.

    Touches the items that are filed under all ids of the scope, do not expire and are no documents
    of a framework. Returns the id of the batch, how many items were merged and retired, and items
    and tokens before and after. Raises BadInput when the core items alone exceed the budget.
    """
    manager = settled(manager)
    judge: ItemJudge = judge_by_rules
    actor = "rules"
    if isinstance(manager, TrainedManager):
        judge, actor = judge_by_head(manager.head), manager.actor
    batch = uuid.uuid4().hex[:12]
    owner, ids = scope.owner, scope.ids().items()
    with store.writing(owner):
        for attempt in range(ATTEMPTS):
            state = store.states.current(owner)
            items = [
                item
                for item in state.items
                if ids <= item.scope.ids().items()
                and item.expires_at is None
                and not is_document(item)
            ]
            plan = plan_compaction(state, items, judge, budget)
            by_id = {item.id: item for item in items}
            events = _events(plan, by_id, state, actor, batch, store.now())
            versions = _versions(store.journal.tail(owner), state.seq)
            expect = {event.subject: versions[event.subject] for event in events}
            try:
                store.write(owner, events, expect=expect)
            except Conflict:
                store.step_aside(attempt)  # somebody changed one of them: look again
                continue
            return _report(batch, plan, items)
    raise Conflict(f"The memory of {owner} is being changed all the time: try again.")


def undo_compact(store: MemoryStore, batch: str) -> dict[str, Any]:
    """Bring back what a compaction took; returns how many items came back, as `restored`.

    What was changed or purged since stays as it is, and what was merged into an item that was
    deleted since stays away with it. Raises BadInput when there was no
    such compaction, or nothing of it is left to undo.
    """
    done = store.journal.of_reason(f"{MARK} {batch}:") if batch.isalnum() else []
    if not done:
        raise BadInput(
            f"There was no compaction {batch!r} that changed anything: give the id that compact"
            " returned."
        )
    owner = done[0].scope.owner
    with store.writing(owner):
        for attempt in range(ATTEMPTS):
            told = store.journal.tail(owner)
            events, expect = _restoring(done, told, f"{UNDO_MARK} {batch}: as it was before")
            if not events:
                raise BadInput(
                    f"Nothing of the compaction {batch!r} is left to undo: it was undone already,"
                    " or its items were changed or purged since."
                )
            try:
                store.write(owner, events, expect=expect)
            except Conflict:
                store.step_aside(attempt)
                continue
            return {"restored": sum(event.kind is EventKind.ADD for event in events)}
    raise Conflict(f"The memory of {owner} is being changed all the time: try again.")


def is_compaction(event: Event) -> bool:
    """Whether an event belongs to a compaction or its undoing, rather than to something told."""
    return _MARKED.match(event.reason) is not None


def stands_for(told: Sequence[Event], items: set[str]) -> set[str]:
    """The items that compactions merged into these, one by one or step by step, and that are gone.

    told: all events of their owner, in order.
    """
    merged: dict[str, str] = {}
    for event in told:
        found = _MERGED.fullmatch(event.reason) if event.kind is EventKind.DELETE else None
        if found:
            merged[event.subject] = found["standing"]
        elif event.kind in VERSIONS:
            merged.pop(event.subject, None)  # it was brought back
    known, more = set(items), set(items)
    while more:
        more = {gone for gone, standing in merged.items() if standing in more} - known
        known |= more
    return known - items


def _events(
    plan: CompactionPlan,
    items: Mapping[str, MemoryItem],
    state: MemoryState,
    actor: str,
    batch: str,
    now: datetime,
) -> list[NewEvent]:
    leaving = plan.leaving
    events = []
    for standing in dict.fromkeys(plan.merged.values()):
        if standing in leaving:
            continue  # it is worth too little itself
        before = items[standing]
        merged = [items[gone] for gone, stands in plan.merged.items() if stands == standing]
        # What said them again is behind what stands for them, too.
        others = [replace(one, sources=tuple(state.turns_behind(one))) for one in merged]
        after = _standing_for(before, others)
        if after != before:
            reason = f"{MARK} {batch}: stands for {len(others)} that said the same"
            events.append(updated(before, after, actor=actor, reason=reason))
    for gone in items:
        if gone in leaving:
            why = f"said again by {plan.merged[gone]}" if gone in plan.merged else "worth least"
            reason = f"{MARK} {batch}: {why}"
            events.append(deleted(items[gone], at=now, actor=actor, reason=reason))
    return events


def _standing_for(item: MemoryItem, others: Sequence[MemoryItem]) -> MemoryItem:
    """The item with the sources and labels of the others; its own labels win."""
    metadata: dict[str, Any] = {}
    for other in others:
        metadata |= other.metadata
    everyone = (item, *others)
    return replace(
        item,
        metadata={**metadata, **item.metadata},
        categories=tuple(dict.fromkeys(name for one in everyone for name in one.categories)),
        sources=tuple(dict.fromkeys(source for one in everyone for source in one.sources)),
    )


def _restoring(
    done: Sequence[Event], told: Sequence[Event], reason: str
) -> tuple[list[NewEvent], dict[str, int]]:
    """The events that take back those of `done` that nothing came after.

    What says again what was deleted meanwhile stays away too.
    """
    versions = _versions(told)
    deleted_since = {
        event.subject
        for event in told
        if event.kind is EventKind.DELETE
        and event.seq == versions[event.subject]
        and not is_compaction(event)
    }
    events, expect = [], {}
    for event in done:
        if event.erased or versions[event.subject] != event.seq:
            continue
        merged = _MERGED.fullmatch(event.reason)
        if merged and merged["standing"] in deleted_since:
            continue
        earlier = [
            one.after
            for one in told
            if one.subject == event.subject and one.seq < event.seq and one.kind in VERSIONS
        ]
        assert earlier[-1] is not None, "an item is purged as a whole"
        item = MemoryItem.from_json(earlier[-1])
        if event.kind is EventKind.DELETE:
            events.append(added(item, actor="user", reason=reason))
        else:
            assert event.after is not None
            now = MemoryItem.from_json(event.after)
            events.append(updated(now, item, actor="user", reason=reason))
        expect[event.subject] = event.seq
    return events, expect


def _versions(told: Sequence[Event], until: int | None = None) -> dict[str, int]:
    """The latest event of every subject, up to a place of the journal."""
    return {event.subject: event.seq for event in told if until is None or event.seq <= until}


def _report(batch: str, plan: CompactionPlan, items: Sequence[MemoryItem]) -> dict[str, Any]:
    left = [item for item in items if item.id not in plan.leaving]
    return {
        "batch_id": batch,
        "merged": len(plan.merged),
        "retired": len(plan.retired),
        "items": {"before": len(items), "after": len(left)},
        "tokens": {"before": _tokens(items), "after": _tokens(left)},
    }


def _tokens(items: Sequence[MemoryItem]) -> int:
    return sum(estimate_tokens(item.text) for item in items)
