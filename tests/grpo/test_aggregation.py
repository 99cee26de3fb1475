"""House contract 3: loss and gradient belong to rollouts, however their tokens are laid out."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.grpo.learner import keep_rollouts_whole
from memograd.grpo.loss import LossTerms, grpo_loss, rollout_shares, token_weights

AGGREGATIONS = ["rollout", "token", "constant"]
RATIOS = ["token", "sequence", "product", "weight"]
LONGEST = 8


@dataclass
class Tokens:
    """K rollouts of up to `LONGEST` tokens, with everything that the loss asks of a token."""

    seed: int
    rollouts: int = 4
    values_KT: dict[str, torch.Tensor] = field(init=False)

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(self.seed)
        self.lengths = torch.randint(0, LONGEST + 1, (self.rollouts,), generator=generator).tolist()
        shape = (self.rollouts, LONGEST)

        def noise(scale: float) -> torch.Tensor:
            return scale * torch.randn(shape, generator=generator, dtype=torch.float64)

        logprobs_KT = noise(0.5) - 1
        self.values_KT = {
            "logprobs_RT": logprobs_KT,
            "old_logprobs_RT": logprobs_KT + noise(0.2),
            "reference_logprobs_RT": logprobs_KT + noise(0.5),
            "entropies_RT": noise(1.0).abs(),
            "importance_RT": noise(0.3).exp(),
        }
        self.advantages_K = torch.randn(self.rollouts, generator=generator, dtype=torch.float64)


Row = tuple[int, list[int]]
"""A rollout and, for every token of the row, which of the rollout's tokens it is; -1: unscored."""


def evaluate(
    tokens: Tokens, pieces: list[list[Row]], *, aggregation: str, ratio: str
) -> tuple[float, torch.Tensor]:
    """Loss and gradient [K, T] of rows that are computed piece by piece."""
    leaf_KT = tokens.values_KT["logprobs_RT"].clone().requires_grad_()
    shares_K = rollout_shares(aggregation, np.array(tokens.lengths), max_completion_length=LONGEST)
    counts_K = torch.zeros(tokens.rollouts, dtype=torch.long)
    for rollout, places in (row for piece in pieces for row in piece):
        counts_K[rollout] += sum(place >= 0 for place in places)
    total = 0.0
    for piece in pieces:
        width = max((len(places) for _, places in piece), default=0)
        index_RT = torch.tensor(
            [places + [-1] * (width - len(places)) for _, places in piece], dtype=torch.long
        )
        rollouts_R = torch.tensor([rollout for rollout, _ in piece])
        mask_RT = index_RT >= 0
        rows = {
            name: values[rollouts_R[:, None], index_RT.clamp_min(0)] * mask_RT
            for name, values in {**tokens.values_KT, "logprobs_RT": leaf_KT}.items()
        }
        loss = grpo_loss(
            LossTerms(ratio, epsilon_high=0.3, beta=0.1, kl_correction="ratio", entropy_coef=0.05),
            **rows,
            advantages_RT=tokens.advantages_K[rollouts_R][:, None],
            weights_RT=token_weights(
                mask_RT,
                rollouts_R=rollouts_R,
                shares_K=torch.from_numpy(shares_K),
                counts_K=counts_K,
            ).double(),
            rollouts_R=rollouts_R,
        ).loss
        loss.backward()
        total += float(loss.detach())
    assert leaf_KT.grad is not None
    return total, leaf_KT.grad


def whole(tokens: Tokens) -> list[list[Row]]:
    """Every rollout one row, all rows together."""
    return [[(rollout, list(range(n))) for rollout, n in enumerate(tokens.lengths)]]


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Tokens, list[list[Row]]]:
    """Rollouts cut into rows with unscored tokens between, shuffled, padded, in pieces."""
    tokens = Tokens(draw(st.integers(0, 10_000)))
    rows: list[Row] = []
    for rollout, length in enumerate(tokens.lengths):
        cuts = sorted(draw(st.sets(st.integers(1, LONGEST), max_size=3)) | {0, LONGEST})
        for start, stop in pairwise(cuts):
            places = []
            for place in range(start, min(stop, length)):
                places += [-1] * draw(st.integers(0, 2)) + [place]
            rows.append((rollout, places + [-1] * draw(st.integers(0, 3))))
    rows = draw(st.permutations(rows))
    owner = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    return tokens, [
        piece
        for number in range(3)
        if (piece := [row for row, place in zip(rows, owner, strict=True) if place == number])
    ]


