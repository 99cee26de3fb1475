"""Walks through logs: material, memory, questions in time, gold operations, Mem-alpha's reward."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.data.lifelog import Lifelog
from memograd.data.lifelog.types import ToldStatement
from memograd.errors import BadInput
from memograd.memory import RawTurn
from memograd.memory.analysis import analyse
from memograd.memory.manager.trained.observation import ADD, NONE
from memograd.memory.reader import RuleReader
from memograd.memory.records.operations import MemoryOp, OpKind
from memograd.rewards.mem_alpha import BETA
from memograd.tasks.memory_ops.delta_qa import AnswerStandard, answerability, recalled
from memograd.tasks.memory_ops.material import EmbeddedLog, LogMemory, embed_logs, token_count
from memograd.tasks.memory_ops.walk import Walk, mean_score, mem_alpha_outcome


def gold_walk(log: EmbeddedLog) -> Walk:
    walk = Walk(log, AnswerStandard())
    while not walk.over:
        action = walk.gold_action()
        assert action is not None
        walk.take(action)
    return walk


# material


def test_facts_are_the_statements_with_their_own_vectors(
    small_logs: list[Lifelog], trigrams
) -> None:
    embedder = trigrams(dimension=64)
    for log, embedded in zip(small_logs, embed_logs(small_logs, embedder), strict=True):
        texts = [statement.text for statement in log.statements]
        assert [fact.text for fact in embedded.facts] == texts
        assert np.array_equal(embedded.vectors_ND, embedder.embed(texts))
        assert [query.terms for query in embedded.queries] == [tuple(analyse(t)) for t in texts]
        assert embedded.tokens_N.tolist() == [token_count(text) for text in texts]


def test_subjects_are_found_in_texts_as_the_reader_finds_them(
    small_logs: list[Lifelog], trigrams
) -> None:
    """What the generator says of a statement, beyond its text, is not seen: small talk has no
    subject there, so it would tell what is not worth remembering."""
    unsaid = [
        replace(log, statements=tuple(replace(one, subject="") for one in log.statements))
        for log in small_logs
    ]
    pairs = zip(embed_logs(small_logs, trigrams()), embed_logs(unsaid, trigrams()), strict=True)
    for one, other in pairs:
        assert one.facts == other.facts
    log = small_logs[0]
    turn = RawTurn("t", "Ann", "I live in Rome.", log.statements[0].told_at, 0)
    [read] = RuleReader().read([turn])
    alone = Lifelog(
        "alone", "en", ("Ann", "assistant"), (turn,),
        (ToldStatement("s", "t", read.text, log.statements[0].told_at),), (),
    )  # fmt: skip
    [[fact]] = [one.facts for one in embed_logs([alone], trigrams())]
    assert (fact.text, fact.subject, fact.told_at) == (read.text, read.subject, read.told_at)
    small_talk = [
        fact
        for log, one in zip(small_logs, embed_logs(small_logs, trigrams()), strict=True)
        for fact, said in zip(one.facts, log.statements, strict=True)
        if not said.subject
    ]
    assert len(small_talk) > 10
    assert sum(bool(fact.subject) for fact in small_talk) > 0.5 * len(small_talk)


def test_a_log_without_statements_is_refused(small_logs: list[Lifelog], trigrams) -> None:
    empty = replace(small_logs[0], statements=(), probes=())
    with pytest.raises(BadInput, match="no statement"):
        embed_logs([empty], trigrams())


def test_the_view_of_turns_says_what_was_said(small_logs: list[Lifelog], trigrams) -> None:
    log = small_logs[0]
    [embedded] = embed_logs([log], trigrams(), view="turns")
    turns = {turn.id: turn.index_text() for turn in log.turns}
    assert embedded.facts[0].text == turns[log.statements[0].turn_id]


def test_what_misleads_counts_from_when_it_was_superseded(embedded: list[EmbeddedLog]) -> None:
    checked = 0
    for log in embedded:
        for one in log.probes:
            for number, since in one.misleading:
                gold = log.log.statements[since].gold
                if since != number:
                    assert gold is not None and gold.target == log.log.statements[number].id
                    assert number not in one.misleading_at(since - 1)
                    checked += 1
                assert number in one.misleading_at(since)
    assert checked > 5


def test_token_count_of_both_languages() -> None:
    assert (token_count("abcdefgh"), token_count("她住在北京"), token_count("")) == (2, 5, 1)


# memory


def test_forks_go_their_own_ways(embedded: list[EmbeddedLog]) -> None:
    memory = LogMemory(embedded[0])
    memory.apply(MemoryOp.add(embedded[0].facts[0].text), 0)
    fork = memory.fork()
    first = next(iter(memory.carried))
    fork.apply(MemoryOp.update(first, embedded[0].facts[1].text), 1)
    fork.apply(MemoryOp.add(embedded[0].facts[2].text), 2)
    assert (memory.carried, list(fork.carried.values())) == ({first: 0}, [1, 2])
    fork.apply(MemoryOp.delete(first), 3)
    assert list(fork.carried.values()) == [2] and len(fork.state.items) == 1
    assert memory.tokens == embedded[0].tokens_N[0]


def test_carried_names_exactly_the_living_items(embedded: list[EmbeddedLog]) -> None:
    rng = np.random.default_rng(3)
    walk = Walk(embedded[0], AnswerStandard(), asks=False)
    while not walk.over:
        walk.take(int(rng.choice(np.flatnonzero(walk.observe().allowed_A))))
        items = {item.id: item.text for item in walk.memory.state.items}
        facts = walk.log.facts
        assert items == {id: facts[n].text for id, n in walk.memory.carried.items()}
        assert list(items) == list(walk.memory.carried)


# answerability


@given(
    found=st.sets(st.integers(0, 9)),
    needed=st.sets(st.integers(0, 4)),
    misleading=st.sets(st.integers(5, 9)),
    cost=st.floats(0, 1),
)
def test_answerability_is_a_share_that_only_the_right_items_raise(
    found: set[int], needed: set[int], misleading: set[int], cost: float
) -> None:
    score = answerability(found, needed, misleading, cost)
    assert 0 <= score <= 1
    assert answerability(found | needed, needed, misleading, cost) >= score
    assert answerability(found | misleading, needed, misleading, cost) <= score


def test_answerability_by_hand() -> None:
    assert recalled({1, 2}, {1, 9}) == 0.5 and recalled(set(), set()) == 1.0
    assert answerability({1, 5}, {1}, {5}, 0.5) == 0.5
    assert answerability({5}, set(), {5}, 0.5) == 0.0
    assert answerability({1}, set(), {5}, 0.5) == 1.0


# walks


def test_a_walk_is_a_function_of_log_and_actions(embedded: list[EmbeddedLog]) -> None:
    def once() -> tuple[list[float], list[str]]:
        rng = np.random.default_rng(5)
        walk = Walk(embedded[1], AnswerStandard())
        while not walk.over:
            walk.take(int(rng.choice(np.flatnonzero(walk.observe().allowed_A))))
        return [one.score for one in walk.asked], list(walk.memory.carried)

    assert once() == once()


def test_gold_operations_answer_nearly_everything(embedded: list[EmbeddedLog]) -> None:
    for log in embedded:
        walk = gold_walk(log)
        assert len(walk.asked) == len(log.probes)
        assert sum(one.misled for one in walk.asked) <= 0.1 * len(walk.asked)
        assert mean_score(walk.asked) > 0.8


def test_questions_are_asked_of_the_memory_of_their_time(embedded: list[EmbeddedLog]) -> None:
    """A question whose evidence is told after it was asked could not be answered."""
    log = embedded[0]
    walk = Walk(log, AnswerStandard())
    while not walk.over:
        before = len(walk.asked)
        number = walk.point.number
        walk.take(ADD if walk.observe().allowed_A[ADD] else NONE)
        for one in walk.asked[before:]:
            assert max(one.probe.needed, default=0) <= number


def test_gold_of_what_is_not_remembered(embedded: list[EmbeddedLog]) -> None:
    """With an empty memory, a change is something new and there is nothing to delete."""
    walk = Walk(embedded[0], AnswerStandard(), asks=False)
    while not walk.over:
        gold = walk.log.log.statements[walk.point.number].gold
        assert gold is not None
        new = gold.kind in (OpKind.ADD, OpKind.UPDATE)
        assert walk.gold_action() == (ADD if new else NONE)
        walk.take(NONE)


def test_a_budget_is_kept_by_eviction(embedded: list[EmbeddedLog]) -> None:
    walk = Walk(
        embedded[0], AnswerStandard(), budget=60, evict=lambda walk: next(iter(walk.memory.carried))
    )
    while not walk.over:
        walk.take(ADD if walk.observe().allowed_A[ADD] else NONE)
        assert walk.memory.tokens <= 60
    assert list(walk.memory.carried.values()) == sorted(walk.memory.carried.values())


# Mem-alpha


def test_doing_nothing_is_punished_by_construction_in_mem_alpha(
    embedded: list[EmbeddedLog],
) -> None:
    idle, busy = Walk(embedded[0], AnswerStandard()), Walk(embedded[0], AnswerStandard())
    while not idle.over:
        idle.take(NONE)
        busy.take(ADD if busy.observe().allowed_A[ADD] else NONE)
    assert mem_alpha_outcome(idle) == pytest.approx(mean_score(idle.asked) + BETA)
    assert mem_alpha_outcome(busy) > mem_alpha_outcome(idle) + 0.9
