"""Dull groups are replaced, others keep their places, and the limit holds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from test_experience import facts, made_up

from memograd.grpo.drawing import draw_informative
from memograd.grpo.experience import Experience

DULL, GOOD = [1.0, 1.0], [0.0, 1.0]


class Draws:
    """Hands out prepared groups and writes down what was asked for."""

    def __init__(self, *rounds: Sequence[Sequence[float]]) -> None:
        self.experiences = [
            made_up(rewards_BG, name=f"round {index}, group ")
            for index, rewards_BG in enumerate(rounds)
        ]
        self.asked: list[tuple[int, list[int]]] = []

    def __call__(self, attempt: int, sizes: Sequence[int]) -> Experience:
        self.asked.append((attempt, list(sizes)))
        return self.experiences[attempt]


def names(experience: Experience) -> list[str]:
    return [group.scenario.id for group in experience.groups]


def test_dull_groups_are_replaced_and_others_keep_their_places() -> None:
    draws = Draws([DULL, GOOD, DULL, DULL], [DULL, GOOD, DULL], [GOOD, DULL], [GOOD])
    drawn = draw_informative(draws, sizes=[2] * 4, rounds=5, advantage="group")
    assert draws.asked == [(0, [2] * 4), (1, [2] * 3), (2, [2] * 2), (3, [2])]
    assert names(drawn.experience) == [
        "round 2, group 0",
        "round 0, group 1",
        "round 1, group 1",
        "round 3, group 0",
    ]
    assert (drawn.groups, drawn.dull) == (10, 6)
    assert drawn.experience.advantages.varied_B.all()


def test_a_group_makes_room_for_as_many_rollouts_as_it_has() -> None:
    draws = Draws([[1.0] * 3, GOOD, [0.0] * 4], [[0.0] * 5, GOOD], [[0.0, 1.0] * 2 + [0.0]])
    drawn = draw_informative(draws, sizes=[3] * 3, rounds=5, advantage="group")
    assert draws.asked == [(0, [3, 3, 3]), (1, [3, 4]), (2, [5])]
    assert drawn.experience.sizes_B == (5, 2, 2)


def test_the_rollouts_are_as_many_where_replacements_are_dull_too() -> None:
    draws = Draws([[1.0] * 4, GOOD, [0.0] * 4], [[0.0, 1.0] * 3, DULL])
    drawn = draw_informative(draws, sizes=[3, 3, 4], rounds=1, advantage="group")
    assert drawn.experience.sizes_B == (6, 2, 2)
    assert drawn.experience.advantages.varied_B.tolist() == [True, True, False]
    assert (drawn.groups, drawn.dull) == (5, 3)


@pytest.mark.parametrize("rounds", [0, 3])
def test_nothing_is_drawn_again_when_every_group_teaches(rounds: int) -> None:
    draws = Draws([GOOD, GOOD])
    drawn = draw_informative(draws, sizes=[2] * 2, rounds=rounds, advantage="group")
    assert draws.asked == [(0, [2, 2])]
    assert facts(drawn.experience) == facts(draws.experiences[0])
    assert (drawn.groups, drawn.dull) == (2, 0)


def test_after_the_last_round_the_batch_is_what_there_is() -> None:
    draws = Draws([DULL, GOOD], [DULL])
    drawn = draw_informative(draws, sizes=[2] * 2, rounds=1, advantage="group")
    assert names(drawn.experience) == ["round 0, group 0", "round 0, group 1"]
    assert drawn.experience.advantages.varied_B.tolist() == [False, True]
    assert (drawn.groups, drawn.dull) == (3, 2)
    off = draw_informative(Draws([DULL, DULL]), sizes=[2] * 2, rounds=0, advantage="group")
    assert (off.groups, off.dull) == (2, 2)
