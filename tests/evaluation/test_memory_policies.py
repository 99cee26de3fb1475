"""Deciders walking through logs: what they may look at, what they keep, how they are counted."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from tests.evaluation.conftest import DIMENSION

from memograd.data.lifelog import Lifelog, LifelogSettings, generate_lifelogs
from memograd.errors import BadInput
from memograd.memory.chat.chat_model import OpenAIChatModel
from memograd.memory.manager import RuleManager
from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.observation import ADD, NONE
from memograd.memory.records.operations import OpKind
from memograd.memory.search import retrieve
from memograd.tasks.memory_ops import measure as measuring
from memograd.tasks.memory_ops.baselines.deciders import (
    ByChat,
    ByHead,
    ByManager,
    Decider,
    KeepAll,
    LongestFirst,
    NoveltyGate,
    RandomChoice,
    RandomKeep,
    RawTurns,
)
from memograd.tasks.memory_ops.baselines.measure import MeasuredMethod, measure
from memograd.tasks.memory_ops.delta_qa import AnswerStandard, recalled
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs
from memograd.tasks.memory_ops.walk import Walk

STANDARD = AnswerStandard(top_k=3)


class GoldFollower(KeepAll):
    """Looks at the gold operations, as no policy may."""

    def decide(self, walk: Walk) -> int:
        action = walk.gold_action()
        assert action is not None
        return action


class PeekingAtGold(KeepAll):
    """Adds what the log says is new."""

    def decide(self, walk: Walk) -> int:
        gold = walk.log.log.statements[walk.point.number].gold
        return ADD if gold and gold.kind is OpKind.ADD else NONE


@pytest.fixture(scope="module")
def life() -> list[Lifelog]:
    english = LifelogSettings(sessions=4, statements_per_session=7)
    chinese = LifelogSettings(language="zh", sessions=3, statements_per_session=7)
    return [*generate_lifelogs(2, 17, english), *generate_lifelogs(1, 17, chinese)]


@pytest.fixture(scope="module")
def logs(life: list[Lifelog], trigrams) -> list[EmbeddedLog]:
    return embed_logs(life, trigrams(dimension=DIMENSION))


@pytest.fixture(scope="module")
def deciders(head: TrainedHead) -> dict[str, Callable[[], Decider]]:
    return {
        "keep all": KeepAll,
        "longest": LongestFirst,
        "random keep": lambda: RandomKeep(3),
        "random": lambda: RandomChoice(3),
        "gate": lambda: NoveltyGate(0.7),
        "rules": lambda: ByManager(RuleManager()),
        "head": lambda: ByHead(head),
        "raw": RawTurns,
    }


def actions_of(make: Callable[[], Decider], log: EmbeddedLog, budget: int) -> list[object]:
    decider, taken = make(), []
    walk = Walk(log, STANDARD, budget=budget, evict=decider.evict)
    while not walk.over:
        action = decider.decide(walk)
        walk.take(action)
        taken.append((action, tuple(walk.memory.carried)))
    return taken


@pytest.mark.slow
def test_a_gold_follower_is_always_right_and_answers_best(logs, deciders) -> None:
    gold = measure("gold", GoldFollower, logs, STANDARD)
    assert gold.hits() == [1.0] * sum(len(log.facts) for log in logs)
    confusion = gold.confusion()
    assert confusion is not None and confusion.balanced_accuracy == 1.0
    for name, make in deciders.items():
        other = measure(name, make, logs, STANDARD)
        assert np.mean(other.scores) < np.mean(gold.scores), name
        assert np.mean(other.hits()) < 1, name


def test_deciders_never_look_at_questions_or_gold(life, logs, deciders, trigrams) -> None:
    """The same statements with other questions and other gold operations: the same decisions."""
    rng = random.Random(9)
    scrambled = []
    for log in life:
        golds = [statement.gold for statement in log.statements]
        golds = [gold if gold and gold.target is None else None for gold in golds]
        rng.shuffle(golds)
        statements = tuple(
            replace(statement, gold=gold)
            for statement, gold in zip(log.statements, golds, strict=True)
        )
        probes = tuple(
            replace(
                probe,
                question=replace(probe.question, text=f"What of {rng.random()}?"),
                needed=probe.misleading,
                misleading=probe.needed,
            )
            for probe in rng.sample(log.probes, len(log.probes) // 2)
        )
        scrambled.append(replace(log, statements=statements, probes=probes))
    others = embed_logs(scrambled, trigrams(dimension=DIMENSION))
    for log, other in zip(logs, others, strict=True):
        budget = int(log.tokens_N.sum()) // 2
        for make in deciders.values():
            assert actions_of(make, log, budget) == actions_of(make, other, budget)
        taken = [actions_of(PeekingAtGold, one, 10**6) for one in (log, other)]
        assert taken[0] != taken[1], "whoever peeked would be seen"


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_nobody_ever_holds_more_than_the_budget(logs, deciders, share: float) -> None:
    for make in deciders.values():
        decider = make()
        budget = int(share * logs[0].tokens_N.sum())
        walk = Walk(logs[0], STANDARD, budget=budget, evict=decider.evict)
        while not walk.over:
            walk.take(decider.decide(walk))
            assert walk.memory.tokens <= budget
        assert walk.memory.tokens == sum(logs[0].tokens_N[list(walk.memory.carried.values())])


def test_keeping_everything_is_add_but_for_requests_to_forget(logs) -> None:
    for log in logs:
        walk = Walk(log, STANDARD)
        while not walk.over:
            action = KeepAll().decide(walk)
            assert action == (NONE if walk.point.fact.retracts else ADD)
            walk.take(action)
        kept = [number for number, fact in enumerate(log.facts) if not fact.retracts]
        assert list(walk.memory.carried.values()) == kept


def test_who_leaves_first(logs, head) -> None:
    log = logs[0]
    budget = int(log.tokens_N.sum()) // 3
    ends = {}
    for make in (KeepAll, LongestFirst, RawTurns):
        decider = make()
        walk = Walk(log, STANDARD, budget=budget, evict=decider.evict)
        while not walk.over:
            walk.take(decider.decide(walk))
        ends[make] = list(walk.memory.carried.values())
    assert ends[RawTurns] == list(range(ends[RawTurns][0], len(log.facts)))
    assert log.tokens_N[ends[LongestFirst]].mean() > log.tokens_N[ends[KeepAll]].mean()


def test_measuring_is_what_a_walk_finds(logs) -> None:
    measured = measure("all", KeepAll, logs[:1], STANDARD, ks=(1, 3, 8))
    decider, asked, mine = KeepAll(), [], []
    walk = Walk(logs[0], STANDARD)
    while not walk.over:
        before, number = len(walk.asked), walk.point.number
        walk.take(decider.decide(walk))
        for one in walk.asked[before:]:
            asked.append(one)
            hits = retrieve(walk.memory.state.items, one.probe.query, top_k=8)
            needed = one.probe.needed_at(number)
            mine.append(recalled(walk.memory.statements_in(hits), needed))
    assert [one.asked for one in measured.looked] == asked
    assert [one.recalls[8] for one in measured.looked] == mine
    assert [one.recalls[3] for one in measured.looked] == [one.recall for one in asked]
    assert all(one.recalls[1] <= one.recalls[3] <= 1 for one in measured.looked)
    assert all(len(one.texts) <= STANDARD.top_k for one in measured.looked)
    assert (measured.items, measured.tokens) == (len(walk.memory.carried), walk.memory.tokens)
    assert (measured.calls, measured.failures) == (0, 0)
    assert measured.by_category() == pytest.approx(by_hand(measured))


def by_hand(measured: MeasuredMethod) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for one in measured.looked:
        found.setdefault(one.asked.probe.probe.question.category, []).append(one.asked.score)
    return {name: float(np.mean(values)) for name, values in found.items()}


def test_no_heading_of_a_narrow_table_is_cut(
    logs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [measure("keep everything, the longest first", KeepAll, logs, STANDARD, ks=(1, 3))]
    screen = io.StringIO()
    monkeypatch.setattr(measuring, "console", Console(file=screen, width=80))
    measuring.report({"all": rows}, tmp_path)
    shown = screen.getvalue()
    assert "\u2026" not in shown
    for heading in ("answerable", "recall@1", "recall@3", "operations", "balanced", "tokens"):
        assert heading in shown


def test_balanced_hits_count_every_kind_alike(logs) -> None:
    measured = measure("all", KeepAll, logs, STANDARD)
    weights, hits = np.array(measured.balance()), np.array(measured.hits())
    told = [one.told for one in measured.decided]
    recalls = [hits[[kind is one for one in told]].mean() for kind in dict.fromkeys(told)]
    assert (weights * hits).sum() / weights.sum() == pytest.approx(np.mean(recalls))


def test_the_budget_of_raw_turns_is_that_of_the_statements(life, logs, trigrams) -> None:
    turns = embed_logs(life, trigrams(dimension=DIMENSION), view="turns")
    found = measure("raw", RawTurns, turns, STANDARD, budget_share=0.3, budget_of=logs)
    assert found.tokens <= np.mean([int(0.3 * log.tokens_N.sum()) for log in logs])
    assert len(found.looked) == sum(len(log.probes) for log in logs)


# A prompted chat model


def chat(chat_server) -> OpenAIChatModel:
    return OpenAIChatModel("stub", api_key="k", base_url=chat_server.url, retries=0)


def test_a_chat_model_decides_and_its_calls_are_counted(logs, chat_server) -> None:
    chat_server.answer = lambda messages: '{"op": "ADD", "id": null, "text": "x", "reason": ""}'
    model = chat(chat_server)
    found = measure("chat", lambda: ByChat(model), logs[:1], STANDARD)
    retracting = sum(fact.retracts for fact in logs[0].facts)
    assert found.calls == 1.0 and found.failures == 0
    assert found.items == len(logs[0].facts) - retracting
    kept = measure("all", KeepAll, logs[:1], STANDARD)
    assert found.scores == kept.scores, "the statement is written, not the model's words"


def test_failures_change_nothing_and_are_no_hits(logs, chat_server) -> None:
    chat_server.answer = lambda messages: "I would rather not."
    model = chat(chat_server)
    found = measure("chat", lambda: ByChat(model, with_schema=False), logs[:1], STANDARD)
    count = len(logs[0].facts)
    assert (found.failures, found.items, found.calls) == (count, 0, 2.0)
    assert found.hits() == [0.0] * count
    assert any(one.gold.kind is OpKind.NONE for one in found.decided), "some would be right by luck"
    assert "unusable answer twice" in found.failure
    assert all("response_format" not in request for request in chat_server.requests)


def test_a_model_that_cannot_be_asked_at_all_is_said(logs) -> None:
    class Missing:
        name = "missing"

        def complete(self, messages, *, max_tokens, temperature=0.0, schema=None) -> str:
            raise BadInput("There is no such model.")

    with pytest.raises(BadInput, match="no such model"):
        measure("chat", lambda: ByChat(Missing()), logs[:1], STANDARD)
