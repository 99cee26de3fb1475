"""Two real processes do together what one does alone, and fail together."""

from __future__ import annotations

import os
import shutil
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from ranks import on_ranks
from single_turn import score_groups
from small_runs import begun
from tests.quick import quick

from memograd.config import LoraConfig, TrainConfig
from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.batch import Draw, sample_groups
from memograd.grpo.distributed import ALONE, World, joined_world
from memograd.grpo.experience import Experience, NotFinite
from memograd.grpo.learner import Update, learn
from memograd.grpo.loss import Objective
from memograd.grpo.trainer_state import STATE_FILE
from memograd.policy.language_model import LanguageModel
from memograd.rewards import WeightedReward
from memograd.rewards.compose import RewardError
from memograd.rollout import Group, Message, Scenario, TokenTree

SCENARIOS = [
    Scenario(f"q{n}", (Message(role="user", content="say " + "x" * n),), {"answer": "x"})
    for n in range(5)
]


def low_bytes(completions: list[str]) -> list[float]:
    return [sum(c < "@" for c in text) / max(1, len(text)) for text in completions]


# The same experience: the same gradient and the same numbers


def policy_of(model: str) -> LanguageModel:
    """The tiny model, moved away from its reference as after some training."""
    policy = LanguageModel.load(model, lora=LoraConfig(r=4), device="cpu")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    return policy


def objective_of(name: str, **changes: object) -> Objective:
    given = {"algorithm": name, "max_completion_length": 5, "max_grad_norm": 1e9, **changes}
    return Objective.from_config(TrainConfig.model_validate(given))


def experience_of(policy: LanguageModel, count: int, objective: Objective) -> Experience:
    """Answers of one to five tokens, which the tiny model by itself would not give."""
    groups, sampled = sample_groups(
        policy,
        SCENARIOS[:count],
        [4] * count,
        Draw(1, generator=torch.Generator().manual_seed(0)),
        max_completion_length=5,
    )
    lengths = iter([1, 4, 2, 5, 3, 3, 5, 1, 2, 2, 1, 4])
    cut_groups, cut_sampled = [], []
    for group, answers in zip(groups, sampled, strict=True):
        rollouts = []
        for rollout, length in zip(group.rollouts, lengths, strict=False):
            turn = rollout.turns[0]
            turn = replace(
                turn,
                action_ids=turn.action_ids[:length],
                logprobs=turn.logprobs[:length],
                versions=(),
            )
            rollouts.append(replace(rollout, turns=(turn,)))
        cut_groups.append(Group(group.scenario, tuple(rollouts)))
        actions = [rollout.turns[0].action_ids for rollout in rollouts]
        cut_sampled.append(
            replace(
                answers,
                tree=TokenTree.from_branches(answers.tree.prompt, actions),
                logprobs=tuple(rollout.turns[0].logprobs for rollout in rollouts),
            )
        )
    return score_groups(cut_groups, cut_sampled, [WeightedReward("low", low_bytes)], objective)


def learned(
    world: World, model: str, batch: Experience, objective: Objective
) -> tuple[np.ndarray, Update]:
    """The gradient that the optimiser is given, and what was measured on the way."""
    policy = policy_of(model)
    seen: list[torch.Tensor] = []

    class Spy(torch.optim.SGD):
        def step(self, closure=None):
            seen.append(torch.cat([p.grad.flatten() for p in policy.parameters()]).clone())

    update = learn(policy, Spy(policy.parameters(), lr=0.0), batch, objective, world)
    return seen[0].numpy(), update


def learned_each(world: World, model: str, cases: list) -> list[tuple[np.ndarray, Update]]:
    return [learned(world, model, batch, objective) for batch, objective in cases]


