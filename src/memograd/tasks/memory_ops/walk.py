"""Walking through a log, one decision after the other: the episode of the memory-ops task.

    while not walk.over:
        walk.point        what is to be decided: fact, related items, observation
        walk.rewards()    of every operation on this very state: delta_qa, or a reward given
        walk.take(action)

Questions are asked when their time comes, of the memory as it then is; what they found is in
`asked`. `rewards_of_actions` asks a reward that is known at once (`rewards.py`), in place of
`delta_qa`; it sees what the decision sees, the fact and the related items with the target marked.
`mem_alpha_outcome` is what a whole walk earns by Mem-alpha's published code (arXiv:2509.25911), to
be compared with: every `CHUNK` statements are a chunk, which earns r1 + r2 + beta r3 + gamma r4,
and the walk their mean; a written text counts as valid when it does not repeat an item.

Invariants: a walk is a function of the log and the actions taken; an action's reward is what the
function returns for that operation alone, and what is not allowed is never asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from memograd.memory.manager.trained.observation import (
    ACTIONS,
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
from memograd.rewards.mem_alpha import MEM_ALPHA_ORIGINAL, ToolOutcome, mem_alpha_reward
from memograd.tasks.memory_ops.delta_qa import AnswerStandard, answerability, delta_qa, recalled
from memograd.tasks.memory_ops.material import AskedProbe, EmbeddedLog, LogMemory
from memograd.tasks.memory_ops.rewards import (
    ChosenOperation,
    OperationReward,
    RetrievedFact,
    compute_operation_rewards,
)

CHUNK: Final = 10
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


def rewards_of_actions(reward: OperationReward, point: Point, log_id: str) -> np.ndarray:
    """The reward of every allowed action [ACTIONS], 0 elsewhere.

    Raises RewardError, with the log and the statement in it, when the function raises or returns
    anything but one finite number.
    """
    allowed = np.flatnonzero(point.observation.allowed_A)
    chosen = [_chosen(int(action), point) for action in allowed]
    where = f"{log_id}, statement {point.number + 1}"
    rewards_A = np.zeros(ACTIONS)
    rewards_A[allowed] = compute_operation_rewards(
        reward, chosen, rollout_ids=[where] * len(chosen)
    )
    return rewards_A


def mem_alpha_outcome(walk: Walk) -> float:
    """The mean reward of a finished walk's chunks."""
    scores = [one.score for one in walk.asked] or [0.0]
    rewards = []
    for start in range(0, len(walk.taken), CHUNK):
        calls = [
            ToolOutcome(
                taken.kind,
                ok=True,
                duplicate=taken.repeats and taken.kind is OpKind.ADD,
                valid=None if taken.kind is OpKind.DELETE else not taken.repeats,
            )
            for taken in walk.taken[start : start + CHUNK]
            if taken.kind is not OpKind.NONE
        ]
        reward = mem_alpha_reward(
            calls,
            qa_scores=scores,
            memory_tokens=walk.memory.tokens,
            chunk_tokens=int(walk.log.tokens_N.sum()),
            rules=MEM_ALPHA_ORIGINAL,
        )
        rewards.append(reward.total)
    return sum(rewards) / len(rewards) if rewards else 0.0


def _chosen(action: int, point: Point) -> ChosenOperation:
    op = operation_of(action, point.fact, point.hits)
    target = op.item_id if op.kind in (OpKind.UPDATE, OpKind.DELETE) else None
    return ChosenOperation(
        op.kind,
        point.fact.text,
        tuple(
            RetrievedFact(
                hit.record.id, hit.record.text, hit.why.similarity, hit.record.id == target
            )
            for hit in point.hits
        ),
    )


def _in_order(log: EmbeddedLog) -> list[tuple[int, AskedProbe]]:
    """After which statement each question is asked; the first to be asked stands last."""
    asked = [(max(0, after), one) for after, one in zip(log.asked_after, log.probes, strict=True)]
    return sorted(asked, key=lambda pair: -pair[0])
