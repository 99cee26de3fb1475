"""Rewards of single operations on a walk: every allowed action, each asked about alone."""

from __future__ import annotations

import numpy as np
import pytest

from memograd.data.lifelog import LifelogSettings, generate_lifelogs
from memograd.memory.manager.trained.observation import ADD, NONE, SLOTS, operation_of
from memograd.memory.records.operations import OpKind
from memograd.rewards.compose import RewardError
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs
from memograd.tasks.memory_ops.rewards import RetrievedFact, opportunity_cost
from memograd.tasks.memory_ops.walk import Walk


@pytest.fixture(scope="module", params=["en", "zh"])
def log(request: pytest.FixtureRequest, trigrams) -> EmbeddedLog:
    settings = LifelogSettings(
        language=request.param, sessions=4, statements_per_session=6, forgets=0.2
    )
    [embedded] = embed_logs(generate_lifelogs(1, 7, settings), trigrams(dimension=64))
    return embedded


def test_every_action_earns_what_the_function_says_of_it(log: EmbeddedLog) -> None:
    asked: list[tuple[OpKind, str, str | None]] = []

    def recorded(action, new_fact, retrieved_facts):
        [target] = [fact.id for fact in retrieved_facts if fact.is_target] or [None]
        asked.append((action, new_fact, target))
        return opportunity_cost(action, new_fact, retrieved_facts)

    walk = Walk(log, AnswerStandard(), asks=False, reward=recorded)
    seen = set()
    while not walk.over:
        point = walk.point
        asked.clear()
        rewards_A = walk.rewards()
        allowed = np.flatnonzero(point.observation.allowed_A)
        ops = [operation_of(int(action), point.fact, point.hits) for action in allowed]
        assert asked == [
            (op.kind, point.fact.text, op.item_id if op.kind is not OpKind.NONE else None)
            for op in ops
        ]
        for action, op in zip(allowed, ops, strict=True):
            found = [
                RetrievedFact(
                    hit.record.id, hit.record.text, hit.why.similarity, hit.record.id == op.item_id
                )
                for hit in point.hits
            ]
            assert rewards_A[action] == opportunity_cost(op.kind, point.fact.text, found)
            seen.add(op.kind)
        assert (rewards_A[~point.observation.allowed_A] == 0).all()
        walk.take(ADD if point.observation.allowed_A[ADD] else NONE)
    assert seen == set(OpKind)


def test_a_request_to_forget_is_never_scored_as_a_fact(log: EmbeddedLog) -> None:
    kinds = set()

    def noted(action, new_fact, retrieved_facts):
        kinds.add(str(action))
        return 1.0

    walk = Walk(log, AnswerStandard(), asks=False, reward=noted)
    while not walk.over:
        if walk.point.fact.retracts:
            kinds.clear()
            rewards_A = walk.rewards()
            assert kinds <= {"NONE", "DELETE"}
            assert rewards_A[ADD] == 0 and not rewards_A[2 : 2 + SLOTS].any()
            return
        walk.take(ADD if walk.point.observation.allowed_A[ADD] else NONE)
    pytest.fail("this log has no request to forget")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, "0.5", [1.0]])
def test_what_is_no_number_stops_with_its_place(log: EmbeddedLog, bad) -> None:
    walk = Walk(log, AnswerStandard(), asks=False, reward=lambda action, fact, found: bad)
    with pytest.raises(RewardError, match=rf"{log.log.id}, statement 1.*not a finite number"):
        walk.rewards()
