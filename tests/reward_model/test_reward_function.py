"""A reward model in a reward specification: by folder, by URL, with its length taken out."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
from served import Lengths, serving

from memograd.errors import BadInput, MemogradError
from memograd.reward_model.api import Item
from memograd.reward_model.length import LengthControl
from memograd.reward_model.model import RewardModel
from memograd.reward_model.reward import reward_of
from memograd.reward_model.server import make_app
from memograd.rewards import RewardError, WeightedReward, compute_rewards, with_absolute_files
from memograd.tasks.base.recipe import parse_rewards
from memograd.tasks.registry import train
from memograd.tasks.text.settings import TextTrainConfig

CHAT = ({"role": "user", "content": "where is the bus?"},)


def computed(rewards: list[WeightedReward], *answers: str) -> list[float]:
    return compute_rewards(
        rewards,
        rollout_ids=[f"r{n}" for n in range(len(answers))],
        prompts=[CHAT] * len(answers),
        completions=answers,
        columns={},
    ).total


def test_by_folder(polite_run) -> None:
    expected = RewardModel.open(polite_run, device="cpu").score(
        [Item(CHAT, "gladly"), Item(CHAT, "go away")]
    )
    rewards = parse_rewards(f'reward_model(path="{polite_run}", device=cpu):0.5')
    assert computed(rewards, "gladly", "go away") == pytest.approx(
        [score / 2 for score in expected], abs=1e-4
    )
    assert expected[0] > expected[1] + 1


def test_beside_other_rewards(polite_run) -> None:
    rewards = parse_rewards(f'exact_match,reward_model(path="{polite_run}", device=cpu):0.1')
    assert [(reward.name, reward.weight) for reward in rewards] == [
        ("exact_match", 1.0),
        ("reward_model", 0.1),
    ]


def test_by_url() -> None:
    with serving(make_app(Lengths(), name="l")) as url:
        [reward] = parse_rewards(f'reward_model(url="{url}", retries=0, timeout=60):2')
        assert computed([reward], "four", "sixsix") == [8.0, 12.0]
        controlled = parse_rewards(f'reward_model(url="{url}", length_control=True)')
        assert computed(controlled, "four", "sixsix") == [2.0, 3.0]


def test_length_is_taken_out(polite_run) -> None:
    slope = LengthControl.of(next(polite_run.glob("final"))).slope
    plain, controlled, own = (
        computed(
            parse_rewards(f'reward_model(path="{polite_run}", device=cpu{more})'), "gladly", "no"
        )
        for more in ("", ", length_control=True", ", length_slope=0.25")
    )
    assert controlled == pytest.approx([plain[0] - 6 * slope, plain[1] - 2 * slope], abs=1e-4)
    assert own == pytest.approx([plain[0] - 1.5, plain[1] - 0.5], abs=1e-4)


def test_a_failure_names_the_rollouts() -> None:
    with serving(make_app(Lengths(), name="l")) as url:
        rewards = parse_rewards(f'reward_model(url="{url}", retries=0)')
        with pytest.raises(RewardError, match=r"reward_model raised .*broken.*rollouts r0, r1"):
            computed(rewards, "fine", "broken")
    with pytest.raises(RewardError, match=r"did not answer /score-batch .*rollouts r0"):
        computed(rewards, "fine")


def test_a_score_that_is_no_number_names_its_rollout() -> None:
    class Broken(Lengths):
        def score(self, items):
            return [1.0, math.nan]

    reward = WeightedReward("reward_model", reward_of(Broken, lambda: 0.0))
    with pytest.raises(RewardError, match="rollout r1") as error:
        computed([reward], "a", "b")
    assert error.value.rollout_id == "r1"


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ("", "needs either path"),
        ('path="a", url="http://b"', "needs either path"),
        ('path="/gone/away"', "There is no reward model /gone/away"),
        ('path="gone-away"', "There is no reward model gone-away"),
        ('path="/gone", paths=1', "has no setting paths"),
        ("path=3", "path of reward .* must be str"),
        ('path="/gone", length_control=1', "length_control of reward .* must be bool"),
        ('url="ftp://b"', "must begin with http"),
        ('url="http://b", timeout=0', "timeout of reward .* is out of range"),
        ('url="http://b", retries=-1', "retries of reward .* is out of range"),
        ('url="http://b", retries=True', "retries of reward .* must be int"),
        ('path="x", length_control=True, length_slope=1', "not both"),
    ],
)
def test_what_does_not_fit_is_one_sentence(settings, sentence) -> None:
    with pytest.raises(BadInput, match=sentence):
        parse_rewards(f"reward_model({settings})")


def test_folders_that_are_no_reward_model(tmp_path, tiny_model_folder) -> None:
    with pytest.raises(BadInput, match="holds no reward model"):
        parse_rewards(f'reward_model(path="{tmp_path}")')
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "run.json").write_text('{"task": "text"}')
    with pytest.raises(BadInput, match="a run of text, not of a reward model"):
        parse_rewards(f'reward_model(path="{tmp_path}")')
    with pytest.raises(BadInput, match="no fitted price of length"):
        parse_rewards(f'reward_model(path="{tiny_model_folder}", length_control=True)')
    (tmp_path / "run.json").write_text('{"task": "reward-model"}')
    with pytest.raises(BadInput, match="no complete checkpoint"):
        parse_rewards(f'reward_model(path="{tmp_path}")')


def test_the_price_of_length_is_the_models_own(tmp_path: Path, tiny_model_folder: Path) -> None:
    """A file that happens to lie above a saved model is not that model's."""
    model = tmp_path / "model"
    shutil.copytree(tiny_model_folder, model)
    LengthControl(0.5, 3).save(tmp_path)
    with pytest.raises(BadInput, match="no fitted price of length"):
        parse_rewards(f'reward_model(path="{model}", length_control=True)')


