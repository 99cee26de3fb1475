"""The loss against an independent implementation and finite differences, for every choice.

That it does not change with the layout of rows is `test_aggregation.py`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest
import torch

from memograd.grpo.loss import LossTerms, grpo_loss

RATIOS = ["token", "sequence", "product", "weight"]
KLS = ["k1", "k2", "k3"]
TERMS = LossTerms(epsilon=0.2, epsilon_high=0.35, beta=0.1, entropy_coef=0.05)


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
        "advantages_RT": torch.randn((rows, longest), generator=generator, dtype=torch.float64),
        "weights_RT": mask.double() / lengths[:, None].clamp_min(1) / rows,
        "importance_RT": noise(0.4).exp() * mask,
    }


def plain_loss(batch: dict[str, torch.Tensor], ratio: str, kl: str, correction: str) -> float:
    """The formulas, token by token, in plain Python."""
    total, rows = 0.0, len(batch["advantages_RT"])
    for row in range(rows):
        length = int((batch["weights_RT"][row] > 0).sum())
        values = {name: tensor[row].tolist() for name, tensor in batch.items()}
        logs = [values["logprobs_RT"][t] - values["old_logprobs_RT"][t] for t in range(length)]
        mean = 0.0
        for t in range(length):
            advantage = values["advantages_RT"][t]
            logprob = values["logprobs_RT"][t]
            log_ratio = {
                "token": logs[t],
                "weight": logs[t],
                "sequence": sum(logs) / length,
                "product": sum(logs),
            }[ratio]
            r = math.exp(log_ratio)
            if ratio == "weight":
                value = min(r, 1.35) * advantage * logprob
            else:
                value = min(r * advantage, max(min(r, 1.35), 0.8) * advantage)
            value *= values["importance_RT"][t]
            d = logprob - values["reference_logprobs_RT"][t]
            divergence = {"k1": d, "k2": d * d / 2, "k3": math.exp(-d) - 1 + d}[kl]
            value -= 0.1 * divergence * (r if correction == "ratio" else 1)
            value += 0.05 * values["entropies_RT"][t]
            mean += value / length
        total -= mean / rows
    return total


@pytest.mark.parametrize(
    ("ratio", "kl", "correction"), list(product(RATIOS, KLS, ["off", "ratio"]))
)
def test_it_equals_the_plain_formulas(ratio: str, kl: str, correction: str) -> None:
    terms = replace(TERMS, ratio=ratio, kl=kl, kl_correction=correction)
    for seed in range(5):
        batch = random_batch(seed)
        found = grpo_loss(terms, **batch).loss
        assert float(found) == pytest.approx(plain_loss(batch, ratio, kl, correction), abs=1e-12)


@pytest.mark.parametrize("ratio", ["token", "sequence", "product"])
@pytest.mark.parametrize("kl", KLS)
def test_its_gradient_equals_finite_differences(ratio: str, kl: str) -> None:
    batch = random_batch(3)
    terms = replace(TERMS, ratio=ratio, kl=kl, kl_correction="ratio")
    assert torch.autograd.gradcheck(
        lambda logprobs: grpo_loss(terms, **{**batch, "logprobs_RT": logprobs}).loss,
        batch["logprobs_RT"].clone().requires_grad_(),
    )


@pytest.mark.parametrize("ratio", ["token", "sequence", "weight"])
def test_on_policy_the_gradient_is_the_policy_gradient(ratio: str) -> None:
    """Ratio 1, no KL, no entropy: d loss / d logprob = -advantage * weight."""
    batch = random_batch(0) | {"reference_logprobs_RT": None, "importance_RT": None}
    batch["old_logprobs_RT"] = batch["logprobs_RT"]
    batch["advantages_RT"] = batch["advantages_RT"][:, :1]  # a rollout's, for all its tokens
    leaf = batch["logprobs_RT"].clone().requires_grad_()
    parts = grpo_loss(LossTerms(ratio=ratio), **{**batch, "logprobs_RT": leaf})
    parts.loss.backward()
    torch.testing.assert_close(leaf.grad, -batch["advantages_RT"] * batch["weights_RT"])
    assert float(parts.kl) == float(parts.clip_fraction) == 0.0


def test_no_upper_bound_given_means_the_lower_one() -> None:
    batch = random_batch(1)
    same, none = replace(TERMS, epsilon_high=0.2), replace(TERMS, epsilon_high=None)
    assert float(grpo_loss(none, **batch).loss) == float(grpo_loss(same, **batch).loss)
    assert float(grpo_loss(none, **batch).loss) != float(grpo_loss(TERMS, **batch).loss)
