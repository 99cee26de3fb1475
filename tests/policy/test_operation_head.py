"""The operation head: numpy equals torch, masks hold, the order of items does not matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.memory.manager.trained.files import TrainedHead
from memograd.memory.manager.trained.network import Batch, Shape, logits_BA, probabilities_BA
from memograd.memory.manager.trained.observation import (
    ACTIONS,
    FACT_FEATURES,
    PAIR_FEATURES,
    SLOTS,
    Observation,
)
from memograd.tasks.memory_ops.learning.head import OperationHead

SHAPE = Shape(dimension=16, width=24, layers=2, heads=4)


def observation(rng: np.random.Generator, items: int, *, retracts: bool = False) -> Observation:
    allowed = np.zeros(ACTIONS, bool)
    allowed[1], allowed[0] = True, not retracts
    allowed[2 : 2 + items] = not retracts
    allowed[2 + SLOTS : 2 + SLOTS + items] = True
    vectors = np.zeros((SLOTS, SHAPE.dimension), np.float32)
    pairs = np.zeros((SLOTS, len(PAIR_FEATURES)), np.float32)
    vectors[:items] = rng.normal(size=(items, SHAPE.dimension))
    pairs[:items] = rng.normal(size=(items, len(PAIR_FEATURES)))
    return Observation(
        rng.normal(size=SHAPE.dimension).astype(np.float32),
        rng.normal(size=len(FACT_FEATURES)).astype(np.float32),
        vectors,
        pairs,
        allowed,
    )


def random_head(seed: int) -> OperationHead:
    head = OperationHead(SHAPE, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in head.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) / 3)
    return head


def both(head: OperationHead, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    with torch.no_grad():
        by_torch = head(batch)[0].numpy()
    trained = head.trained("some", {})
    return by_torch, logits_BA(trained.weights, trained.shape, batch)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 999),
    counts=st.lists(st.integers(0, SLOTS), min_size=1, max_size=5),
    retracts=st.booleans(),
)
def test_numpy_equals_torch(seed: int, counts: list[int], retracts: bool) -> None:
    rng = np.random.default_rng(seed)
    batch = Batch.of([observation(rng, count, retracts=retracts) for count in counts])
    head = random_head(seed)
    head.fit_scales(batch)
    by_torch, by_numpy = both(head, batch)
    assert np.array_equal(np.isinf(by_torch), ~batch.allowed_BA)
    assert np.array_equal(np.isinf(by_numpy), ~batch.allowed_BA)
    allowed = batch.allowed_BA
    assert np.allclose(by_torch[allowed], by_numpy[allowed], rtol=1e-4, atol=1e-4)
    probabilities = probabilities_BA(by_numpy)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert not probabilities[~allowed].any()


def test_the_order_of_items_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    one = observation(rng, 5)
    turned = np.roll(np.arange(SLOTS), 0)
    turned[:5] = [3, 0, 4, 1, 2]
    other = Observation(
        one.fact_D, one.fact_F, one.items_KD[turned], one.pairs_KP[turned], one.allowed_A
    )
    head = random_head(1)
    first, second = both(head, Batch.of([one, other]))[0]
    moved = [0, 1, *(2 + turned), *(2 + SLOTS + turned)]
    assert np.allclose(first[moved][one.allowed_A], second[one.allowed_A], atol=1e-5)


def test_absent_items_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    one = observation(rng, 3)
    noisy = Observation(
        one.fact_D, one.fact_F, one.items_KD.copy(), one.pairs_KP.copy(), one.allowed_A
    )
    noisy.items_KD[3:] = 7.0
    noisy.pairs_KP[3:] = -7.0
    first, second = both(random_head(2), Batch.of([one, noisy]))[0]
    assert np.allclose(first[one.allowed_A], second[one.allowed_A], atol=1e-5)


def test_a_fresh_head_finds_all_operations_equally_likely() -> None:
    rng = np.random.default_rng(0)
    batch = Batch.of([observation(rng, count) for count in (1, 4, SLOTS)])
    for by in both(OperationHead(SHAPE), batch):
        chances = probabilities_BA(by)
        kinds = np.split(chances, [1, 2, 2 + SLOTS], axis=1)
        assert np.allclose([kind.sum(axis=1) for kind in kinds], 0.25, atol=1e-6)


def test_what_is_not_allowed_never_has_a_gradient() -> None:
    rng = np.random.default_rng(0)
    batch = Batch.of([observation(rng, 0), observation(rng, 2, retracts=True)])
    head = random_head(3)
    logits, values = head(batch)
    torch.log_softmax(logits, dim=1)[:, 1].sum().backward()
    assert all(
        weight.grad is None or torch.isfinite(weight.grad).all() for weight in head.parameters()
    )
    assert values.shape == (2,)


def test_a_trained_head_goes_on_from_where_it_stopped() -> None:
    rng = np.random.default_rng(0)
    batch = Batch.of([observation(rng, 4)])
    head = random_head(4)
    head.fit_scales(batch)
    again = OperationHead.from_trained(head.trained("some", {}))
    with torch.no_grad():
        assert torch.equal(again(batch)[0], head(batch)[0])


def test_the_version_names_the_weights() -> None:
    first, second = (random_head(seed).trained("some", {}) for seed in (1, 2))
    same = TrainedHead(dict(first.weights), first.shape, "other", {"step": 1})
    assert first.version == same.version != second.version


def test_seed_decides_the_first_weights_and_nothing_else() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    first, second = OperationHead(SHAPE, seed=5), OperationHead(SHAPE, seed=5)
    assert torch.equal(torch.rand(1), expected)
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    assert not torch.equal(first.fact.weight, OperationHead(SHAPE, seed=6).fact.weight)


@pytest.mark.parametrize("items", [0, 1, SLOTS])
def test_any_number_of_items(items: int) -> None:
    batch = Batch.of([observation(np.random.default_rng(items), items)])
    by_torch, by_numpy = both(random_head(6), batch)
    assert np.isfinite(by_torch).sum() == np.isfinite(by_numpy).sum() == 2 + 2 * items
