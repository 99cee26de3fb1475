"""What the schedules give at their ends and between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo.asking import temperature_at
from memograd.grpo.optimizer import learning_rate_at


def rates(schedule: str, *, steps: int, warmup_steps: int = 0) -> list[float]:
    return [
        learning_rate_at(step, steps=steps, peak=1.0, warmup_steps=warmup_steps, schedule=schedule)
        for step in range(1, steps + 1)
    ]


def temperatures(schedule: str, *, start: float, end: float, dull: float = 0.0) -> list[float]:
    return [
        temperature_at(
            step, steps=5, start=start, end=end, schedule=schedule, zero_variance_fraction=dull
        )
        for step in range(1, 6)
    ]


def test_learning_rates_by_hand() -> None:
    assert rates("constant", steps=6, warmup_steps=3) == [0.25, 0.5, 0.75, 1, 1, 1]
    assert rates("linear", steps=4) == [1, 0.75, 0.5, 0.25]
    assert rates("linear", steps=6, warmup_steps=2) == pytest.approx(
        [1 / 3, 2 / 3, 1, 0.75, 0.5, 0.25]
    )
    assert rates("cosine", steps=4) == pytest.approx([1, 0.8535534, 0.5, 0.1464466])


@given(st.sampled_from(["constant", "linear", "cosine"]), st.integers(1, 50), st.integers(0, 60))
def test_a_learning_rate_rises_then_falls_and_is_never_zero(
    schedule: str, steps: int, warmup_steps: int
) -> None:
    found = rates(schedule, steps=steps, warmup_steps=warmup_steps)
    top = found.index(max(found))
    assert found[:top] == sorted(found[:top])
    assert found[top:] == sorted(found[top:], reverse=True)
    assert min(found) > 0 and max(found) <= 1


def test_temperatures_by_hand() -> None:
    assert temperatures("constant", start=0.8, end=0.8, dull=1.0) == [0.8] * 5
    assert temperatures("linear", start=1.0, end=0.6) == pytest.approx([1.0, 0.9, 0.8, 0.7, 0.6])
    assert temperatures("variance", start=0.8, end=1.2) == [0.8] * 5
    assert temperatures("variance", start=0.8, end=1.2, dull=0.5) == pytest.approx([1.0] * 5)
    assert temperatures("variance", start=0.8, end=1.2, dull=1.0) == pytest.approx([1.2] * 5)


def test_a_run_of_one_step_starts_where_it_should() -> None:
    assert rates("linear", steps=1) == rates("cosine", steps=1) == [1.0]
    assert (
        temperature_at(
            1, steps=1, start=1.0, end=0.5, schedule="linear", zero_variance_fraction=0.0
        )
        == 1.0
    )
