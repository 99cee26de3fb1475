"""The loss against an independent implementation and finite differences, its ratios and KL by hand.

That it does not change with the layout of rows is `test_aggregation.py`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest
import torch

from memograd.config import TrainConfig
from memograd.config.algorithms import ALGORITHMS
from memograd.grpo.loss import (
    LossTerms,
    Objective,
    grpo_loss,
    importance_weights,
    surrogate,
    token_kl,
)

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


def run(
    ratio: str,
    ratios: list[list[float]],
    advantages: list[float],
    rollouts: list[int] | None = None,
):
    """The surrogate of tokens with these ratios, and its gradient by log-probability."""
    logprobs_RT = torch.tensor(ratios, dtype=torch.float64).log().requires_grad_()
    found = surrogate(
        LossTerms(ratio, epsilon=0.2, epsilon_high=0.4),
        logprobs_RT=logprobs_RT,
        old_logprobs_RT=torch.zeros_like(logprobs_RT),
        advantages_RT=torch.tensor(advantages, dtype=torch.float64)[:, None],
        mask_RT=torch.ones_like(logprobs_RT).bool(),
        rollouts_R=torch.tensor(rollouts if rollouts else range(len(ratios))),
    )
    (gradient,) = torch.autograd.grad(found.objective_RT.sum(), logprobs_RT)
    return found, gradient


def test_tokens_are_clipped_where_the_objective_would_gain_by_going_on() -> None:
    found, gradient = run("token", [[0.5, 1.3, 1.5], [0.5, 1.3, 1.5]], [2.0, -2.0])
    torch.testing.assert_close(
        found.objective_RT,
        torch.tensor([[1.0, 2.6, 2.8], [-1.6, -2.6, -3.0]], dtype=torch.float64),
    )
    assert found.clipped_RT.tolist() == [[False, False, True], [True, False, False]]
    torch.testing.assert_close(
        gradient, torch.tensor([[1.0, 2.6, 0.0], [0.0, -2.6, -3.0]], dtype=torch.float64)
    )


def test_a_sequence_has_one_ratio_and_is_clipped_as_one() -> None:
    found, gradient = run("sequence", [[0.5, 2.0, 1.0], [2.0, 2.0, 2.0]], [1.0, 1.0])
    torch.testing.assert_close(
        found.ratio_RT, torch.tensor([[1.0] * 3, [2.0] * 3], dtype=torch.float64)
    )
    assert found.clipped_RT.tolist() == [[False] * 3, [True] * 3]
    # Three tokens share each of the three equal terms.
    torch.testing.assert_close(gradient, torch.tensor([[1.0] * 3, [0.0] * 3], dtype=torch.float64))


def test_a_product_is_the_ratio_of_the_whole_answer() -> None:
    found, gradient = run("product", [[0.9, 1.1, 1.2]], [1.0])
    whole = 0.9 * 1.1 * 1.2
    assert found.ratio_RT[0].tolist() == pytest.approx([whole] * 3)
    assert gradient[0].tolist() == pytest.approx([3 * whole] * 3)


@pytest.mark.parametrize("ratio", ["sequence", "product"])
def test_rows_of_one_rollout_share_its_ratio(ratio: str) -> None:
    whole, _ = run(ratio, [[0.9, 1.1, 1.2, 0.7]], [1.0])
    split, _ = run(ratio, [[1.2, 0.7], [5.0, 5.0], [0.9, 1.1]], [1.0] * 3, rollouts=[7, 2, 7])
    assert split.ratio_RT[[0, 2]].flatten().tolist() == pytest.approx(whole.ratio_RT[0].tolist())


def test_a_weight_keeps_every_gradient_and_bounds_it() -> None:
    found, gradient = run("weight", [[0.1, 1.0, 3.0]], [2.0])
    torch.testing.assert_close(gradient, torch.tensor([[0.2, 2.0, 2.8]], dtype=torch.float64))
    assert found.clipped_RT.tolist() == [[False, False, True]]


@pytest.mark.parametrize("ratio", ["token", "sequence", "weight"])
def test_on_policy_all_have_the_policy_gradient(ratio: str) -> None:
    _, gradient = run(ratio, [[1.0] * 4, [1.0] * 4], [0.5, -1.5])
    torch.testing.assert_close(gradient, torch.tensor([[0.5] * 4, [-1.5] * 4], dtype=torch.float64))


def test_importance_weights_are_capped_and_carry_no_gradient() -> None:
    old = torch.tensor([[-1.0, -1.0, -1.0]], requires_grad=True)
    sampler = torch.tensor([[-1.0, -3.0, -0.5]])
    weights = importance_weights(old, sampler, cap=2.0)
    assert weights.tolist()[0] == pytest.approx([1.0, 2.0, math.exp(-0.5)])
    assert not weights.requires_grad


@pytest.mark.parametrize("name", ALGORITHMS)
def test_it_takes_over_every_choice(name: str) -> None:
    config = TrainConfig.model_validate({"algorithm": name, "entropy_coef": 0.01, "temperature": 2})
    objective = Objective.from_config(config)
    chosen = {key: value for key, value in ALGORITHMS[name].items() if key != "resample_rounds"}
    assert {key: getattr(objective, key) for key in chosen} == chosen
    assert (objective.entropy_coef, objective.temperature) == (0.01, 2.0)


def test_the_kl_counts_in_one_place_only() -> None:
    in_loss, in_reward = Objective(beta=0.3), Objective(beta=0.3, kl="k1", kl_in="reward")
    assert (in_loss.terms.beta, in_loss.reward_beta) == (0.3, 0.0)
    assert (in_reward.terms.beta, in_reward.reward_beta) == (0.0, 0.3)


def test_which_groups_can_be_left_out() -> None:
    assert not Objective().needs_every_group
    assert Objective(beta=0.1).needs_every_group
    assert Objective(beta=0.1, kl_in="reward").needs_every_group
    assert Objective(entropy_coef=0.1).needs_every_group
