"""benchmarks/keep_half.py: what is asked about is learnt from how turns are written, never from the
half that is measured."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from memograd.data import Conversation, Question
from memograd.data.lifelog import Lifelog, lifelog_of
from memograd.memory import RawTurn

START = datetime(2024, 1, 5, 9, tzinfo=UTC)
SAID = (
    "How are you doing today?",
    "We flew to Oslo on the 3rd of May 2023.",
    "ok, how are you?",
    "好的，我们下周五在上海见面。",
    "ok ok",
    "How are you doing today?",
)
NEEDED = (1, 3)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("keep_half")


def talk(name: str) -> Lifelog:
    turns = tuple(
        RawTurn(f"t{n}", ("Ann", "Ben")[n % 2], text, START + timedelta(minutes=n), 1)
        for n, text in enumerate(SAID)
    )
    question = Question(
        "q", "Where?", "Oslo", "single-hop", evidence=tuple(f"t{n}" for n in NEEDED)
    )
    return lifelog_of(Conversation(name, ("Ann", "Ben"), turns, (question,), ()), "en")


def test_features_tell_how_a_turn_is_written_and_where_it_stands(bench: ModuleType) -> None:
    rows = bench.features_of(talk("features"))
    said = {name: rows[:, at].tolist() for at, name in enumerate(bench.FEATURES)}
    assert said["opens"] == [1, 0, 0, 0, 0, 0]
    assert said["answers"] == [0, 1, 0, 1, 0, 0]
    assert said["question"] == [1, 0, 1, 0, 0, 1]
    assert said["time"][1] == said["time"][3] == 1 and said["time"][4] == 0
    assert said["new words"][0] == 1 > said["new words"][1] > said["new words"][5] == 0
    assert said["rarity"][1] > said["rarity"][0] > 0


def test_what_is_asked_about_is_liked_most_in_another_conversation(bench: ModuleType) -> None:
    model = bench.fitted([talk(f"{n}") for n in range(8)])
    odds = (bench.features_of(talk("another")) - model.mean) @ model.weights
    assert sorted(range(len(SAID)), key=lambda n: -odds[n])[:2] in ([1, 3], [3, 1])
    blind = bench.fitted([talk(f"{n}") for n in range(8)], bench.BY_WORDS)
    weights = dict(zip(bench.FEATURES, blind.weights, strict=True))
    assert weights["rarity"] == weights["new words"] == 0 != weights["time"]


def test_nothing_is_fitted_on_the_half_that_is_measured(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[str]] = []
    fitted = bench.fitted

    def watched(logs: list[Lifelog], without: tuple[str, ...] = ()) -> object:
        seen.append({log.id for log in logs})
        return fitted(logs, without)

    monkeypatch.setattr(bench, "fitted", watched)
    sets = {
        "LoCoMo a": [("a", talk("a"))],
        "LoCoMo b": [("b", talk("b"))],
        "LongMemEval": [("half0", talk("first")), ("half1", talk("second"))],
        "written": [("en-c", talk("en-c")), ("en-f", talk("en-f"))],
    }
    bench.fitted_for("LongMemEval", True, sets)
    assert seen == [{"first", "en-c"}, {"first", "en-c"}, {"first", "en-c", "a", "b"}]
    seen.clear()
    bench.fitted_for("LoCoMo a", False, sets)
    assert seen[0] == {"first", "second", "en-c", "en-f"}
    assert seen[2] - seen[0] == {"b"}
