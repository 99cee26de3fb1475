"""The settings of a reward model: presets, what wins over them, and how runs are told apart."""

from __future__ import annotations

import pytest

from memograd.config.load import load_settings, stored_settings
from memograd.errors import BadInput
from memograd.warm_start.settings import DpoSettings, RewardModelSettings


def test_the_defaults_are_the_documented_adapter() -> None:
    settings = load_settings(RewardModelSettings, None, ["data=pairs.jsonl"])
    assert (settings.lora.r, settings.lora.alpha) == (32, 16)
    assert settings.learning_rate == 2e-4


def test_another_rank_keeps_the_alpha_of_reward_models() -> None:
    settings = load_settings(RewardModelSettings, None, ["data=pairs.jsonl", "lora.r=8"])
    assert (settings.lora.r, settings.lora.alpha) == (8, 16)


@pytest.mark.parametrize(
    "given, rate", [([], 1e-5), (["learning_rate=3e-6"], 3e-6), (["learning_rate=2e-4"], 2e-4)]
)
def test_full_tuning_learns_slower_unless_told(given, rate) -> None:
    settings = load_settings(RewardModelSettings, None, ["data=a.jsonl", "tuning=full", *given])
    assert settings.learning_rate == rate


def test_a_run_gives_its_settings_back() -> None:
    settings = RewardModelSettings(data="pairs.jsonl", tuning="full", lora={"r": 4})
    assert stored_settings(settings.run_json(), RewardModelSettings) == settings
    dpo = DpoSettings(data="pairs.jsonl")
    assert stored_settings(dpo.run_json(), DpoSettings) == dpo


@pytest.mark.parametrize(
    "given, sentence",
    [
        ([], "data= is missing"),
        (["data=a", "tuning=full", "adapter=b"], "tuning=full does not train"),
        (["data=a", "eval_fraction=0"], "eval_fraction must be a number"),
        (["data=a", "tuning=half"], "tuning must be one of lora, full"),
        (["data=a", "batch_size=8", "micro_batch_size=3"], "not a multiple"),
    ],
)
def test_what_does_not_fit_is_one_sentence(given, sentence) -> None:
    with pytest.raises(BadInput, match=sentence):
        load_settings(RewardModelSettings, None, given)
