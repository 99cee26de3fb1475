"""What the replay buffer keeps, for how long, and what comes out of it."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from test_experience import facts, made_up

from memograd.grpo.experience import join
from memograd.grpo.replay import Replay, with_replayed

DULL, GOOD = [1.0, 1.0], [0.0, 1.0, 0.5]


def names(kept) -> list[str]:
    return [one.experience.groups[0].scenario.id for one in kept]


def step_of(name: str) -> int:
    return int(name.split(".")[0])


@given(
    capacity=st.integers(1, 6),
    max_age=st.integers(1, 4),
    max_uses=st.integers(1, 3),
    count=st.integers(0, 5),
    steps=st.lists(st.lists(st.sampled_from([DULL, GOOD]), min_size=1, max_size=4), max_size=8),
)
def test_limits_hold_whatever_comes(capacity, max_age, max_uses, count, steps) -> None:
    replay = Replay(capacity=capacity, max_age=max_age, max_uses=max_uses)
    uses: Counter[str] = Counter()
    for step, groups in enumerate(steps, start=1):
        before = {one.step for one in replay.state()}
        drawn = replay.draw(count, step=step, seed=0)
        usable = [kept_step for kept_step in before if step - kept_step <= max_age]
        assert len(drawn) == len(set(names(drawn))) <= count
        assert drawn or not usable or not count
        for one in drawn:
            assert 1 <= step - one.step <= max_age
            assert one.experience.advantages.varied_B.all()
        uses.update(names(drawn))
        replay.add(made_up(groups, name=f"{step}."), step=step, advantage="group")
        assert len(replay.state()) <= capacity
    assert all(used <= max_uses for used in uses.values())


def test_the_oldest_make_room_and_dull_groups_are_never_kept() -> None:
    replay = Replay(capacity=3, max_age=9, max_uses=1)
    replay.add(made_up([GOOD, DULL, GOOD], name="1."), step=1, advantage="group")
    replay.add(made_up([DULL, GOOD, GOOD], name="2."), step=2, advantage="group")
    assert names(replay.state()) == ["1.2", "2.1", "2.2"]


def test_a_draw_is_a_function_of_seed_step_and_buffer() -> None:
    def drawn(step: int, seed: int) -> list[str]:
        replay = Replay(capacity=40, max_age=9, max_uses=1)
        replay.add(made_up([GOOD] * 40), step=1, advantage="group")
        return names(replay.draw(6, step=step, seed=seed))

    assert drawn(2, 0) == drawn(2, 0)
    assert len({tuple(drawn(2, 0)), tuple(drawn(3, 0)), tuple(drawn(2, 1))}) == 3


def test_a_group_comes_back_as_it_was_and_after_the_fresh_ones() -> None:
    replay = Replay(capacity=4, max_age=9, max_uses=1)
    old = made_up([GOOD, DULL], name="old", rows=2)
    replay.add(old, step=1, advantage="group")
    fresh = made_up([[0.0, 3.0], DULL], name="new", rows=2)
    both = with_replayed(fresh, replay.draw(5, step=2, seed=0), "group")
    assert facts(both) == facts(join([fresh, old.single(0, "group")], "group"))
    assert both.replayed == 1
    assert both.fresh_K.tolist() == [True] * 4 + [False] * 3
    np.testing.assert_array_equal(both.advantages.advantages_K[:4], fresh.advantages.advantages_K)


def test_without_replayed_groups_a_step_learns_from_its_own() -> None:
    fresh = made_up([GOOD])
    assert with_replayed(fresh, [], "group") is fresh
    assert Replay(capacity=1, max_age=1, max_uses=1).draw(3, step=5, seed=0) == []
