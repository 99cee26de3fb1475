"""Any column becomes strict JSON, and equal values become equal texts."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo.run_folder import plain_json


@dataclass
class Point:
    x: float
    tags: set[str]


class Opaque:
    pass


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_the_text_is_strict_json_and_comes_back_the_same(value: object) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = plain_json(value)
    assert plain_json(json.loads(text, parse_constant=refuse)) == text


@given(st.dictionaries(st.text(), st.integers()), st.randoms())
def test_the_order_of_a_mapping_does_not_matter(value: dict[str, int], random) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert plain_json(dict(items)) == plain_json(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), '"nan"'),
        (-float("inf"), '"-inf"'),
        (np.float32(0.5), "0.5"),
        (np.array([[1, 2]]), "[[1, 2]]"),
        ((1, "好"), '[1, "好"]'),
        ({3, 1, 2}, "[1, 2, 3]"),
        (Path("a/b"), '"a/b"'),
        (datetime.date(2024, 5, 7), '"2024-05-07"'),
        (b"\x00\xff", '"00ff"'),
        (Point(1.0, {"b", "a"}), '{"tags": ["a", "b"], "x": 1.0}'),
    ],
)
def test_what_columns_hold(value: object, text: str) -> None:
    assert plain_json(value) == text


def test_an_unknown_object_is_told_by_its_type_and_never_by_its_address() -> None:
    assert plain_json([Opaque()]) == plain_json([Opaque()])
    assert "Opaque" in plain_json(Opaque())
