"""A bandit with a known optimum, solved by every preset through the code that trains models.

Two arms are pulled one after the other: the policy is a table of two distributions over six tokens.
The best answer is (4, 2); it pays 1.5, the first token alone 1.0, the second alone 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from single_turn import score_groups
from tests.quick import quick

from memograd.config import TrainConfig
from memograd.config.algorithms import ALGORITHMS
from memograd.grpo.batch import Draw, sample_groups
from memograd.grpo.learner import learn
from memograd.grpo.loss import Objective
from memograd.policy.protocol import SampledGroup
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.rewards import WeightedReward
from memograd.rollout import Scenario, TokenTree

ARMS, BEST = 6, (4, 2)


class Bandit:
    """A `Policy` without a model: `table` [2, ARMS] holds the logits of both pulls, `values_2`
    what is expected before each of them."""

    forward = "rows"
    device = torch.device("cpu")

    def __init__(self) -> None:
        self.table = torch.nn.Parameter(torch.zeros(2, ARMS))
        self.values_2 = torch.nn.Parameter(torch.zeros(2))

    def encode(self, prompt: object) -> list[int]:
        return [0]

    def sample(self, prompts, *, num_generations, temperature, max_completion_length, generator):
        logprobs = (self.table.detach() / temperature).log_softmax(-1)
        groups = []
        for prompt in prompts:
            drawn = torch.multinomial(
                logprobs.exp(), num_generations, replacement=True, generator=generator
            ).T
            answers = drawn.tolist()
            groups.append(
                SampledGroup(
                    tree=TokenTree.from_branches(prompt, answers),
                    logprobs=tuple(logprobs[[0, 1], answer].numpy() for answer in drawn),
                    texts=tuple(" ".join(map(str, answer)) for answer in answers),
                    stop_reasons=("length",) * num_generations,
                )
            )
        return groups

    token_bytes = 0.0
    has_reference = True

    def cut(self, tree: TokenTree) -> list[list[int]]:
        return [list(range(len(tree.branches)))]

    def microbatches(self, trees: Sequence[TokenTree]) -> list[list[int]]:
        return [[index] for index in range(len(trees))]

    def logprobs(self, trees, *, temperature, entropy_gradient=False) -> BranchLogprobs:
        return self._score(self.table, trees, temperature)

    def reference_logprobs(self, trees, *, temperature) -> BranchLogprobs:
        return self._score(torch.zeros(2, ARMS), trees, temperature)

    def _score(self, table, trees, temperature) -> BranchLogprobs:
        everything = (table / temperature).log_softmax(-1)
        answers = [tree.branch(row) for tree in trees for row in range(len(tree.branches))]
        index_RT = torch.tensor(answers)
        logprobs_RT = everything[torch.arange(2), index_RT]
        entropies_T = -(everything.exp() * everything).sum(-1)
        return BranchLogprobs(
            logprobs_RT,
            entropies_T.expand_as(logprobs_RT),
            torch.ones_like(index_RT).bool(),
            self.values_2.expand_as(logprobs_RT),
        )

    def parameters(self) -> list[torch.nn.Parameter]:
        return [self.table, self.values_2]


def payout(prompts, completions, **columns) -> list[float]:
    pulled = [tuple(map(int, completion.split())) for completion in completions]
    return [1.0 * (first == BEST[0]) + 0.5 * (second == BEST[1]) for first, second in pulled]


def play(steps: int, **settings: object) -> np.ndarray:
    """The probability of the best arm of each pull after training."""
    config = TrainConfig.model_validate(
        {"temperature": 1.0, "max_completion_length": 2, "overlong_share": 0.0, **settings}
    )
    policy, objective = Bandit(), Objective.from_config(config)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.2)
    generator = torch.Generator().manual_seed(0)
    for step in range(1, steps + 1):
        groups, sampled = sample_groups(
            policy,  # type: ignore[arg-type]  # no verify, no save
            [Scenario("left", ()), Scenario("right", ())],
            [8, 8],
            Draw(step, generator=generator),
            max_completion_length=2,
        )
        experience = score_groups(groups, sampled, [WeightedReward("payout", payout)], objective)
        learn(policy, optimizer, experience, objective)  # type: ignore[arg-type]
    return policy.table.detach().softmax(-1)[[0, 1], list(BEST)].numpy()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_preset_finds_the_best_arms(algorithm: str) -> None:
    found = play(60, algorithm=algorithm)
    assert found.min() > 0.8, found


@pytest.mark.parametrize("advantage", ["group_batch"])
@pytest.mark.parametrize("ratio", ["token", "sequence", "product", "weight"])
def test_choices_that_no_preset_makes_find_them_too(advantage: str, ratio: str) -> None:
    settings = {"advantage": advantage, "ratio": ratio, "num_iterations": 2, "epsilon": 0.2}
    found = play(60, **settings, importance_cap=2.0)
    assert found.min() > 0.8, found


@pytest.mark.parametrize("settings", quick([{"kl": "k2"}, {"kl": "k1", "kl_in": "reward"}], (1,)))
def test_a_kl_term_stops_it_where_it_should(settings: dict[str, str]) -> None:
    """The optimum of E[r] - beta * KL has probabilities in proportion to exp(r / beta).

    All answers have one length, so `constant` weighs reward and KL of every token alike.
    """
    beta = 1.0
    found = play(300, beta=beta, advantage="centred", aggregation="constant", **settings)
    weights = [np.exp(1.0 / beta), np.exp(0.5 / beta)]
    exact = [weight / (weight + ARMS - 1) for weight in weights]
    np.testing.assert_allclose(found, exact, atol=0.08)
