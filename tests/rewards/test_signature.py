"""A reward function is called with what it names."""

from __future__ import annotations

from functools import partial
from typing import Any

from memograd.rewards import REWARDS, SCORES, get_reward, needed_columns
from memograd.rewards.user_code import source_of, taken_by

AVAILABLE = ["prompts", "completions", "answer", "size"]


def narrow(completions: list[str], answer: list[str]) -> list[float]:
    return []


def wide(prompts: Any, completions: Any, size: Any = None, **columns: Any) -> list[float]:
    return []


def optional(completions: Any, answer: Any, size: Any = None) -> list[float]:
    return []


class Judge:
    def __call__(self, completions: Any, answer: Any) -> list[float]:
        return []


def test_what_a_function_takes() -> None:
    assert taken_by(narrow, AVAILABLE) == ["completions", "answer"]
    assert taken_by(wide, AVAILABLE) == AVAILABLE
    assert taken_by(optional, AVAILABLE) == ["completions", "answer", "size"]
    assert taken_by(Judge(), AVAILABLE) == ["completions", "answer"]


def test_what_a_function_needs() -> None:
    assert needed_columns(narrow) == ["answer"]
    assert needed_columns(wide) == []
    assert needed_columns(optional) == ["answer"]
    assert needed_columns(Judge()) == ["answer"]
    assert needed_columns(partial(optional, answer=["x"])) == []


def test_what_the_built_in_ones_need() -> None:
    needed = {name: needed_columns(get_reward(name)) for name in [*REWARDS, *SCORES]}
    assert needed == {
        "locomo_f1": ["answer", "category"],
        "mem0_f1": ["answer"],
        "mem0_bleu1": ["answer"],
        "environment": [],
        "exact_match": ["answer"],
        "memory_r1_exact_match": ["answer"],
        "numeric_match": ["answer"],
        "format_match": [],
        "length": [],
        "repetition_penalty": [],
        "language_consistency": [],
        "coherence": [],
        "keyword_coverage": ["keywords"],
    }


def test_the_file_of_a_function() -> None:
    assert source_of(narrow) == __file__
    assert source_of(partial(narrow)) == __file__
    assert source_of(len) is None
