"""Our loss and gradient are TRL's own on the same tensors.

TRL's trainers compute their loss in `_compute_loss`, from log-probabilities that another method of
theirs provides. Here both trainers run without a model: that method hands out random numbers, and
whatever `_compute_loss` makes of them is compared with ours.
"""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from memograd.grpo.loss import LossTerms, grpo_loss, rollout_shares, token_weights

pytestmark = pytest.mark.slow  # importing TRL's trainers takes ten seconds and more

ROWS, LONGEST = 6, 9


def numbers(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, LONGEST + 1, (ROWS,), generator=generator)
    mask = (torch.arange(LONGEST)[None] < lengths[:, None]).double()

    def noise(scale: float) -> torch.Tensor:
        drawn = torch.randn((ROWS, LONGEST), generator=generator, dtype=torch.float64)
        return drawn * scale * mask

    logprobs = noise(0.4) - mask
    return {
        "mask": mask,
        "logprobs": logprobs,
        "old": logprobs + noise(0.15),
        "reference": logprobs + noise(0.4),
        "importance": noise(0.3).exp(),
        "advantages": torch.randn(ROWS, generator=generator, dtype=torch.float64),
    }


def fake(trainer: type[Any], leaf: torch.Tensor, **attributes: Any) -> Any:
    """A trainer that was never set up: attributes that `_compute_loss` reads, and our numbers."""
    made = object.__new__(trainer)
    made.__dict__.update(
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        model=SimpleNamespace(training=False),
        max_completion_length=LONGEST,
        accelerator=SimpleNamespace(
            num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x
        ),
        _entropy_bonus_enabled=False,
        _metrics=defaultdict(lambda: defaultdict(list)),
        vllm_importance_sampling_correction=True,
        **attributes,
    )
    made._get_per_token_logps_and_entropies = lambda *args, **kwargs: (
        leaf,
        torch.zeros_like(leaf),
        None,
    )
    return made


def inputs(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    ids = torch.zeros((ROWS, LONGEST), dtype=torch.long)
    return {
        "prompt_ids": ids[:, :1],
        "prompt_mask": ids[:, :1] + 1,
        "completion_ids": ids,
        "completion_mask": batch["mask"],
        "advantages": batch["advantages"],
        "old_per_token_logps": batch["old"],
        "old_logps": batch["old"].sum(1),
        "ref_per_token_logps": batch["reference"],
        "importance_sampling_ratio": batch["importance"],
        "num_items_in_batch": batch["mask"].sum(),
    }


def ours(
    batch: dict[str, torch.Tensor],
    aggregation: str,
    terms: LossTerms,
    importance: torch.Tensor | None = None,
) -> tuple[float, Any]:
    leaf = batch["logprobs"].clone().requires_grad_()
    lengths = batch["mask"].sum(1)
    shares = rollout_shares(aggregation, lengths.numpy(), max_completion_length=LONGEST)
    loss = grpo_loss(
        terms,
        logprobs_RT=leaf,
        old_logprobs_RT=batch["old"],
        reference_logprobs_RT=batch["reference"],
        entropies_RT=torch.zeros_like(leaf),
        advantages_RT=batch["advantages"][:, None],
        weights_RT=token_weights(
            batch["mask"].bool(),
            rollouts_R=torch.arange(ROWS),
            shares_K=torch.from_numpy(shares),
            counts_K=lengths,
        ).double(),
        importance_RT=importance,
    ).loss
    loss.backward()
    return float(loss.detach()), leaf.grad


def compare(found: tuple[float, Any], theirs: torch.Tensor, leaf: torch.Tensor) -> None:
    theirs.backward()
    # Our weights are single precision.
    assert found[0] == pytest.approx(float(theirs.detach()), abs=1e-6)
    torch.testing.assert_close(found[1], leaf.grad, atol=1e-6, rtol=1e-5)
    assert float(leaf.grad.abs().max()) > 1e-3


# TRL's loss_type and importance_sampling_level, and our choices for the same.
PAIRS = {
    "grpo": (("grpo", "token", 0.2, 0.2), ("rollout", "token", 0.2, None)),
    "dr_grpo": (("dr_grpo", "token", 0.2, 0.2), ("constant", "token", 0.2, None)),
    "dapo": (("dapo", "token", 0.2, 0.28), ("token", "token", 0.2, 0.28)),
    "bnpo": (("bnpo", "token", 0.2, 0.2), ("token", "token", 0.2, None)),
    "gspo": (("grpo", "sequence", 3e-2, 4e-2), ("rollout", "sequence", 3e-2, 4e-2)),
    "cispo": (("cispo", "token", 0.2, 1.1), ("token", "weight", 0.2, 0.1)),
}


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("sampler_is_vllm", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_grpo_trainers_loss(name: str, sampler_is_vllm: bool, corrected: bool, beta: float) -> None:
    from trl import GRPOTrainer

    theirs, (aggregation, ratio, epsilon, epsilon_high) = PAIRS[name]
    for seed in range(3):
        batch = numbers(seed)
        leaf = batch["logprobs"].clone().requires_grad_()
        trainer = fake(
            GRPOTrainer,
            leaf,
            loss_type=theirs[0],
            importance_sampling_level=theirs[1],
            epsilon_low=theirs[2],
            epsilon_high=theirs[3],
            beta=beta,
            use_vllm=sampler_is_vllm,
            args=SimpleNamespace(use_bias_correction_kl=corrected, delta=None),
        )
        loss = trainer._compute_loss(trainer.model, inputs(batch))
        found = ours(
            batch,
            aggregation,
            LossTerms(
                ratio,
                epsilon,
                epsilon_high,
                beta,
                kl_correction="ratio" if corrected else "off",
            ),
            batch["importance"] if sampler_is_vllm else None,
        )
        compare(found, loss, leaf)


def test_rloo_trainers_loss() -> None:
    from trl import RLOOTrainer

    for seed in range(3):
        batch = numbers(seed)
        leaf = batch["logprobs"].clone().requires_grad_()
        trainer = fake(RLOOTrainer, leaf, epsilon_low=0.2, epsilon_high=0.2, use_vllm=False)
        loss = trainer._compute_loss(trainer.model, inputs(batch))
        compare(ours(batch, "rollout", LossTerms("product")), loss, leaf)


def test_our_importance_weights_are_trls_token_truncation() -> None:
    """`vllm_importance_sampling_mode="token_truncate"` clamps exp(old - sampler) at the cap."""
    from memograd.grpo.loss import importance_weights

    batch = numbers(0)
    theirs = torch.clamp(torch.exp(batch["old"] - batch["reference"]), max=1.3)
    found = importance_weights(batch["old"], batch["reference"], cap=1.3)
    np.testing.assert_array_equal(found.numpy(), theirs.numpy())
