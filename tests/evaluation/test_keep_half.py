"""Which half of the raw turns is kept: the budget is used up, no draw decides."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.conftest import DIMENSION

from memograd.data.lifelog import Lifelog, LifelogSettings, generate_lifelogs
from memograd.errors import BadInput
from memograd.tasks.memory_ops.baselines.keep_half import (
    ALL_TURNS,
    KeptHalf,
    compare_halves,
    half_methods,
    head_likes,
    keep_preferred,
    keep_top,
    share_of_tokens,
)
from memograd.tasks.memory_ops.material import EmbeddedLog, embed_logs


@pytest.fixture(scope="module")
def turns(trigrams) -> list[EmbeddedLog]:
    logs = generate_lifelogs(2, 23, LifelogSettings(sessions=4, statements_per_session=7))
    real = [
        replace(log, statements=tuple(replace(one, gold=None) for one in log.statements))
        for log in logs
    ]
    return embed_logs(real, trigrams(dimension=DIMENSION), view="turns")


def test_everybody_keeps_at_most_half(turns, head) -> None:
    whole = np.mean([log.tokens_N.sum() for log in turns])
    by_tokens = compare_halves(turns, half_methods({"ours": head}), top_k=3)
    assert [one.name for one in by_tokens] == [
        *(ALL_TURNS, "random half", "recent half", "longest half", "most novel half"),
        *("half that the rules read", "ours, half"),
    ]
    assert by_tokens[0].tokens == whole
    assert all(one.tokens <= whole / 2 for one in by_tokens[1:])
    by_turns = {one.name: one for one in compare_halves(turns, half_methods({}), unit="turns")}
    assert by_turns["longest half"].tokens > whole / 2, "half of the turns, more of the tokens"
    asked = sum(bool(one.needed) for log in turns for one in log.probes)
    for one in by_tokens:
        assert len(one.logs) == asked
        assert all(len(found) == asked for found in one.recalls.values())


def test_what_a_half_is_liked_for(turns) -> None:
    """A method that knows the evidence finds it in half of the turns."""

    def knows(log: EmbeddedLog) -> list[float]:
        needed = {number for one in log.probes for number in one.needed}
        return [float(number in needed) for number in range(len(log.facts))]

    methods = {"knows": knows, "knows not": lambda log: [-score for score in knows(log)]}
    found = {one.name: mean(one) for one in compare_halves(turns, methods, top_k=3)}
    assert found[ALL_TURNS] >= found["knows"] > found["random half"] > found["knows not"]


def mean(kept: KeptHalf) -> float:
    return float(np.mean(kept.recalls["hybrid"]))


def test_the_head_is_asked_about_every_turn_and_sees_no_question(turns, head) -> None:
    worths = head_likes(head, turns[0])
    assert len(worths) == len(turns[0].facts) and np.isfinite(worths).all()
    assert len(set(worths)) > len(worths) / 2
    assert head_likes(head, replace(turns[0], probes=(), asked_after=())) == worths


def test_no_turn_is_found_before_it_was_said(trigrams) -> None:
    [log] = generate_lifelogs(1, 23, LifelogSettings(sessions=4, statements_per_session=7))
    last = log.statements[-1]
    early = min(log.probes, key=lambda probe: probe.asked_at)
    again = replace(early, question=replace(early.question, text=last.text))
    [embedded] = embed_logs([replace(log, probes=(again,))], trigrams(dimension=DIMENSION))
    needed = replace(embedded.probes[0], needed=(len(log.statements) - 1,))
    [all_turns, *_] = compare_halves([replace(embedded, probes=(needed,))], {}, top_k=1)
    assert all_turns.recalls == {"dense": [0.0], "hybrid": [0.0]}


@pytest.mark.slow
def test_conversation_30_of_locomo(locomo_file: Path) -> None:
    """Halves of the turns as they were measured before: all 0.49, random 0.26, recent 0.27,
    longest 0.45; counted in tokens, length is no good choice any more."""
    from memograd.memory.embedders.load import open_embedder
    from memograd.tasks.memory_ops.material import logs_of_files

    logs: list[Lifelog] = [log for log in logs_of_files([locomo_file]) if log.id == "conv-30"]
    material = embed_logs(logs, open_embedder("minilm"))
    found = {}
    for unit in ("tokens", "turns"):
        for one in compare_halves(material, half_methods({}), unit=unit):  # type: ignore[arg-type]
            assert len(one.logs) == 81
            found[unit, one.name] = float(np.mean(one.recalls["dense"]))
    assert found["turns", ALL_TURNS] == pytest.approx(0.49, abs=0.015)
    assert found["turns", "random half"] == pytest.approx(0.26, abs=0.03)
    assert found["turns", "recent half"] == pytest.approx(0.27, abs=0.015)
    assert found["turns", "longest half"] == pytest.approx(0.45, abs=0.015)
    assert found["tokens", "longest half"] == pytest.approx(0.33, abs=0.015)


def test_by_hand() -> None:
    # Half of 20 is 10: 6, then 5 does not fit, then 4.
    assert keep_top([0.9, 0.8, 0.1, 0.7], [6, 5, 5, 4], 0.5) == [0, 3]
    assert keep_top([1.0, 1.0, 1.0], [5, 5, 5], 2 / 3) == [0, 1]  # ties by order
    assert keep_top([1.0, 2.0], [3, 3], 1.0) == [0, 1]
    assert keep_top([1.0, 2.0], [3, 3], 0.0) == []
    assert keep_top([], [], 0.5) == []
    assert keep_preferred([2, 0], [5, 1, 5], 10) == [0, 2]  # what is not preferred is not kept
    assert share_of_tokens([100], 0.29) == 29
    assert share_of_tokens([1] * 10, 0.29) == 2


STATEMENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=12)


@given(STATEMENTS, st.floats(0, 1))
def test_never_exceeded_and_used_up(statements: list[tuple[int, int]], share: float) -> None:
    scores, tokens = [float(s) for s, _ in statements], [t for _, t in statements]
    kept = keep_top(scores, tokens, share)
    budget, used = share_of_tokens(tokens, share), sum(tokens[position] for position in kept)
    assert used <= budget <= sum(tokens)
    for left in set(range(len(tokens))) - set(kept):
        assert tokens[left] > budget - used
    assert kept == sorted(kept)


@given(STATEMENTS)
def test_the_first_of_equals_comes_first(statements: list[tuple[int, int]]) -> None:
    kept = keep_top([0.5] * len(statements), [1] * len(statements), 0.5)
    assert kept == list(range(len(statements) // 2))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        keep_top([1.0], [1], 1.5)
    with pytest.raises(BadInput, match="2 statements needs one finite score; got 1"):
        keep_top([1.0], [1, 2], 0.5)
    with pytest.raises(BadInput, match="finite score"):
        keep_top([math.nan], [1], 0.5)
    with pytest.raises(BadInput, match="less than no token"):
        share_of_tokens([-1], 0.5)
    for order in ([0, 0], [2], [-1]):
        with pytest.raises(BadInput, match="positions below 2"):
            keep_preferred(order, [1, 1], 5)
