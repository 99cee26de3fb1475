"""Pass rates: what they say of what was earned, and that their state is all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo.asking import PassRates

earned = st.lists(
    st.tuples(st.sampled_from("abc"), st.lists(st.floats(-1, 2), min_size=1, max_size=9)),
    max_size=20,
)


def rates_of(groups, memory: float = 0.5) -> PassRates:
    rates = PassRates(passes_from=0.5, memory=memory)
    for name, rewards in groups:
        rates.add(name, np.array(rewards))
    return rates


@given(earned, st.floats(0, 0.99))
def test_rates_and_promises_stay_within_their_bounds(groups, memory: float) -> None:
    rates = rates_of(groups, memory)
    for name in "abcd":
        assert 0 < rates.rate(name) < 1
        assert 0 < rates.promise(name) <= 1
    assert rates.promise("d") == 1 and "d" not in rates


@given(earned, earned)
def test_the_state_is_all_there_is_and_does_not_change_afterwards(before, after) -> None:
    rates = rates_of(before)
    state = rates.state()
    for name, rewards in after:
        rates.add(name, np.array(rewards))
    again = PassRates(passes_from=0.5, memory=0.5)
    again.restore(state)
    assert again.state() == rates_of(before).state()
    for name, rewards in after:
        again.add(name, np.array(rewards))
    assert again.state() == rates.state()


def test_a_hand_computed_rate() -> None:
    rates = rates_of([("a", [0.0, 0.4, 0.5, 1.0])])  # two of four pass
    assert rates.rate("a") == 0.5
    rates.add("a", np.ones(8))  # half of what was known, and eight more
    assert rates.rate("a") == pytest.approx((0.5 * 2 + 8 + 0.5) / (0.5 * 4 + 8 + 1))
    assert rates.mean(["a", "new"]) == pytest.approx((9.5 / 11 + 0.5) / 2)


def test_a_large_group_says_more_than_a_small_one() -> None:
    rates = rates_of([("small", [0.0] * 2), ("large", [0.0] * 16)])
    assert rates.promise("small") > 2 * rates.promise("large")


def test_what_is_long_past_is_forgotten() -> None:
    rates = rates_of([("a", [1.0] * 8)] * 5 + [("a", [0.0] * 8)] * 5)
    assert rates.rate("a") < 0.1
    all_remembered = sum(range(1, 6)) / 20
    assert rates.rate("a") < all_remembered
