"""The three estimators: their means, their signs, and what their gradients point to."""

from __future__ import annotations

import pytest
import torch

from memograd.grpo.loss import token_kl

# A policy and a reference over five tokens, and every token as often as the policy draws it.
LOGITS = torch.tensor([0.3, -0.2, 0.5, 0.0, -1.0], dtype=torch.float64)
REFERENCE = torch.tensor([0.1, 0.2, 0.3, -0.1, -0.8], dtype=torch.float64).log_softmax(0)


def mean(kl: str, logits: torch.Tensor, *, weigh_by_ratio: bool = False) -> torch.Tensor:
    """The estimate averaged over the policy's draws, as a loss sees it: draws carry no gradient."""
    logprobs = logits.log_softmax(0)
    drawn = logprobs.detach().exp()
    ratio = (logprobs - logprobs.detach()).exp() if weigh_by_ratio else 1.0
    return (drawn * ratio * token_kl(kl, logprobs, REFERENCE)).sum()


def true_kl(logits: torch.Tensor) -> torch.Tensor:
    logprobs = logits.log_softmax(0)
    return (logprobs.exp() * (logprobs - REFERENCE)).sum()


def gradient(function, logits: torch.Tensor = LOGITS) -> torch.Tensor:
    leaf = logits.clone().requires_grad_()
    (found,) = torch.autograd.grad(function(leaf), leaf)
    return found


def test_their_means_are_the_divergence() -> None:
    exact = float(true_kl(LOGITS))
    assert exact > 0.02
    assert float(mean("k1", LOGITS)) == pytest.approx(exact, rel=1e-12)
    assert float(mean("k3", LOGITS)) == pytest.approx(exact, rel=1e-12)
    assert float(mean("k2", LOGITS)) == pytest.approx(exact, rel=0.1)


def test_k3_and_k2_are_never_negative_and_all_vanish_at_the_reference() -> None:
    gaps = torch.linspace(-3, 3, 60, dtype=torch.float64)  # even, so that 0 is not among them
    zero = torch.zeros_like(gaps)
    assert (token_kl("k3", gaps, zero) > 0).all() and (token_kl("k2", gaps, zero) > 0).all()
    for kl in ("k1", "k2", "k3"):
        assert float(token_kl(kl, torch.tensor(-1.5), torch.tensor(-1.5))) == 0.0


def test_what_their_gradients_point_to() -> None:
    """k1 alone to nowhere, k2 to the divergence; the ratio puts k1 and k3 right."""
    exact = gradient(true_kl)
    torch.testing.assert_close(gradient(lambda logits: mean("k1", logits)), torch.zeros_like(exact))
    torch.testing.assert_close(gradient(lambda logits: mean("k2", logits)), exact)
    for kl in ("k1", "k3"):
        corrected = gradient(lambda logits, kl=kl: mean(kl, logits, weigh_by_ratio=True))
        torch.testing.assert_close(corrected, exact)
    assert not torch.allclose(gradient(lambda logits: mean("k3", logits)), exact, rtol=0.05)
