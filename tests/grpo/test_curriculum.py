"""Which scenarios a curriculum asks: new ones first, then the promising, and none never."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo.asking import PassRates, draw_weight, scenarios_by_pass_rate
from memograd.grpo.batch import scenarios_of_step
from memograd.rollout import Scenario


def some(count: int) -> list[Scenario]:
    return [Scenario(f"q{number}", ()) for number in range(count)]


def rates_of(passes: dict[str, float]) -> PassRates:
    """Pass rates that are about these, each from a hundred attempts."""
    rates = PassRates(passes_from=0.5, memory=0.5)
    for name, share in passes.items():
        rates.add(name, np.arange(100) < 100 * share)
    return rates


def ask(scenarios, rates, *, count=2, floor=0.1, **where) -> list[str]:
    where = {"step": 1, "attempt": 0, "seed": 0} | where
    asked = scenarios_by_pass_rate(scenarios, rates, count=count, floor=floor, **where)
    return [scenario.id for scenario in asked]


def test_until_all_were_asked_it_is_the_first_epoch() -> None:
    scenarios, rates = some(6), PassRates(passes_from=0.5, memory=0.5)
    for step in (1, 2, 3):
        asked = ask(scenarios, rates, step=step, seed=4)
        plain = scenarios_of_step(scenarios, step=step, count=2, seed=4)
        assert asked == [scenario.id for scenario in plain]
        for name in asked:
            rates.add(name, np.zeros(4))


def test_new_ones_come_first_and_the_rest_is_drawn() -> None:
    scenarios = some(5)
    rates = rates_of({"q0": 0.5, "q1": 0.5, "q2": 0.5})
    asked = ask(scenarios, rates, count=4)
    assert set(asked[:2]) == {"q3", "q4"}
    assert len(set(asked)) == 4


shares = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(shares, st.integers(1, 20), st.integers(0, 5))
def test_a_scenario_comes_twice_only_where_there_are_too_few(passes, count, step) -> None:
    scenarios = some(len(passes))
    rates = rates_of({f"q{number}": share for number, share in enumerate(passes)})
    asked = Counter(ask(scenarios, rates, count=count, step=step))
    assert sum(asked.values()) == count
    assert max(asked.values()) - min(asked[s.id] for s in scenarios) <= 1
    assert asked == Counter(ask(scenarios, rates, count=count, step=step))


@given(shares, st.floats(0.01, 1))
def test_nothing_has_less_than_its_floor_of_an_equal_chance(passes, floor) -> None:
    rates = rates_of({f"q{number}": share for number, share in enumerate(passes)})
    weights = [draw_weight(rates.promise(f"q{number}"), floor) for number in range(len(passes))]
    assert min(weights) / sum(weights) >= floor / len(passes) * (1 - 1e-12)


def test_the_promising_are_asked_most_and_the_hopeless_now_and_then() -> None:
    scenarios = some(4)
    rates = rates_of({"q0": 0.0, "q1": 0.5, "q2": 0.8, "q3": 1.0})
    asked = Counter(
        name
        for step in range(2000)
        for name in ask(scenarios, rates, count=1, step=step, floor=0.1)
    )
    weights = np.array([draw_weight(rates.promise(s.id), 0.1) for s in scenarios])
    expected = 2000 * weights / weights.sum()
    found = np.array([asked[s.id] for s in scenarios])
    np.testing.assert_allclose(found, expected, atol=4 * np.sqrt(expected.max()))
    assert asked["q0"] > 0.1 / 4 * 2000 and asked["q3"] > 0.1 / 4 * 2000


def test_a_draw_is_a_function_of_seed_step_and_attempt() -> None:
    scenarios, rates = some(30), rates_of({f"q{number}": 0.5 for number in range(30)})
    draws = {tuple(ask(scenarios, rates, count=8, **{key: 7})) for key in ("step", "attempt")}
    draws.add(tuple(ask(scenarios, rates, count=8, seed=7)))
    draws.add(tuple(ask(scenarios, rates, count=8)))
    assert len(draws) == 4
