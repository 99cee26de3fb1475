"""House contract 3, and the loss against an independent implementation and finite differences."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memograd.grpo.loss import grpo_loss, rollout_weights

SETTINGS = {"epsilon": 0.2, "beta": 0.1, "entropy_coef": 0.05}


def random_batch(seed: int, rows: int = 5, longest: int = 7) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, longest + 1, (rows,), generator=generator)
    mask = torch.arange(longest)[None] < lengths[:, None]

    def noise(scale: float) -> torch.Tensor:
        values = torch.randn((rows, longest), generator=generator, dtype=torch.float64)
        return values * scale * mask

    logprobs = noise(0.3) - 1.0 * mask
    return {
        "logprobs_RT": logprobs,
        "old_logprobs_RT": logprobs + noise(0.3),
        "reference_logprobs_RT": logprobs + noise(0.5),
        "entropies_RT": noise(1.0).abs(),
        "advantages_R": torch.randn((rows,), generator=generator, dtype=torch.float64),
        "weights_RT": rollout_weights(mask.double(), 1 / rows),
    }


def plain_loss(batch: dict[str, torch.Tensor]) -> float:
    """The formula, token by token, in plain Python."""
    total, rows = 0.0, len(batch["advantages_R"])
    for row in range(rows):
        length = int((batch["weights_RT"][row] > 0).sum())
        mean = 0.0
        for t in range(length):
            logprob = float(batch["logprobs_RT"][row, t])
            ratio = math.exp(logprob - float(batch["old_logprobs_RT"][row, t]))
            advantage = float(batch["advantages_R"][row])
            clipped = max(min(ratio, 1.2), 0.8)
            gap = float(batch["reference_logprobs_RT"][row, t]) - logprob
            value = min(ratio * advantage, clipped * advantage)
            value -= 0.1 * (math.exp(gap) - gap - 1)
            value += 0.05 * float(batch["entropies_RT"][row, t])
            mean += value / length
        total -= mean / rows
    return total


@pytest.mark.parametrize("seed", range(20))
def test_it_equals_the_plain_formula(seed: int) -> None:
    batch = random_batch(seed)
    assert float(grpo_loss(**batch, **SETTINGS).loss) == pytest.approx(plain_loss(batch), abs=1e-12)


def test_its_gradient_equals_finite_differences() -> None:
    batch = random_batch(3)
    weights = batch["weights_RT"]
    torch.autograd.gradcheck(
        lambda logprobs: grpo_loss(**{**batch, "logprobs_RT": logprobs}, **SETTINGS).loss,
        batch["logprobs_RT"].clone().requires_grad_(),
    )
    assert weights.sum(dim=1).tolist() == pytest.approx(
        [0.2 if row.any() else 0.0 for row in weights]
    )


def gradient(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    leaf = batch["logprobs_RT"].clone().requires_grad_()
    grpo_loss(**{**batch, "logprobs_RT": leaf}, **SETTINGS).loss.backward()
    assert leaf.grad is not None
    return leaf.grad


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_splitting_and_reordering_rows_change_nothing(seed: int, random) -> None:
    batch = random_batch(seed)
    whole = gradient(batch)
    order = list(range(5))
    random.shuffle(order)
    cut = random.randint(1, 4)
    for piece in (order[:cut], order[cut:]):
        part = {name: values[piece] for name, values in batch.items()}
        torch.testing.assert_close(gradient(part), whole[piece])


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_padding_and_cutting_a_rollout_into_rows_change_nothing(seed: int) -> None:
    """One rollout as two rows, one for its first three tokens and one for the rest."""
    batch = random_batch(seed)
    whole = grpo_loss(**batch, **SETTINGS).loss
    head, tail = {}, {}
    for name, values in batch.items():
        if name == "advantages_R":
            head[name] = tail[name] = values
        else:
            head[name] = torch.nn.functional.pad(values[:, :3], (0, 4))
            tail[name] = values[:, 3:]
    parts = grpo_loss(**head, **SETTINGS).loss + grpo_loss(**tail, **SETTINGS).loss
    torch.testing.assert_close(parts, whole)


def test_a_rollout_weighs_the_same_whatever_its_length() -> None:
    mask = torch.tensor([[1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]).bool()
    weights = rollout_weights(mask, 1 / 3)
    torch.testing.assert_close(weights.sum(dim=1), torch.tensor([1 / 3, 1 / 3, 0.0]))


def test_on_policy_the_gradient_is_the_policy_gradient() -> None:
    """Ratio 1, no KL, no entropy: d loss / d logprob = -advantage * weight."""
    batch = random_batch(0)
    batch |= {"old_logprobs_RT": batch["logprobs_RT"], "reference_logprobs_RT": None}
    leaf = batch["logprobs_RT"].clone().requires_grad_()
    parts = grpo_loss(**{**batch, "logprobs_RT": leaf}, epsilon=0.2, beta=0.0, entropy_coef=0.0)
    parts.loss.backward()
    torch.testing.assert_close(leaf.grad, -batch["advantages_R"][:, None] * batch["weights_RT"])
    assert float(parts.kl) == float(parts.clip_fraction) == 0.0
