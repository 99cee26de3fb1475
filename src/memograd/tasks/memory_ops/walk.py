"""Walking through a log, one decision after the other: the episode of the memory-ops task.

    while not walk.over:
        walk.point        what is to be decided: fact, related items, observation
        walk.rewards()    of every operation on this very state: delta_qa, or a reward given
        walk.take(action)

Questions are asked when their time comes, of the memory as it then is; what they found is in
`asked`. Invariant: a walk is a function of the log and the actions taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from memograd.memory.manager.trained.observation import (
    ADD,
    NONE,
    SLOTS,
    Observation,
    observe,
    operation_of,
)
from memograd.memory.reader.fact import Fact
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import OpKind
from memograd.memory.search import Hit, Query, retrieve
from memograd.tasks.memory_ops.answerability import AnswerStandard, answerability, recalled
from memograd.tasks.memory_ops.delta_qa import delta_qa
from memograd.tasks.memory_ops.log_memory import LogMemory
from memograd.tasks.memory_ops.material import AskedProbe, EmbeddedLog
from memograd.tasks.memory_ops.operation_rewards import rewards_of_actions
from memograd.tasks.memory_ops.rewards import OperationReward

Evict = Callable[["Walk"], str]  # the item that leaves a memory which is over its budget
Outcome = Callable[["Walk"], float]


@dataclass(frozen=True)
class Point:
    """One decision: the number of the statement, the fact, what is related to it, and all that as
    numbers."""

    number: int
    fact: Fact
    query: Query
    hits: Sequence[Hit[MemoryItem]]
    observation: Observation


@dataclass(frozen=True)
class WalkQuestion:
    """How a question went: answerability, share of the needed evidence found, whether misled."""

    probe: AskedProbe
    score: float
    recall: float
    misled: bool


@dataclass(frozen=True)
class Taken:
    """What was done with a statement; repeats: an item said the very same."""

    kind: OpKind
    repeats: bool


class Walk:
    """One log from its first statement to its last, with an empty memory at the beginning.

    budget: tokens that the memory may hold; `evict` names what leaves when it holds more. asks:
    whether questions are asked on the way (searching takes time). outcome: what the whole walk is
    worth, `mean_score` of the questions if not given. reward: of single operations, `delta_qa` if
    not given. `taken` is what was done.
    """

    def __init__(
        self,
        log: EmbeddedLog,
        standard: AnswerStandard,
        *,
        budget: int | None = None,
        evict: Evict | None = None,
        asks: bool = True,
        outcome: Outcome | None = None,
        reward: OperationReward | None = None,
    ) -> None:
        self.log = log
        self.memory = LogMemory(log)
        self.asked: list[WalkQuestion] = []
        self._standard = standard
        self._budget = budget
        self._evict = evict
        self._outcome = outcome
        self._reward = reward
        self._to_ask = _in_order(log) if asks else []
        self.taken: list[Taken] = []
        self._number = 0
        self._point: Point | None = None

    @property
    def over(self) -> bool:
        """Whether every statement was decided on."""
        return self._number == len(self.log.facts)

    @property
    def point(self) -> Point:
        """What is to be decided now."""
        if self._point is None:
            fact, query = self.log.facts[self._number], self.log.queries[self._number]
            hits = self.memory.related(self._number)[:SLOTS]
            observation = observe(self.memory.state, fact, query, hits)
            self._point = Point(self._number, fact, query, hits, observation)
        return self._point

    def observe(self) -> Observation:
        """What is to be decided now, as numbers."""
        return self.point.observation

    def rewards(self) -> np.ndarray:
        """The reward of every action here [ACTIONS]; those not allowed have no meaning."""
        point = self.point
        if self._reward is not None:
            return rewards_of_actions(self._reward, point, self.log.log.id)
        return delta_qa(self.log, self.memory, point.number, point.hits, self._standard)

    def take(self, action: int) -> None:
        """Decide, and go on to the next statement; asks the questions whose time has come."""
        point = self.point
        op = operation_of(action, point.fact, point.hits)
        again = any(hit.record.text == point.fact.text for hit in point.hits)
        self.taken.append(Taken(op.kind, repeats=again))
        self.memory.apply(op, point.number)
        while self._budget is not None and self.memory.tokens > self._budget:
            assert self._evict is not None
            self.memory.remove(self._evict(self))
        while self._to_ask and self._to_ask[-1][0] <= self._number:
            self.asked.append(self._ask(self._to_ask.pop()[1]))
        self._number += 1
        self._point = None

    def outcome(self) -> float:
        """What the walk was worth as a whole."""
        return self._outcome(self) if self._outcome else mean_score(self.asked)

    def gold_action(self) -> int | None:
        """What a careful keeper would do in this state; None where the log does not say.

        An UPDATE of something that is not remembered is an ADD, and its DELETE is NONE.
        """
        point = self.point
        gold = self.log.log.statements[point.number].gold
        if gold is None:
            return None
        if gold.kind is OpKind.ADD:
            return ADD
        if gold.kind is OpKind.NONE:
            return NONE
        carrying = self._carriers(gold.target)
        for place, hit in enumerate(point.hits):
            if hit.record.id in carrying:
                return place + (2 if gold.kind is OpKind.UPDATE else 2 + SLOTS)
        return ADD if gold.kind is OpKind.UPDATE else NONE

    def _carriers(self, statement_id: str | None) -> set[str]:
        statements = self.log.log.statements
        return {
            item_id
            for item_id, number in self.memory.carried.items()
            if statements[number].id == statement_id
        }

    def _ask(self, one: AskedProbe) -> WalkQuestion:
        hits = retrieve(self.memory.state.items, one.query, top_k=self._standard.top_k)
        found = self.memory.statements_in(hits)
        needed = one.needed_at(self._number)
        misleading = one.misleading_at(self._number)
        return WalkQuestion(
            one,
            answerability(found, needed, misleading, self._standard.misled_cost),
            recalled(found, needed),
            not found.isdisjoint(misleading),
        )


def mean_score(asked: Iterable[WalkQuestion]) -> float:
    """Mean answerability; 0 where nothing was asked."""
    scores = [one.score for one in asked]
    return sum(scores) / len(scores) if scores else 0.0


def _in_order(log: EmbeddedLog) -> list[tuple[int, AskedProbe]]:
    """After which statement each question is asked; the first to be asked stands last."""
    asked = [(max(0, after), one) for after, one in zip(log.asked_after, log.probes, strict=True)]
    return sorted(asked, key=lambda pair: -pair[0])
