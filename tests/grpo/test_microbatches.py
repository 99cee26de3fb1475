"""Micro-batches are merged where rollouts cross them, and nowhere else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo.learner import keep_rollouts_whole


def test_only_pieces_that_share_a_rollout_are_merged() -> None:
    rollouts = [(0, 1), (2,), (1, 3), (4,), (3,)]
    assert keep_rollouts_whole([[0], [1], [2], [3], [4]], rollouts) == [[1], [3], [0, 2, 4]]
    assert keep_rollouts_whole([[3, 1], [0, 2, 4]], rollouts) == [[3, 1], [0, 2, 4]]


@given(st.lists(st.lists(st.integers(0, 8), max_size=3), min_size=1, max_size=8), st.data())
def test_no_rollout_crosses_pieces_and_no_tree_is_lost(rollouts, data) -> None:
    places = data.draw(st.lists(st.integers(0, 3), min_size=len(rollouts), max_size=len(rollouts)))
    pieces = [[tree for tree, place in enumerate(places) if place == p] for p in range(4)]
    merged = keep_rollouts_whole([piece for piece in pieces if piece], rollouts)
    assert sorted(tree for piece in merged for tree in piece) == list(range(len(rollouts)))
    owner = {}
    for place, piece in enumerate(merged):
        for rollout in {rollout for tree in piece for rollout in rollouts[tree]}:
            assert owner.setdefault(rollout, place) == place