def test_a_server_that_is_not_there_is_found_before_the_run() -> None:
    with pytest.raises(MemogradError, match="did not answer /health"):
        parse_rewards('reward_model(url="http://127.0.0.1:9", retries=0)')


def test_paths_become_absolute(polite_run, monkeypatch) -> None:
    monkeypatch.chdir(polite_run.parent)
    spec = f'length(low=1, high=2):0.5,reward_model(path="{polite_run.name}", device=cpu):0.25'
    located = with_absolute_files(spec)
    assert str(polite_run) in located and located.startswith("length(low=1, high=2):0.5,")
    monkeypatch.chdir("/")
    assert [reward.weight for reward in parse_rewards(located)] == [0.5, 0.25]
    for other in ('reward_model(url="http://a:1/b,c"):2', 'reward_model(path="a/hub-id")'):
        assert with_absolute_files(other) == other


def test_a_policy_is_trained_by_it(polite_run, tmp_path, tiny_model_folder, monkeypatch) -> None:
    """From a relative path in the specification to the run's rollouts."""
    data = tmp_path / "prompts.jsonl"
    data.write_text("".join(json.dumps({"prompt": f"where is {n}?"}) + "\n" for n in range(4)))
    monkeypatch.chdir(polite_run.parent)
    run = train(
        TextTrainConfig(
            data=data,
            rewards=f'reward_model(path="{polite_run.name}", device=cpu, length_control=True)',
            text={"eval_fraction": 0, "string_prompts": "chat"},
            model=str(tiny_model_folder),
            device="cpu",
            steps=1,
            prompts_per_step=2,
            num_generations=3,
            max_completion_length=6,
            rollout_log_steps=1,
            out=tmp_path / "run",
        )
    )
    model = RewardModel.open(polite_run, device="cpu")
    lines = Path(run / "rollouts" / "step-0001.jsonl").read_text().splitlines()
    checked = 0
    for group in map(json.loads, lines):
        for rollout in group["rollouts"]:
            assert rollout["rewards"].keys() == {"reward_model"}
            assert math.isfinite(rollout["reward"])
            checked += 1
    assert checked == 6 and model.length_slope() != 0
    assert str(polite_run) in json.loads((run / "config.json").read_text())["rewards"]


@pytest.mark.parametrize("content", ["{", "[]", ""])
def test_a_damaged_run_is_said_to_be_one(tmp_path, content: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(BadInput, match=r"run\.json is damaged"):
        parse_rewards(f'reward_model(path="{tmp_path}")')
