"""The rewards of all operations at once equal those of forking, applying and searching."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.memory.manager.trained.observation import ADD, NONE, operation_of
from memograd.memory.records.operations import OpKind
from memograd.memory.search import retrieve
from memograd.tasks.memory_ops.delta_qa import AnswerStandard, answerability, touched_probes
from memograd.tasks.memory_ops.material import EmbeddedLog
from memograd.tasks.memory_ops.walk import Walk

STANDARDS = (
    AnswerStandard(),
    AnswerStandard(top_k=2, misled_cost=1.0, token_cost=0.0, change_cost=0.0),
)


def by_forking(walk: Walk, action: int, standard: AnswerStandard) -> float:
    """What the operation is worth, the slow way: do it on a fork, ask everything, compare."""
    point, log = walk.point, walk.log
    after, before = walk.memory.fork(), walk.memory.fork()
    after.apply(operation_of(action, point.fact, point.hits), point.number)
    reward = -standard.token_cost * (after.tokens - before.tokens)
    reward -= standard.change_cost * (action != NONE)
    for one in touched_probes(log, walk.memory, point.number, point.hits):
        scores = []
        for memory in (after, before):
            hits = retrieve(memory.state.items, one.query, top_k=standard.top_k, mode="dense")
            found = memory.statements_in(hits)
            scores.append(
                answerability(
                    found,
                    one.needed_at(point.number),
                    one.misleading_at(point.number),
                    standard.misled_cost,
                )
            )
        reward += scores[0] - scores[1]
    return reward


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10_000), which=st.integers(0, 2), standard=st.sampled_from(STANDARDS))
def test_equals_forking_applying_and_searching(
    embedded: list[EmbeddedLog], seed: int, which: int, standard: AnswerStandard
) -> None:
    rng = np.random.default_rng(seed)
    walk = Walk(embedded[which], standard, asks=False)
    while not walk.over:
        allowed = np.flatnonzero(walk.observe().allowed_A)
        if rng.random() < 0.2:
            rewards_A = walk.rewards()
            for action in allowed:
                expected = by_forking(walk, int(action), standard)
                assert rewards_A[action] == pytest.approx(expected, abs=1e-9)
        # Mostly ADD, so that there is something to update and delete.
        walk.take(ADD if ADD in allowed and rng.random() < 0.6 else int(rng.choice(allowed)))


def test_nothing_earns_nothing_and_all_kinds_can_earn(embedded: list[EmbeddedLog]) -> None:
    """House contract 4: no operation is rewarded or punished by construction."""
    best: set[OpKind] = set()
    for log in embedded:
        walk = Walk(log, AnswerStandard(), asks=False)
        while not walk.over:
            rewards_A, point = walk.rewards(), walk.point
            assert rewards_A[NONE] == 0.0
            allowed = np.flatnonzero(walk.observe().allowed_A)
            action = int(allowed[rewards_A[allowed].argmax()])
            best.add(operation_of(action, point.fact, point.hits).kind)
            walk.take(action)
    assert best == set(OpKind)


def test_taking_the_best_operation_each_time_answers_most_questions(
    embedded: list[EmbeddedLog],
) -> None:
    """The reward means what it says: greedy by it beats keeping everything, on every log."""
    for log in embedded:
        greedy, keep = Walk(log, AnswerStandard()), Walk(log, AnswerStandard())
        while not greedy.over:
            allowed = np.flatnonzero(greedy.observe().allowed_A)
            greedy.take(int(allowed[greedy.rewards()[allowed].argmax()]))
            keep.take(ADD if keep.observe().allowed_A[ADD] else NONE)
        assert greedy.outcome() > keep.outcome()
        assert greedy.memory.tokens < keep.memory.tokens
