"""benchmarks/twins.py counts what becomes of facts; benchmarks/met_in_cases.py labels what a case
says of items."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memograd import Memory

FACTS: list[list[Any]] = [
    ["u", "I drive a Honda.", [["f1", "I drive a Honda.", "User drives a Honda."]]],
    ["u", "I work at Tesco.", [["f2", "I work at Tesco.", "User works at Tesco."]]],
]


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))


@pytest.mark.parametrize(
    ("said", "acts", "kind", "counted"),
    [
        ("What is the capital of France?", [], "calm", {"harmed": 0, "doubted": 0}),
        # A change that the writer does not say is a harm.
        ("sold the Honda", [], "calm", {"harmed": 1, "doubted": 0}),
        ("sold the Honda", [["f1", "end"]], "changing", {"changed": 1, "hit_another": 0}),
        ("sold the Honda", [["f2", "end"]], "changing", {"changed": 0, "hit_another": 1}),
    ],
)
def test_what_becomes_of_the_facts(
    benchmarks: None,
    tmp_path: Path,
    said: str,
    acts: list[list[str]],
    kind: str,
    counted: dict[str, int],
) -> None:
    twins: ModuleType = importlib.import_module("twins")
    case = {"k": "life", "t": [*FACTS, ["u", said, [], acts]]}
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        found, counts = twins.after(memory, case, "ann")
    assert found == kind
    assert {name: int(counts[name]) for name in counted} == counted


def test_an_item_is_closed_where_the_case_says_that_it_may_not_hold(benchmarks: None) -> None:
    bench: ModuleType = importlib.import_module("met_in_cases")
    case = {
        "id": "en-s0-001",
        "kind": "change",
        "ask": [{"q": "Which car?", "has": "fiat", "not": "honda"}],
        "all_has": ["tesco"],
    }
    met = {
        "text": "a Fiat now",
        "before": [],
        "items": [
            ("User drives a Honda.", 0.9, True),
            ("User works at Tesco.", 0.7, True),  # the model has it wrong
            ("User has a dog.", 0.1, True),  # surely left alone
            ("User has a garage.", 0.6, True),  # nobody knows
            ("User drove a Honda (until 2020).", 0.9, False),
        ],
    }
    row, wrong = bench.row_of(case, met)
    assert row["items"] == ["User drives a Honda.", "User works at Tesco.", "User has a dog."]
    assert row["relations"] == ["replace", "stays", "stays"] and wrong
    right = {**met, "items": [met["items"][0], met["items"][2]]}
    assert bench.row_of(case, right)[1] is False
    assert bench.row_of(case, {**met, "items": met["items"][1:]}) is None  # closes nothing
    calm = {**case, "kind": "comment", "ask": [], "all_has": []}
    assert bench.row_of(calm, met)[0]["relations"] == ["stays"] * 4
