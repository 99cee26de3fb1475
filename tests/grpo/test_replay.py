"""What the replay buffer keeps, for how long, what comes out, and that a checkpoint keeps it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_experience import facts, made_up

from memograd.grpo.batch import Draw, score_rows
from memograd.grpo.drawing import SingleTurn
from memograd.grpo.experience import Experience, join
from memograd.grpo.loss import Objective
from memograd.grpo.replay import KeptGroup, Replay, kept_groups, plain_groups, with_replayed
from memograd.rewards import WeightedReward
from memograd.rollout import Message, Rollout, Scenario

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


def through_a_file(kept: list[KeptGroup], scenarios, path) -> list[KeptGroup]:
    torch.save(plain_groups(kept), path)
    return kept_groups(torch.load(path, weights_only=True), scenarios)


def arrays(experience: Experience) -> list[np.ndarray]:
    found = [experience.compared_K, experience.advantages.advantages_K]
    for tree, rows in zip(experience.trees, experience.old_logprobs, strict=True):
        found += [tree.tokens_N, tree.parents_N, *tree.branches, *tree.scored, *rows]
    found += [turn.logprobs for rollout in experience.rollouts for turn in rollout.turns]
    return found


def in_words(rollout: Rollout) -> list[object]:
    """Everything but arrays."""
    turns = [
        (turn.observation_ids, turn.action_ids, turn.stop_reason, turn.starts_row)
        for turn in rollout.turns
    ]
    return [rollout.id, rollout.completion, rollout.reward, rollout.stop_reason, turns]


def check_equal(kept: list[KeptGroup], again: list[KeptGroup]) -> None:
    assert [(one.step, one.uses) for one in again] == [(one.step, one.uses) for one in kept]
    for before, after in zip(kept, again, strict=True):
        old, new = before.experience, after.experience
        for a, b in zip(arrays(old), arrays(new), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        assert [tree.trunk for tree in new.trees] == [tree.trunk for tree in old.trees]
        assert new.rollouts_of_tree == old.rollouts_of_tree
        assert new.rewards == old.rewards
        assert new.groups[0].scenario is old.groups[0].scenario
        for a, b in zip(old.rollouts, new.rollouts, strict=True):
            assert in_words(a) == in_words(b)


def test_sampled_answers(tiny_policy, scenarios, tmp_path) -> None:
    drawn = SingleTurn(tiny_policy, num_generations=3, max_completion_length=4)(
        scenarios[:2],
        Draw(1, generator=torch.Generator().manual_seed(0), sizes=[2, 5]),
    )
    experience = score_rows(
        drawn.groups,
        [
            WeightedReward("place", lambda completions: [k / 3 for k in range(len(completions))]),
            WeightedReward("never", lambda completions: [None for _ in completions]),
        ],
        Objective(),
        trees=drawn.trees,
        rollouts_of_tree=drawn.rollouts_of_tree,
        old_logprobs=drawn.old_logprobs,
    )
    kept = [KeptGroup(experience.single(group, "group"), 3 + group, group) for group in range(2)]
    check_equal(kept, through_a_file(kept, scenarios, tmp_path / "state"))


def test_episodes_of_several_rows_and_what_only_they_have(tmp_path) -> None:
    """Rows in several trees; an observation that is not scored; messages are left out."""
    experience = made_up([[0.0, 1.0]], rows=2)
    rollouts = tuple(
        replace(
            rollout,
            turns=(rollout.turns[0], replace(rollout.turns[1], starts_row=False)),
            reward=0.25,
            stopped_by="turns",
            messages=(Message(role="user", content="你"),),
            opening_length=1,
        )
        for rollout in experience.rollouts
    )
    tree = replace(
        experience.trees[0],
        scored=tuple(np.array([False, True]) for _ in experience.trees[0].branches),
    )
    experience = replace(
        experience,
        groups=(replace(experience.groups[0], rollouts=rollouts),),
        trees=(tree, experience.trees[1]),
    )
    scenario = experience.groups[0].scenario
    kept = [KeptGroup(experience, 2)]
    again = through_a_file(kept, [Scenario("other", ()), scenario], tmp_path / "state")
    check_equal(kept, again)
    turn = again[0].experience.rollouts[0].turns[1]
    assert not turn.starts_row and turn.stop_reason == "end"
    assert again[0].experience.rollouts[0].messages == ()
