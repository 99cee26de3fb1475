"""Which half of the raw turns is kept: budgets, modes, and the numbers that LoCoMo gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.conftest import DIMENSION

from memograd.data.lifelog import Lifelog, LifelogSettings, generate_lifelogs
from memograd.tasks.memory_ops.baselines.keep_half import (
    ALL_TURNS,
    KeptHalf,
    compare_halves,
    half_methods,
    head_likes,
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