def test_two_ranks_have_the_gradient_and_the_numbers_of_one(tiny_model_folder: Path) -> None:
    """Uneven shares (three groups, one), batch and token totals, a KL in the reward, clipping."""
    model = str(tiny_model_folder)
    objectives = [
        objective_of("grpo"),
        objective_of("dapo"),
        objective_of("reinforce_pp"),
        objective_of("rloo"),
        objective_of("grpo", max_grad_norm=0.01, entropy_coef=0.01),
    ]
    policy = policy_of(model)
    cases = [(experience_of(policy, 3, objective), objective) for objective in objectives]
    cases.append((experience_of(policy, 1, objectives[0]), objectives[0]))  # nothing for rank 0
    alone = learned_each(ALONE, model, cases)
    both = on_ranks(2, learned_each, model, cases)
    for case, (gradient, update) in enumerate(alone):
        assert np.linalg.norm(gradient) > 1e-3
        for ranks in both:
            shared_gradient, shared = ranks[case]
            np.testing.assert_allclose(shared_gradient, gradient, atol=1e-5, rtol=1e-5)
            np.testing.assert_array_equal(shared_gradient, both[0][case][0])
            for name in ("loss", "kl", "entropy", "clip_fraction", "grad_norm", "sampler_gap"):
                expected = pytest.approx(getattr(update, name), rel=1e-4, abs=1e-6)
                assert getattr(shared, name) == expected, name
            np.testing.assert_allclose(
                shared.advantages.advantages_K, update.advantages.advantages_K, atol=1e-5
            )


# Whole runs


class Noisy:
    """A reward that draws from a process-wide generator; raises in call N of rank R."""

    def __init__(self, rank: int, crash_at: tuple[int, int]) -> None:
        self.calls, self.rank, self.crash_at = 0, rank, crash_at

    def __call__(self, completions: list[str]) -> list[float]:
        import random

        self.calls += 1
        if (self.rank, self.calls) == self.crash_at:
            raise RuntimeError("the plug was pulled")
        return [share + random.random() / 10 for share in low_bytes(completions)]


def config_of(model: str, **changes: object) -> TrainConfig:
    given = {
        "model": model,
        "device": "cpu",
        "lora": {"r": 4},
        "steps": 3,
        "prompts_per_step": 3,
        "num_generations": 4,
        "max_completion_length": 4,
        "learning_rate": 1e-2,
        "save_steps": 2,
        **changes,
    }
    return TrainConfig.model_validate(given)


def run(
    world: World,
    folder: Path,
    config: TrainConfig,
    crash_at: tuple[int, int] = (0, 0),
    signal_on_rank: int | None = None,
) -> list[np.ndarray]:
    """Train in `folder`, or go on with the run in it; returns the weights."""
    start = begun(folder, config, world)
    policy = start.policy
    if signal_on_rank == world.rank:
        policy.sample = partial(_signalled, policy.sample)  # type: ignore[method-assign]
    rewards = [WeightedReward("noisy", Noisy(world.rank, crash_at))]
    start.trainer(SCENARIOS, rewards).train()
    return [parameter.detach().cpu().numpy() for parameter in policy.parameters()]


def _signalled(sample, *arguments, **options):
    os.kill(os.getpid(), signal.SIGTERM)
    return sample(*arguments, **options)


def rows(folder: Path) -> list[dict]:
    found = RunFolder.open(folder).read_metrics()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]


