"""`examples/grpo_loop.py`, the page to read first, is the algorithm that the trainer runs."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from single_turn import score_groups

from memograd.grpo.batch import Draw, sample_groups
from memograd.grpo.learner import learn
from memograd.grpo.loss import Objective
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward
from memograd.rewards.user_code import load_file

PAGE = Path(__file__).resolve().parents[2] / "examples" / "grpo_loop.py"


@pytest.fixture(scope="module")
def page() -> ModuleType:
    return load_file(PAGE)


def test_it_is_one_page() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.slow
def test_a_tiny_model_learns_from_it(page, tiny_model_folder, capsys) -> None:
    asked = ["--device", "cpu", "--steps", "12", "--group", "8", "--learning_rate", "0.02"]
    _, means = page.train(settings := page.arguments(["--model", str(tiny_model_folder), *asked]))
    assert capsys.readouterr().out.count("reward") == 12
    assert np.mean(means[-4:]) > np.mean(means[:4]) + 0.03
    _, again = page.train(settings)
    assert again == means


@pytest.mark.slow
def test_smollm2_learns_to_add_from_it(page, capsys) -> None:
    """As the page's first line says, on a CPU; a few of its steps."""
    _, means = page.train(page.arguments(["--device", "cpu", "--steps", "10"]))
    assert capsys.readouterr().out.count("reward") == 10
    assert np.mean(means[-4:]) > np.mean(means[:4]) + 0.1


@pytest.mark.parametrize("passes", [1, 3])
def test_it_moves_the_weights_as_the_learner_does(page, tiny_policy, scenarios, passes) -> None:
    settings = page.arguments([f"--passes={passes}", "--beta=0.1"])

    def numbers(prompts, completions, **columns):
        return [float(index * index % 5) for index in range(len(completions))]

    groups, sampled = sample_groups(
        tiny_policy,
        scenarios[:3],
        [4] * 3,
        Draw(1, generator=torch.Generator().manual_seed(0)),
        max_completion_length=5,
    )
    objective = Objective(beta=0.1, num_iterations=passes, max_completion_length=5)
    scored = score_groups(groups, sampled, [WeightedReward("numbers", numbers)], objective)
    began = [parameter.detach().clone() for parameter in tiny_policy.parameters()]

    def moved_by(step) -> torch.Tensor:
        with torch.no_grad():
            for parameter, value in zip(tiny_policy.parameters(), began, strict=True):
                parameter.copy_(value)
        step(torch.optim.SGD(tiny_policy.parameters(), lr=0.1))
        after = [parameter.detach() for parameter in tiny_policy.parameters()]
        return torch.cat([(a - b).flatten() for a, b in zip(after, began, strict=True)])

    advantages = scored.advantages.advantages_K
    ours = moved_by(lambda sgd: page.learn(tiny_policy, sgd, sampled, advantages, settings))
    theirs = moved_by(lambda sgd: learn(tiny_policy, sgd, scored, objective))
    assert isinstance(tiny_policy, LanguageModel) and theirs.norm() > 1e-3
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-3)
