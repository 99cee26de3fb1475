"""`delta_qa`: what a memory operation is worth, by the questions that come later.

    reward(op) = sum over later questions that the decision touches of
                     answerability(memory after op) - answerability(memory after NONE)
                 - token_cost * (tokens after op - tokens after NONE)
                 - change_cost * [op is not NONE]

    answerability = share of the needed statements among the top k          (1 where none is needed)
                    x (1 - misled_cost) if a misleading one is there        (0 where none is needed)

No model reads anything: a statement that a search does not bring to light cannot be answered from,
and one that was superseded or should be forgotten spoils the answer. All four operations are scored
by this one rule: NONE earns exactly 0, an ADD earns what it lets us answer and costs its length, a
DELETE of what misleads earns as an ADD does. A change that changes no answer is worth less than
none. A decision touches the questions that need, or are misled by, the new statement or one that a
related item carries. A question counts as soon as something that it needs was told, and what
misleads it counts from when it was superseded: later changes are later decisions.

Invariants: rewards of *all* operations on one state come out of one matrix of similarities, and
equal those that forking the memory, applying the operation and searching it by meaning give;
keeping a needed statement never hurts by itself, keeping a misleading one never helps.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from memograd.memory.manager.trained.observation import ACTIONS, ADD, NONE, SLOTS
from memograd.memory.records.items import MemoryItem
from memograd.memory.search import Hit
from memograd.tasks.memory_ops.material import AskedProbe, EmbeddedLog, LogMemory
from memograd.tasks.memory_ops.settings import OperationsConfig


@dataclass(frozen=True)
class AnswerStandard:
    """How answers are judged, and what memory costs.

    top_k: items that a question may find. misled_cost: what one misleading item takes of an
    answer. token_cost: what one token more in the memory costs, in answered questions. change_cost:
    what any change of the memory costs.
    """

    top_k: int = 5
    misled_cost: float = 0.5
    token_cost: float = 0.004
    change_cost: float = 0.02

    @classmethod
    def of(cls, config: OperationsConfig) -> AnswerStandard:
        """As the settings judge answers."""
        return cls(config.top_k, config.misled_cost, config.token_cost, config.change_cost)


def recalled(found: Collection[int], needed: Collection[int]) -> float:
    """Share of the needed statements that were found; 1 where none is needed."""
    return sum(number in found for number in needed) / len(needed) if needed else 1.0


def answerability(
    found: Collection[int],
    needed: Collection[int],
    misleading: Collection[int],
    misled_cost: float,
) -> float:
    """The formula above; `found` are the statements that the top k items carry."""
    if not any(number in found for number in misleading):
        return recalled(found, needed)
    return recalled(found, needed) * (1 - misled_cost) if needed else 0.0


def touched_probes(
    log: EmbeddedLog, memory: LogMemory, now: int, hits: Sequence[Hit[MemoryItem]]
) -> list[AskedProbe]:
    """The questions asked after statement `now` that the decision about it can change."""
    concerned = {now, *memory.statements_in(hits)}
    touched = []
    for one, asked_after in zip(log.probes, log.asked_after, strict=True):
        if asked_after < now:
            continue
        needed, misleading = one.needed_at(now), one.misleading_at(now)
        if (needed if one.needed else misleading) and not concerned.isdisjoint(
            (*needed, *misleading)
        ):
            touched.append(one)
    return touched


def delta_qa(
    log: EmbeddedLog,
    memory: LogMemory,
    now: int,
    hits: Sequence[Hit[MemoryItem]],
    standard: AnswerStandard,
) -> np.ndarray:
    """The reward of every action on this state [ACTIONS], numbered as in `observation`.

    Actions on places without an item have reward 0.
    """
    rewards_A = np.zeros(ACTIONS)
    tokens = log.tokens_N
    places = {item_id: row for row, item_id in enumerate(memory.carried)}
    rows = [places[hit.record.id] for hit in hits]
    numbers = list(memory.carried.values())
    cost, change = standard.token_cost, standard.change_cost
    rewards_A[ADD] = -cost * tokens[now] - change
    for place, row in enumerate(rows):
        rewards_A[2 + place] = -cost * (tokens[now] - tokens[numbers[row]]) - change
        rewards_A[2 + SLOTS + place] = cost * tokens[numbers[row]] - change
    probes = touched_probes(log, memory, now, hits)
    if not probes:
        return rewards_A
    # One column an item, and one for the new statement behind them.
    vectors = np.concatenate([memory.vectors(), log.vectors_ND[now][None]])
    questions = np.stack([one.query.vector for one in probes])
    similar_PI = np.round((questions @ vectors.T).astype(np.float64), 6)
    carried = np.array([*numbers, now])
    count = len(numbers)
    for one, similar_I in zip(probes, similar_PI, strict=True):
        judged = _Judged(one, now, carried, similar_I, standard)
        nothing = judged.after(removed=count)
        added = judged.after() - nothing
        rewards_A[ADD] += added
        for place, row in enumerate(rows):
            if row in judged.near:
                rewards_A[2 + place] += judged.after(removed=row) - nothing
                removed = judged.after(removed=row, without_new=True)
                rewards_A[2 + SLOTS + place] += removed - nothing
            else:  # too far from the question to be found, so it is as if it stayed
                rewards_A[2 + place] += added
    rewards_A[NONE] = 0.0
    return rewards_A


class _Judged:
    """One question over one memory with the new statement behind all items."""

    def __init__(
        self,
        asked: AskedProbe,
        now: int,
        carried: np.ndarray,
        similar_I: np.ndarray,
        standard: AnswerStandard,
    ) -> None:
        self._needed, self._misleading = asked.needed_at(now), asked.misleading_at(now)
        self._standard = standard
        # At most two columns are ever left out, so two more than the top k are enough.
        best = np.argsort(-similar_I, kind="stable")[: standard.top_k + 2]
        self._ranked = [(int(column), int(carried[column])) for column in best]
        self._new = len(carried) - 1
        self.near = {column for column, _ in self._ranked}

    def after(self, *, removed: int | None = None, without_new: bool = False) -> float:
        """Answerability when column `removed`, and perhaps the new statement, is not there."""
        found = [
            number
            for column, number in self._ranked
            if column != removed and not (without_new and column == self._new)
        ]
        return answerability(
            found[: self._standard.top_k],
            self._needed,
            self._misleading,
            self._standard.misled_cost,
        )
