"""What a memory can do without: which items say again what others say, and which are worth least.

The items are told anew, in the order in which they were learnt, to a memory that is empty at first,
and the policy decides on each as it would on a fact:

    UPDATE of an item               it is out of date: it leaves, the newer one stands for it
    NONE, but not in an empty       it says again what is there: it leaves, the item nearest to it
    memory                          stands for it
    ADD, DELETE, NONE anyway        it stays for now

Then items leave until the rest fits the budget: those that the policy is least inclined to write
(log odds), of equal ones the older. Without a policy the rules decide, and what happened
(episodic) leaves before what is so, older things first. Core items always stay.

Invariants: core items stay; items merge within one scope only; the rest fits the budget
(`tests/memory/test_compaction.py`). Pure; may import `analysis`, `items`, `language`, `manager`,
`reader`, `related`, `retrieval`, `scope`, `state` and errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memograd.errors import BadInput
from memograd.memory.analysis import analyse
from memograd.memory.items import Kind, MemoryItem
from memograd.memory.language import estimate_tokens
from memograd.memory.manager import RelatedItem, RuleManager
from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.network import Batch, logits_BA, writing_worth
from memograd.memory.manager.trained.observation import NONE, SLOTS, observe, seconds
from memograd.memory.operations import OpKind
from memograd.memory.reader import Fact
from memograd.memory.related import find_related
from memograd.memory.retrieval import Hit, Query
from memograd.memory.scope import Scope
from memograd.memory.state import MemoryState

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


Judge = Callable[[MemoryState, Fact, Query, Sequence[Hit[MemoryItem]]], Opinion]


@dataclass(frozen=True, slots=True)
class Plan:
    """merged: items that leave, each with the one that stands for it. retired: the others."""

    merged: Mapping[str, str]
    retired: tuple[str, ...]

    @property
    def leaving(self) -> frozenset[str]:
        """All items that leave."""
        return frozenset({*self.merged, *self.retired})


def plan_compaction(
    state: MemoryState, items: Sequence[MemoryItem], judge: Judge, budget: int
) -> Plan:
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
    return Plan({gone: _standing(merged, gone) for gone in merged}, retired)


def judge_by_head(head: TrainedHead) -> Judge:
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
    related = [RelatedItem(hit.record, hit.why.similarity) for hit in hits]
    op = RuleManager().decide(fact, related).op
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