def check_equal_runs(folder: Path, whole: Path) -> None:
    assert rows(folder) == rows(whole)
    name = "final/adapter_model.safetensors"
    assert (folder / name).read_bytes() == (whole / name).read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny_model_folder: Path) -> Path:
    """The run of two processes that never stopped."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    weights = on_ranks(2, run, folder, config_of(str(tiny_model_folder)))
    for zero, one in zip(*weights, strict=True):
        np.testing.assert_array_equal(zero, one)
    return folder


def test_a_run_of_two_processes_is_written_down_once_and_whole(whole: Path) -> None:
    assert [row["step"] for row in rows(whole)] == [1, 2, 3]
    assert {path.name for path in whole.iterdir()} >= {"checkpoint-2", "final", "data.json"}
    records = (whole / "rollouts" / "step-0001.jsonl").read_text().splitlines()
    assert len(records) == 3  # one group came from rank 0, two from rank 1
    text = (whole / "rollouts" / "step-0001.txt").read_text()
    groups = [line for line in text.splitlines() if line.startswith("===")]
    assert len(set(groups)) == 3


@pytest.mark.slow
def test_a_reward_that_raises_on_one_rank_stops_all_and_the_run_goes_on_to_the_bit(
    whole: Path, tmp_path: Path, tiny_model_folder: Path
) -> None:
    folder, config = tmp_path / "cut", config_of(str(tiny_model_folder))
    began = time.monotonic()
    errors = on_ranks(2, run, folder, config, (1, 3))
    assert time.monotonic() - began < 60  # not one that waited for the other's timeout
    for error in errors:
        assert error.kind == "RewardError"
        assert "Reward noisy raised RuntimeError: the plug was pulled" in error.message
        assert str(folder / "failures" / "step-0003.txt") in error.message
    assert (folder / "failures" / "step-0003.txt").is_file()
    on_ranks(2, run, folder, config)
    check_equal_runs(folder, whole)


def test_a_signal_to_one_rank_stops_all_after_the_step_and_the_run_goes_on(
    whole: Path, tmp_path: Path, tiny_model_folder: Path
) -> None:
    folder, config = tmp_path / "cut", config_of(str(tiny_model_folder))
    for error in on_ranks(2, run, folder, config, (0, 0), 1):
        assert error.kind == "Stopped"
        assert "stopped by a signal after step 1 of 3" in error.message
        assert error.fields["exit_code"] == 128 + signal.SIGTERM
    on_ranks(2, run, folder, config)
    check_equal_runs(folder, whole)


@pytest.mark.parametrize("size", quick([1, 3], (0,)))
def test_another_number_of_processes_goes_on(
    whole: Path, tmp_path: Path, tiny_model_folder: Path, size: int
) -> None:
    """From the weights and the optimiser of two, each process with a random state of its own."""
    folder, config = tmp_path / "other", config_of(str(tiny_model_folder))
    shutil.copytree(whole, folder)
    shutil.rmtree(folder / "final")
    weights = on_ranks(size, run, folder, config)
    for rank in weights[1:]:
        for ours, theirs in zip(rank, weights[0], strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert rows(folder)[:2] == rows(whole)[:2]
    assert rows(folder)[2]["step"] == 3
    state = torch.load(folder / "final" / STATE_FILE, weights_only=True)
    assert len(state["ranks"]) == size
    drawn = [tuple(rank["random"]["torch"].tolist()) for rank in state["ranks"]]
    assert len(set(drawn)) == size
    again = tmp_path / "again"
    shutil.copytree(whole, again)
    shutil.rmtree(again / "final")
    on_ranks(size, run, again, config)
    assert rows(again) == rows(folder)  # how it goes on depends on the number alone


@pytest.mark.slow
def test_dynamic_sampling_goes_on_for_as_many_rounds_on_both(
    tmp_path: Path, tiny_model_folder: Path
) -> None:
    """Rounds that replace one group leave one of the ranks without a scenario."""
    config = config_of(
        str(tiny_model_folder), algorithm="dapo", resample_rounds=3, max_completion_length=1
    )
    weights = on_ranks(2, run_with_few_rewards, tmp_path / "run", config)
    for zero, one in zip(*weights, strict=True):
        np.testing.assert_array_equal(zero, one)
    assert any(row["groups_drawn"] not in (3, 6, 9, 12) for row in rows(tmp_path / "run"))


def run_with_few_rewards(world: World, folder: Path, config: TrainConfig) -> list[np.ndarray]:
    """Whole groups often earn the same."""

    def few(completions: list[str]) -> list[float]:
        return [float(text < "5") for text in completions]

    start = begun(folder, config, world)
    start.trainer(SCENARIOS, [WeightedReward("few", few)]).train()
    return [parameter.detach().numpy() for parameter in start.policy.parameters()]


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two CUDA devices")
def test_a_run_of_two_gpus(tmp_path: Path, tiny_model_folder: Path) -> None:
    config = config_of(str(tiny_model_folder), device="cuda")
    weights = on_ranks(2, run, tmp_path / "run", config, device="cuda")
    for zero, one in zip(*weights, strict=True):
        np.testing.assert_array_equal(zero, one)
    assert [row["step"] for row in rows(tmp_path / "run")] == [1, 2, 3]


# What ranks tell each other


def exchange(world: World) -> list:
    return [
        world.together(lambda: world.rank * 10),
        world.led(lambda: "from 0"),
        list(world.share(5)),
        world.sum(np.array([world.rank + 1.0, 2.0])).tolist(),
        world.seed(7),
    ]


def test_what_is_exchanged() -> None:
    """Three processes, so that sums and shares are not those of a pair by chance."""
    zero, one, two = on_ranks(3, exchange)
    for rank in (zero, one, two):
        assert rank[0] == [0, 10, 20] and rank[1] == "from 0" and rank[3] == [6.0, 6.0]
    assert zero[2] + one[2] + two[2] == [0, 1, 2, 3, 4]
    assert zero[4] == 7 and len({zero[4], one[4], two[4]}) == 3


FAILURES = {
    "BadInput": lambda: BadInput("no such file"),
    "RewardError": lambda: RewardError("bad", "rollout 3"),
    "NotFinite": lambda: NotFinite("the loss", [1]),  # has a constructor that cannot travel
    "KeyError": lambda: KeyError("lost"),
}


def fail_on_rank_1(world: World, name: str) -> None:
    def work() -> None:
        if world.rank == 1:
            raise FAILURES[name]()

    world.together(work)


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("BadInput", "BadInput", "no such file"),
        ("RewardError", "RewardError", "bad"),
        ("NotFinite", "MemogradError", "the loss is not a finite number"),
        ("KeyError", "MemogradError", "process 1 failed with KeyError: 'lost'"),
    ],
)
def test_a_failure_on_one_rank_is_the_failure_of_all(name: str, kind: str, sentence: str) -> None:
    """As it was where it happened; elsewhere too, or at least its sentence."""
    zero, one = on_ranks(2, fail_on_rank_1, name)
    original = FAILURES[name]()
    assert (one.kind, one.message) == (name, str(original))
    assert (zero.kind, zero.message) == (kind, sentence)
    if name == kind:
        assert zero.fields == one.fields


def die_on_rank_1(world: World) -> None:
    if world.rank == 1:
        os._exit(9)
    world.together(lambda: None)


def test_a_rank_that_dies_is_not_waited_for() -> None:
    zero, _ = on_ranks(2, die_on_rank_1)
    assert zero.kind == "MemogradError" and "of the 2 processes died" in zero.message


def compare_weights(world: World, off: float) -> None:
    parameter = torch.nn.Parameter(torch.full((3,), 1.0 + off * world.rank))
    world.check_equal_weights([parameter])


def test_weights_that_differ_are_refused() -> None:
    assert on_ranks(2, compare_weights, 0.0) == [None, None]
    for error in on_ranks(2, compare_weights, 1e-7):
        assert "the weights of process 1 are not those of process 0" in error.message


@pytest.mark.parametrize("count", range(8))
@pytest.mark.parametrize("size", range(1, 5))
def test_shares_are_everything_once_and_even_to_one(count: int, size: int) -> None:
    shares = [World(rank, size).share(count) for rank in range(size)]
    assert [place for share in shares for place in share] == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"WORLD_SIZE": "2", "RANK": "0"}, "LOCAL_RANK, MASTER_ADDR, MASTER_PORT is not"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE is 'two', not a number"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE is '0', not a number"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused(monkeypatch, variables, sentence) -> None:
    for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadInput, match=sentence), joined_world("cpu"):
        pass
