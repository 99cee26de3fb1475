"""Thresholds fitted to behaviour cases: what is played again, what is found, what is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memograd.errors import BadInput
from memograd.memory.relations.model import SHIPPED
from memograd.memory.relations.thresholds import NAMES, Thresholds
from memograd.memory.relations.weights import Weights, read_weights
from memograd.tasks.relations.cases import Case, Wrong, read_cases
from memograd.tasks.relations.fit import (
    GRID,
    CaseVerdict,
    Region,
    Watched,
    fit,
    judging,
    shares,
    watched,
)

SUITES = [
    Path(__file__).resolve().parents[1] / "behaviour" / f"{name}.jsonl" for name in ("en", "zh")
]


@pytest.fixture(scope="module")
def weights() -> Weights:
    return read_weights(SHIPPED)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """A few of each kind that thresholds decide about, in both languages."""
    kinds = ("change", "comment", "ending", "correction", "retraction", "not_memory", "dialogue")
    every = read_cases(SUITES, ["s1"])
    return [
        case
        for language in ("en", "zh")
        for kind in kinds
        for case in [c for c in every if c["kind"] == kind and c["id"].startswith(language)][:2]
    ]


def any_thresholds(rng: random.Random) -> Thresholds:
    while True:
        chosen = rng.sample(NAMES, 8)
        try:
            return replace(Thresholds(), **{name: rng.choice(GRID) for name in chosen})
        except BadInput:  # doubted from where it is closed
            continue


def test_a_verdict_that_was_not_played_is_the_one_that_playing_gives(
    weights: Weights, cases: list[Case], trigrams: Callable[[], Any]
) -> None:
    rng = random.Random(0)
    spared = 0
    with judging(weights, trigrams()) as judge:
        for number in range(6):
            thresholds = any_thresholds(rng)
            for case in cases:
                before = judge.played
                verdict = judge.verdict(case, thresholds)
                if judge.played > before:
                    continue
                spared += 1
                judge.reader.thresholds = judge.manager.thresholds = thresholds
                assert judge.played_anew(case, f"again {case['id']} {number}") == verdict
    assert spared > len(cases)


def test_a_share_of_a_threshold_is_watched_too(
    weights: Weights, trigrams: Callable[[], Any]
) -> None:
    """Two thresholds were compared with each other, and the fit broke off."""
    region = Region()
    with judging(weights, trigrams()) as judge:
        judge.reader.thresholds = judge.manager.thresholds = watched(Thresholds(), region)
        for said in ("My wife plays chess, runs a bakery and keeps bees", "She sold the bakery"):
            judge.memory.add(said, user_id="ann")
    assert {"part_above", "part_share"} <= region.bounds.keys()


def test_spoilt_thresholds_are_mended_and_always_to_the_same(
    weights: Weights, cases: list[Case], trigrams: Callable[[], Any]
) -> None:
    spoilt = Thresholds(close_above=0.99, doubt_above=0.98, correct_above=0.99, keep_above=0.02)
    spoilt_weights = replace(weights, about=replace(weights.about, thresholds=spoilt))
    found = [fit(spoilt_weights, cases, embedder=trigrams()) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].thresholds.doubt_above < 0.9
    for language, before in found[0].before.items():
        assert found[0].after[language].value > before.value
        assert found[0].after[language].destroyed <= before.destroyed
    with judging(weights, trigrams()) as judge:
        assert shares(judge, cases, found[0].thresholds) == found[0].after
    assert "| doubt_above" in found[0].report


def test_what_a_case_is_worth() -> None:
    lost, found = Wrong("", lost=True), Wrong("", lost=False)
    change, comment = {"kind": "change"}, {"kind": "comment"}
    right, doubted, past = (
        CaseVerdict(None, doubted=doubt, past=past)
        for doubt, past in ((False, False), (True, False), (False, True))
    )
    assert right.value(change) == past.value(change) == right.value(comment) == 1
    assert 0 < doubted.value(change) == doubted.value(comment) < 1
    assert past.value(comment) == 0  # it stands there as what was so
    assert CaseVerdict(lost, False, False).value(change) == 0
    assert CaseVerdict(found, False, False).value(comment) == 0
    assert CaseVerdict(lost, False, False).value(comment) < 0


def test_a_region_is_what_compares_alike() -> None:
    region = Region()
    threshold = Watched.of(0.5, "close_above", region)
    assert threshold <= 0.8 and not threshold <= 0.3 and not threshold > 0.8
    assert 0.5 * threshold < 0.9  # says that it is below 1.8
    low, high = region.bounds["close_above"]
    assert low == 0.3 and high == 0.8
    assert region.holds(replace(Thresholds(), close_above=0.8))
    assert not region.holds(replace(Thresholds(), close_above=0.81))
    with pytest.raises(TypeError, match="close_above may be compared and scaled"):
        1 - threshold  # type: ignore[operator]
    with pytest.raises(TypeError, match="close_above may be compared and scaled"):
        max(threshold, 0.4 * threshold)


def test_what_cannot_be_fitted_is_refused(weights: Weights, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"by the author 's99'; there are s1, "):
        read_cases(SUITES, ["s1", "s99"])
    with pytest.raises(BadInput, match="there is none"):
        fit(weights, [])
    wrong = tmp_path / "cases.jsonl"
    wrong.write_text(json.dumps({"id": "en-s1-001", "kind": "change"}), encoding="utf-8")
    with pytest.raises(BadInput, match=r"cases.jsonl:1 is no behaviour case"):
        read_cases([wrong])
    with pytest.raises(BadInput, match="cannot be read"):
        read_cases([tmp_path / "none.jsonl"])