def in_whole_rollouts(pieces: list[list[Row]]) -> list[list[Row]]:
    rows = [row for piece in pieces for row in piece]
    places = iter(range(len(rows)))
    merged = keep_rollouts_whole(
        [[next(places) for _ in piece] for piece in pieces], [(rollout,) for rollout, _ in rows]
    )
    return [[rows[place] for place in piece] for piece in merged]


def assert_same(found: tuple[float, torch.Tensor], expected: tuple[float, torch.Tensor]) -> None:
    # Weights are single precision.
    assert found[0] == pytest.approx(expected[0], abs=1e-6)
    torch.testing.assert_close(found[1], expected[1], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@settings(max_examples=25, deadline=None)
@given(layout=layouts())
def test_splitting_reordering_padding_and_micro_batching_change_nothing(
    aggregation: str, ratio: str, layout: tuple[Tokens, list[list[Row]]]
) -> None:
    tokens, pieces = layout
    choices = {"aggregation": aggregation, "ratio": ratio}
    if ratio in ("sequence", "product"):
        pieces = in_whole_rollouts(pieces)
    assert_same(evaluate(tokens, pieces, **choices), evaluate(tokens, whole(tokens), **choices))


@pytest.mark.parametrize("ratio", ["token", "sequence", "weight"])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@settings(max_examples=25, deadline=None)
@given(layout=layouts(), rollout=st.integers(0, 3), copies=st.integers(2, 10))
def test_the_rows_of_a_rollout_given_again_change_nothing(
    aggregation: str,
    ratio: str,
    layout: tuple[Tokens, list[list[Row]]],
    rollout: int,
    copies: int,
) -> None:
    """Ten copies of a rollout's rows do not take ten times the gradient."""
    tokens, pieces = layout
    rows = [row for piece in pieces for row in piece]
    again = [row for row in rows if row[0] == rollout]
    choices = {"aggregation": aggregation, "ratio": ratio}
    found = evaluate(tokens, [rows + again * (copies - 1)], **choices)
    assert_same(found, evaluate(tokens, whole(tokens), **choices))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9))
def test_shares_by_their_definitions(lengths: list[int]) -> None:
    tokens_K, count = np.array(lengths), len(lengths)
    shares = {
        name: rollout_shares(name, tokens_K, max_completion_length=50) for name in AGGREGATIONS
    }
    np.testing.assert_allclose(shares["rollout"], [1 / count] * count)
    np.testing.assert_allclose(shares["token"], [n / max(1, sum(lengths)) for n in lengths])
    np.testing.assert_allclose(shares["constant"], [n / (50 * count) for n in lengths])


def test_a_rollout_of_ten_rows_weighs_as_much_as_one_of_one_row() -> None:
    mask_RT = torch.ones(11, 3).bool()
    rollouts_R = torch.tensor([0] + [1] * 10)
    weights_RT = token_weights(
        mask_RT,
        rollouts_R=rollouts_R,
        shares_K=torch.tensor([0.5, 0.5]),
        counts_K=torch.tensor([3, 30]),
    )
    assert float(weights_RT[0].sum()) == pytest.approx(0.5)
    assert float(weights_RT[1:].sum()) == pytest.approx(0.5)


def test_token_level_batches_do_not_average_into_their_union() -> None:
    """What the docstring does not promise: the union weighs the longer rollout more."""
    union = rollout_shares("token", np.array([1, 3]), max_completion_length=8)
    alone = rollout_shares("token", np.array([1]), max_completion_length=8)
    np.testing.assert_allclose(union, [0.25, 0.75])
    np.testing.assert_allclose(alone / 2, [0.5])
