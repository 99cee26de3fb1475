"""An objective says what the settings say."""

from __future__ import annotations

import pytest

from memograd.config import TrainConfig
from memograd.config.algorithms import ALGORITHMS
from memograd.grpo.objective import Objective


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
