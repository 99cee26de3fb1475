"""Whole runs with a curriculum, unequal groups and replay: they resume to the bit, and they teach.

Two policies: the tiny language model, and a table of bandits, one a scenario, of which some are
paid whatever they pull, some never, and some for one arm only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from test_bandit import ARMS, BEST
from test_trainer import LOW, run, share_of_low_bytes, sometimes_alike, without_seconds
from tests.quick import quick

from memograd.config import TrainConfig
from memograd.errors import BadInput, MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.trainer import Stage, Trainer
from memograd.policy.model_policy import PublishedVersions
from memograd.policy.protocol import SampledGroup
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.rewards import WeightedReward
from memograd.rollout import Scenario, TokenTree
from memograd.rollout.types import each

CURRICULUM = {"curriculum": "pass_rate"}
SIZES = {"group_sizes": "difficulty", "max_generations": 6}
REPLAY = {"replay_groups": 2, "replay_capacity": 5, "replay_max_age": 3, "replay_max_uses": 2}
EVERYTHING = {**CURRICULUM, **SIZES, **REPLAY}


def with_schedules(config: TrainConfig, schedules: Mapping[str, object], **more) -> TrainConfig:
    given = config.model_dump(exclude_defaults=True) | {"schedules": schedules} | more
    return TrainConfig.model_validate(given)


# To the bit


@pytest.mark.parametrize(
    ("schedules", "more"),
    quick(
        [
            (REPLAY, {"num_iterations": 2}),
            (EVERYTHING, {"algorithm": "dapo", "resample_rounds": 2}),
            (EVERYTHING, {"algorithm": "reinforce_pp", "importance_cap": 2.0}),
        ],
        (2,),
    ),
    ids=["replay", "everything-dapo", "everything-reinforce_pp"],
)
def test_a_resumed_run_equals_the_one_that_never_stopped(
    tmp_path, tiny_config, scenarios, schedules, more
) -> None:
    config = with_schedules(
        tiny_config, {"pass_reward": 0.4, **schedules}, steps=6, prompts_per_step=3, **more
    )
    calls = []

    def counted(prompts, completions, **columns):
        calls.append(None)
        if len(calls) == dies_at:
            raise RuntimeError("the plug was pulled")
        return sometimes_alike(prompts, completions)

    rewards, dies_at = [WeightedReward("alike", counted)], 0
    whole, weights = run(tmp_path / "whole", config, scenarios, rewards)
    dies_at = len(calls) * 3 // 4
    calls.clear()
    with pytest.raises(MemogradError, match="plug"):
        run(tmp_path / "cut", config, scenarios, rewards)
    assert 2 < len(RunFolder.open(tmp_path / "cut").read_metrics()) < 6
    resumed, resumed_weights = run(tmp_path / "cut", config, scenarios, rewards)
    assert without_seconds(resumed) == without_seconds(whole)
    assert all(torch.equal(a, b) for a, b in zip(weights, resumed_weights, strict=True))
    # It is the schedules that were resumed: without them it is another run.
    calls.clear()
    dies_at = 0
    plain, _ = run(tmp_path / "plain", with_schedules(config, {}), scenarios, rewards)
    rewarded = [[row["reward_mean"] for row in one.read_metrics()] for one in (whole, plain)]
    assert rewarded[0] != rewarded[1]


def test_without_schedules_nothing_is_said_of_them(tmp_path, tiny_config, scenarios) -> None:
    made, _ = run(tmp_path / "run", tiny_config, scenarios)
    told = {"pass_rate_mean", "group_size_min", "groups_replayed", "replay_age_mean"}
    assert not told & set(made.read_metrics()[0])
    state = torch.load(made.path / "final" / "trainer_state.pt", weights_only=True)
    assert (state["pass_rates"], state["replay"]) == ({}, [])


@pytest.mark.slow
def test_unequal_groups_that_are_all_equal_change_no_number(
    tmp_path, tiny_config, scenarios
) -> None:
    plain, weights = run(tmp_path / "plain", tiny_config, scenarios)
    fixed = {"group_sizes": "difficulty", "min_generations": 4, "max_generations": 4}
    same, same_weights = run(tmp_path / "same", with_schedules(tiny_config, fixed), scenarios)
    for row, other in zip(without_seconds(plain), without_seconds(same), strict=True):
        assert row == {key: other[key] for key in row}
    assert all(torch.equal(a, b) for a, b in zip(weights, same_weights, strict=True))


def test_groups_of_several_sizes_are_written_down_whole(tmp_path, tiny_config, scenarios) -> None:
    """Every rollout with its own completion, reward, and an advantage against its own group."""
    config = with_schedules(
        tiny_config, {**SIZES, "pass_reward": 0.4}, prompts_per_step=4, rollout_log_steps=1
    )
    made, _ = run(tmp_path / "run", config, scenarios)
    sizes = []
    for step, row in enumerate(made.read_metrics(), start=1):
        groups = records(made.path, step)
        sizes.append([len(group["rollouts"]) for group in groups])
        assert sum(sizes[-1]) == 4 * 4
        assert (row["group_size_min"], row["group_size_max"]) == (min(sizes[-1]), max(sizes[-1]))
        tokens = 0
        for group in groups:
            completions = [rollout["completion"] for rollout in group["rollouts"]]
            rewards = np.array([rollout["reward"] for rollout in group["rollouts"]])
            np.testing.assert_allclose(rewards, share_of_low_bytes(None, completions))
            spread = rewards.std(ddof=1) + 1e-4
            found = [rollout["advantage"] for rollout in group["rollouts"]]
            np.testing.assert_allclose(found, (rewards - rewards.mean()) / spread, atol=1e-9)
            tokens += sum(sum(line["scored"]) for r in group["rollouts"] for line in r["rows"])
        assert row["tokens"] == tokens
    assert len({tuple(of_step) for of_step in sizes}) > 1


def test_replayed_groups_are_off_policy_and_do_not_count_as_sampled(
    tmp_path, tiny_config, scenarios
) -> None:
    config = with_schedules(tiny_config, REPLAY, learning_rate=5e-2, beta=0.0)
    made, _ = run(tmp_path / "run", config, scenarios)
    rows = made.read_metrics()
    assert rows[0]["groups_replayed"] == 0 and rows[0]["replay_age_mean"] is None
    assert {row["groups_replayed"] for row in rows[1:]} == {2}
    assert all(1 <= row["replay_age_mean"] <= 3 for row in rows[1:])
    # The sampler's own tokens agree with the learner; only older ones have ratios that are clipped.
    assert all(row["sampler_gap"] < 1e-4 for row in rows)
    assert rows[0]["clip_fraction"] == 0 < max(row["clip_fraction"] for row in rows)
    assert all(row["groups_drawn"] == 2 and row["tokens"] <= 2 * 4 * 4 for row in rows)


def test_a_checkpoint_of_another_version_is_refused(
    tmp_path, tiny_policy, tiny_config, scenarios
) -> None:
    made, _ = run(tmp_path / "run", tiny_config, scenarios)
    state = torch.load(made.path / "final" / "trainer_state.pt", weights_only=True)
    del state["replay"]
    torch.save(state, tmp_path / "trainer_state.pt")
    trainer = Trainer(tiny_policy, scenarios, LOW, tiny_config, Stage(made))
    with pytest.raises(BadInput, match="made by another version of memograd"):
        trainer.restore(tmp_path)


def records(folder: Path, step: int) -> list[dict]:
    lines = (folder / "rollouts" / f"step-{step:04d}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


# What they are good for


KINDS = ("easy", "hopeless", "hard")


class Bandits(PublishedVersions):
    """A `Policy` without a model: `table` [S, 2, ARMS] holds the logits of every scenario."""

    forward = "rows"
    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(self, scenarios: int) -> None:
        self.table = torch.nn.Parameter(torch.zeros(scenarios, 2, ARMS))
        self.remote = None

    def encode(self, prompt: str) -> list[int]:
        return [int(prompt)]

    def token_texts(self, ids) -> list[str]:
        return [str(token) for token in ids]

    def sample(self, prompts, *, num_generations, temperature, max_completion_length, generator):
        groups = []
        for (scenario,), count in zip(prompts, each(num_generations, len(prompts)), strict=True):
            logprobs = (self.table[scenario].detach() / temperature).log_softmax(-1)
            drawn = torch.multinomial(
                logprobs.exp(), count, replacement=True, generator=generator
            ).T
            groups.append(
                SampledGroup(
                    tree=TokenTree.from_branches([scenario], drawn.tolist()),
                    logprobs=tuple(logprobs[[0, 1], answer].numpy() for answer in drawn),
                    texts=tuple(" ".join(map(str, answer)) for answer in drawn.tolist()),
                    stop_reasons=("length",) * count,
                )
            )
        return groups

    token_bytes = 0.0
    has_reference = True

    def cut(self, tree: TokenTree) -> list[list[int]]:
        return [list(range(len(tree.branches)))]

    def microbatches(self, trees) -> list[list[int]]:
        return [list(range(len(trees)))]

    def logprobs(self, trees, *, temperature, entropy_gradient=False) -> BranchLogprobs:
        return self._score(self.table, trees, temperature)

    def reference_logprobs(self, trees, *, temperature) -> BranchLogprobs:
        return self._score(torch.zeros_like(self.table), trees, temperature)

    def _score(self, table, trees, temperature) -> BranchLogprobs:
        rows = [
            (tree.prompt[0], tree.branch(row))
            for tree in trees
            for row in range(len(tree.branches))
        ]
        scenario_R1 = torch.tensor([scenario for scenario, _ in rows])[:, None]
        index_RT = torch.tensor([answer for _, answer in rows])
        everything = (table / temperature).log_softmax(-1)
        logprobs_RT = everything[scenario_R1, torch.arange(2), index_RT]
        entropies_RT = -(everything.exp() * everything).sum(-1)[scenario_R1[:, 0]]
        return BranchLogprobs(logprobs_RT, entropies_RT, torch.ones_like(index_RT).bool())

    def verify(self, trees, *, temperature) -> None:
        return None

    def parameters(self) -> list[torch.nn.Parameter]:
        return [self.table]

    def saver(self) -> Callable[[Path], None]:
        return lambda folder: torch.save(self.table, folder / "table.pt")


def pays(completions, kind) -> list[float]:
    """The first pull of a hard one must be the best arm; one of six, that is, by chance."""
    found = {"easy": lambda said: 1.0, "hopeless": lambda said: 0.0}
    hard = lambda said: float(said.split()[0] == str(BEST[0]))  # noqa: E731
    return [found.get(one, hard)(said) for said, one in zip(completions, kind, strict=True)]


def play(
    folder: Path, schedules: Mapping[str, object], steps: int, **changes
) -> tuple[Path, float]:
    """The run folder, and the probability of the best arm over hard scenarios after training."""
    scenarios = [
        Scenario(f"{KINDS[n % 3]}-{n}", (), {"kind": KINDS[n % 3]}, text=str(n)) for n in range(12)
    ]
    config = TrainConfig.model_validate(
        {
            "steps": steps,
            "prompts_per_step": 4,
            "temperature": 1.0,
            "max_completion_length": 2,
            "learning_rate": 0.1,
            "warmup_steps": 0,
            "max_grad_norm": 1e9,
            "beta": 0.0,
            "rollout_log_steps": 1,
            "save_steps": 1000,
            "schedules": schedules,
            **changes,
        }
    )
    policy = Bandits(len(scenarios))
    made = RunFolder.create(folder, config.model_dump_json())
    Trainer(policy, scenarios, [WeightedReward("pays", pays)], config, Stage(made)).train()  # type: ignore[arg-type]
    chances = policy.table.detach().softmax(-1)[2::3, 0, BEST[0]]
    return made.path, float(chances.mean())


def rollouts_by_kind(folder: Path, steps: range) -> tuple[Counter[str], Counter[str]]:
    """How many groups and how many rollouts each kind of scenario had."""
    groups: Counter[str] = Counter()
    rollouts: Counter[str] = Counter()
    for step in steps:
        for record in records(folder, step):
            kind = record["id"].split("-")[0]
            groups[kind] += 1
            rollouts[kind] += len(record["rollouts"])
    return groups, rollouts


@pytest.mark.parametrize(
    ("schedules", "algorithm"),
    [
        (CURRICULUM, "grpo"),
        ({"group_sizes": "difficulty"}, "grpo"),
        ({"replay_groups": 2}, "grpo"),
        *(({**EVERYTHING, "max_generations": 16}, name) for name in ("dapo", "rloo", "gspo")),
        ({**EVERYTHING, "max_generations": 16}, "reinforce_pp"),
    ],
)
def test_the_bandits_are_solved(tmp_path, schedules, algorithm) -> None:
    more = {"algorithm": algorithm, "overlong_share": 0.0, "rollout_log_steps": 1000}
    _, chance = play(tmp_path / "run", schedules, 60, **more)
    assert chance > 0.8


@pytest.mark.slow
def test_a_curriculum_asks_what_can_be_learned(tmp_path) -> None:
    """Of three kinds each would have a third of the groups."""
    folder, chance = play(tmp_path / "run", CURRICULUM, 40)
    after_all_were_asked = range(4, 41)
    groups, _ = rollouts_by_kind(folder, after_all_were_asked)
    share = groups["hard"] / groups.total()
    assert share > 0.45
    assert groups["easy"] > 0 and groups["hopeless"] > 0
    _, uniform = play(tmp_path / "plain", {}, 40)
    assert chance > uniform


def test_unequal_groups_are_largest_where_something_can_be_learned(tmp_path) -> None:
    folder, _ = play(tmp_path / "run", {"group_sizes": "difficulty"}, 20)
    groups, rollouts = rollouts_by_kind(folder, range(4, 21))
    assert rollouts.total() == 17 * 4 * 8
    size = {kind: rollouts[kind] / groups[kind] for kind in KINDS}
    assert size["hard"] > 9 and max(size["easy"], size["hopeless"]) < 8
