"""Tokens are judged in the order in which a rollout chose them, wherever they were computed."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo.advantage import Tokens, judge_tokens
from memograd.grpo.distributed import ALONE
from memograd.grpo.loss import Objective

OBJECTIVE = Objective(advantage="gae", beta=0.3, kl="k1", kl_in="reward", gamma=0.9, gae_lambda=0.8)


class Held:
    """A piece that only remembers: tokens of rows (rollout, tree, branch, values, KLs)."""

    def __init__(self, rows: list[tuple[int, int, int, list[float], list[float]]]) -> None:
        self.rows = rows

    def tokens(self) -> Tokens:
        lengths = [len(values) for *_, values, _ in self.rows]
        names = [np.repeat([row[place] for row in self.rows], lengths) for place in range(3)]
        values = [value for *_, values, _ in self.rows for value in values]
        kls = [kl for *_, kls in self.rows for kl in kls]
        return Tokens(*names, np.array(values, dtype=float), np.array(kls, dtype=float))

    def judge(self, advantages_N: np.ndarray, targets_N: np.ndarray) -> None:
        self.advantages, self.targets = advantages_N.tolist(), targets_N.tolist()


def plain(
    rollouts: list[list[tuple[float, float]]], rewards: list[float]
) -> tuple[list[list[float]], list[list[float]]]:
    """Advantages and targets of every rollout's tokens (value, KL), by the formulas."""
    raw, targets = [], []
    for tokens, reward in zip(rollouts, rewards, strict=True):
        values = [value for value, _ in tokens]
        earned = [-0.3 * kl for _, kl in tokens]
        earned[-1] += reward
        deltas = [
            r + 0.9 * n - v for r, n, v in zip(earned, [*values[1:], 0.0], values, strict=True)
        ]
        raw.append(
            [
                sum((0.9 * 0.8) ** k * d for k, d in enumerate(deltas[t:]))
                for t in range(len(deltas))
            ]
        )
        targets.append([a + v for a, v in zip(raw[-1], values, strict=True)])
    everything = [a for advantages in raw for a in advantages]
    mean, std = statistics.fmean(everything), statistics.stdev(everything)
    return [[(a - mean) / (std + 1e-4) for a in advantages] for advantages in raw], targets


numbers = st.floats(-2, 2, width=16)


@st.composite
def batches(draw: st.DrawFn) -> tuple[list, list[float], list[Held]]:
    """Rollouts of tokens, their rewards, and the same tokens cut into rows, trees and pieces."""
    rollouts = draw(
        st.lists(
            st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5), min_size=2, max_size=4
        )
    )
    rewards = [draw(numbers) for _ in rollouts]
    rows, branches = [], {}
    for rollout, tokens in enumerate(rollouts):
        tree = place = 0
        while place < len(tokens):
            end = draw(st.integers(place + 1, len(tokens)))
            tree = draw(st.integers(tree, tree + 1))
            branch = branches[tree] = branches.get(tree, -1) + 1
            part = tokens[place:end]
            rows.append((rollout, tree, branch, [v for v, _ in part], [k for _, k in part]))
            place = end
    pieces: list[Held] = [Held([]) for _ in range(3)]
    for row in draw(st.permutations(rows)):
        pieces[draw(st.integers(0, 2))].rows.append(row)
    return rollouts, rewards, pieces


@given(batches())
def test_rows_trees_and_pieces_change_nothing(batch) -> None:
    rollouts, rewards, pieces = batch
    expected, expected_targets = plain(rollouts, rewards)
    means = judge_tokens(pieces, np.array(rewards), OBJECTIVE, ALONE)
    np.testing.assert_allclose(means, [statistics.fmean(row) for row in expected], atol=1e-8)
    found: dict[int, list] = {}
    for piece in pieces:
        place = 0
        for rollout, tree, branch, values, _ in piece.rows:
            end = place + len(values)
            row = (tree, branch, piece.advantages[place:end], piece.targets[place:end])
            found.setdefault(rollout, []).append(row)
            place = end
    for rollout, rows in found.items():
        advantages = [a for *_, row, _ in sorted(rows) for a in row]
        targets = [t for *_, row in sorted(rows) for t in row]
        assert advantages == pytest.approx(expected[rollout], abs=1e-8)
        assert targets == pytest.approx(expected_targets[rollout], abs=1e-8)


def test_a_rank_without_a_share_has_nothing_to_judge() -> None:
    assert judge_tokens([], np.array([1.0, 2.0]), OBJECTIVE, ALONE).tolist() == [0.0, 0.0]
