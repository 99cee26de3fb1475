"""What was drawn is what is trained on, on any number of ranks, and dull groups are replaced."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from small_runs import begun
from test_experience import facts, made_up

from memograd.config import TrainConfig
from memograd.errors import MemogradError
from memograd.grpo import RunFolder
from memograd.grpo.batch import Draw
from memograd.grpo.drawing import Attempts, Episodes, SingleTurn, draw_informative, join_attempts
from memograd.grpo.experience import Experience
from memograd.policy.language_model import LanguageModel
from memograd.rewards import RewardError, parse_rewards
from memograd.rewards.compose import WeightedReward
from memograd.rollout import Message, Scenario
from memograd.rollout.chat_ids import ChatIds
from memograd.rollout.episode import Limits, Step

ENVIRONMENT = parse_rewards("environment")


class Echo:
    """Two or three turns; a turn earns what share of it is below '@'. Two words change history."""

    tools = ()

    def __init__(self, scenario: Scenario) -> None:
        self._prompt, self._left = scenario.messages, 2 + len(scenario.id) % 2

    def reset(self) -> Sequence[Message]:
        return self._prompt

    def step(self, action: str) -> Step:
        self._left -= 1
        share = sum(c < "@" for c in action) / max(1, len(action))
        said = Message(role="user", content=f"more of {action[:1]}")
        return Step((said,), reward=share, done=self._left == 0)

    def finish(self) -> float | None:
        return None


class EchoTask:
    """A task of one kind of episode, `make(scenario)`."""

    def __init__(self, make: Callable[[Scenario], Echo] = Echo) -> None:
        self._make = make

    def episodes(self, scenario: Scenario, count: int) -> list[Echo]:
        return [self._make(scenario) for _ in range(count)]


@pytest.fixture(autouse=True)
def every_token_ends_an_action(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random byte model hardly ever ends a turn by itself."""
    monkeypatch.setattr(LanguageModel, "end_ids", property(lambda self: frozenset(range(60, 258))))


@pytest.fixture
def scenarios() -> list[Scenario]:
    said = (Message(role="user", content="say"),)
    return [Scenario(id="q" * number, messages=said) for number in range(1, 6)]


def drawing(policy: LanguageModel, config: TrainConfig, task: EchoTask) -> Episodes:
    chat = ChatIds(policy.tokenizer, end_ids=frozenset({policy.tokenizer.eos_token_id}))
    return Episodes(
        policy,
        chat,
        task,
        limits=Limits(max_turns=3),
        num_generations=config.num_generations,
        max_completion_length=config.max_completion_length,
    )


def run(folder, config, scenarios, *, rewards=ENVIRONMENT, task=None, **heard):
    """Train in the folder, or go on with the run in it."""
    start = begun(folder, config)
    episodes = drawing(start.policy, config, task or EchoTask())
    start.trainer(scenarios, rewards, drawing=episodes, **heard).train()
    return start.run, [p.detach().clone() for p in start.policy.parameters()]


def attempts(policy: LanguageModel, config: TrainConfig, scenarios) -> Attempts:
    return drawing(policy, config, EchoTask())(
        scenarios, Draw(1, 0.9, torch.Generator().manual_seed(1))
    )


def test_the_learner_scores_what_the_sampler_drew(tiny_policy, tiny_config, scenarios) -> None:
    """Of every token that is scored; and these are the actions, one for one."""
    drawn = attempts(tiny_policy, tiny_config, scenarios)
    rollouts = [rollout for group in drawn.groups for rollout in group.rollouts]
    assert {len(rollout.turns) for rollout in rollouts} >= {2, 3}
    scored = [[] for _ in rollouts]
    with torch.no_grad():
        for tree, numbers, old in zip(
            drawn.trees, drawn.rollouts_of_tree, drawn.old_logprobs, strict=True
        ):
            again = tiny_policy.logprobs([tree], temperature=0.9).logprobs_RT
            for row, number in enumerate(numbers):
                own = np.asarray(tree.scored[row])
                mine = again[row, : len(own)].numpy()
                assert mine[own] == pytest.approx(old[row][own], abs=1e-4)
                scored[number] += np.asarray(tree.branch(row))[own].tolist()
    for rollout, ids in zip(rollouts, scored, strict=True):
        assert ids == [token for turn in rollout.turns for token in turn.action_ids]


def test_a_group_is_of_one_scenario_and_ids_say_where(tiny_policy, tiny_config, scenarios) -> None:
    drawn = attempts(tiny_policy, tiny_config, scenarios[:2])
    names = [[rollout.id for rollout in group.rollouts] for group in drawn.groups]
    assert names[1][3] == "step 1, group 1 (qq), rollout 3"
    assert [group.scenario for group in drawn.groups] == scenarios[:2]


def test_a_run_with_the_environments_reward_only(tmp_path, tiny_config, scenarios) -> None:
    config = tiny_config.model_copy(update={"steps": 2, "rollout_log_steps": 1})
    run_folder, _ = run(tmp_path / "run", config, scenarios)
    first, second = run_folder.read_metrics()
    for row in (first, second):
        assert row["rewards"] == {"environment": pytest.approx(row["reward_mean"])}
        assert row["sampler_gap"] < 1e-4
        assert sum(row["stop_reasons"].values()) == 8
        assert row["turns_mean"] > 1.0
        assert row["observation_tokens"] > 0 or row["rows_mean"] > 1.0
    assert first["clip_fraction"] == 0.0 and first["grad_norm"] > 0.0
    records = [
        json.loads(line)
        for line in (run_folder.path / "rollouts" / "step-0002.jsonl").read_text().splitlines()
    ]
    rollouts = [rollout for record in records for rollout in record["rollouts"]]
    scored = sum(sum(row["scored"]) for rollout in rollouts for row in rollout["rows"])
    assert scored == second["tokens"]
    for rollout in rollouts:
        assert rollout["rewards"] == {"environment": rollout["reward"]}
        assert isinstance(rollout["advantage"], float)
    total = sum(rollout["reward"] for rollout in rollouts) / len(rollouts)
    assert total == pytest.approx(second["reward_mean"])


@pytest.mark.slow
def test_a_resumed_run_equals_the_one_that_never_stopped(tmp_path, tiny_config, scenarios) -> None:
    """With a temperature schedule, and groups that are drawn again."""
    changed = {
        **{"algorithm": "dapo", "resample_rounds": 2, "steps": 5, "max_completion_length": 2},
        **{"temperature_schedule": "variance", "temperature_end": 1.4, "num_generations": 2},
    }
    given = tiny_config.model_dump(exclude_unset=True)
    config = TrainConfig.model_validate({**given, **changed})
    whole, weights = run(tmp_path / "whole", config, scenarios)
    rows = whole.read_metrics()
    assert {row["groups_drawn"] for row in rows} > {2}
    assert len({row["temperature"] for row in rows}) > 1

    def stop(metrics) -> None:
        if metrics["step"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", config, scenarios, on_step=stop)
    resumed, resumed_weights = run(tmp_path / "cut", config, scenarios)
    assert _without_seconds(resumed) == _without_seconds(whole)
    assert all(torch.equal(a, b) for a, b in zip(weights, resumed_weights, strict=True))


def test_an_environment_that_raises_loses_only_its_step(tmp_path, tiny_config, scenarios) -> None:
    steps = []

    class Breaks(Echo):
        def step(self, action: str) -> Step:
            if len(steps) == 1:
                raise ZeroDivisionError("no luck")
            return super().step(action)

    with pytest.raises(
        MemogradError, match=r"step 2, group 0 \(q+\), rollout 0: `step` of Breaks.*no luck"
    ):
        run(tmp_path / "run", tiny_config, scenarios, task=EchoTask(Breaks), on_step=steps.append)
    checkpoint = RunFolder.open(tmp_path / "run").latest_checkpoint()
    assert checkpoint is not None and checkpoint.name == "checkpoint-1"


def test_a_rollout_without_a_reward_is_named(tmp_path, tiny_config, scenarios) -> None:
    class SilentIfTwo(Echo):
        def step(self, action: str) -> Step:
            step = super().step(action)
            return step if len(self._prompt) == 1 and self._left % 2 else Step(done=True)

    mixed = iter([Echo, SilentIfTwo] * 4)
    task = EchoTask(lambda scenario: next(mixed)(scenario))
    even = [scenario for scenario in scenarios if len(scenario.id) % 2]
    with pytest.raises(RewardError, match=r"gave rollout step 1, group 0 .*, rollout 1 no reward"):
        run(tmp_path / "run", tiny_config, even, task=task)
    assert (tmp_path / "run" / "failures" / "step-0001.jsonl").is_file()


def test_reward_functions_see_the_conversation(tmp_path, tiny_config, scenarios) -> None:
    seen = []

    def look(prompts, completions, environment_rewards) -> list[float]:
        seen.extend(zip(prompts, completions, environment_rewards, strict=True))
        return [0.0] * len(completions)

    rewards = [*ENVIRONMENT, WeightedReward("look", look, 0.5, reads_messages=True)]
    config = tiny_config.model_copy(update={"steps": 1, "prompts_per_step": 1})
    run_folder, _ = run(tmp_path / "run", config, scenarios, rewards=rewards)
    assert len(seen) == config.num_generations
    for prompt, completion, earned in seen:
        assert prompt == [{"role": "user", "content": "say"}]
        assert [message["role"] for message in completion][::2] == ["assistant"] * (
            (len(completion) + 1) // 2
        )
        assert earned >= 0.0
    assert {len(completion) for _, completion, _ in seen} & {3, 5}
    assert set(run_folder.read_metrics()[0]["rewards"]) == {"environment", "look"}


def _without_seconds(run_folder) -> list[dict]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in run_folder.read_metrics()]


def drawn(policy, scenarios, first: int = 0) -> Attempts:
    drawing = SingleTurn(policy, num_generations=2, max_completion_length=3)
    generator = torch.Generator().manual_seed(0)
    return drawing(scenarios, Draw(4, generator=generator, attempt=1, first=first))


def test_parts_are_numbered_and_named_through(tiny_policy, scenarios) -> None:
    whole = drawn(tiny_policy, scenarios[:3])
    joined = join_attempts(
        [drawn(tiny_policy, scenarios[:2]), drawn(tiny_policy, scenarios[2:3], first=2)]
    )
    assert joined.rollouts_of_tree == whole.rollouts_of_tree == ((0, 1), (2, 3), (4, 5))
    assert [group.scenario for group in joined.groups] == scenarios[:3]
    names = [[rollout.id for rollout in group.rollouts] for group in joined.groups]
    assert names == [[rollout.id for rollout in group.rollouts] for group in whole.groups]
    assert names[2][1] == "step 4, attempt 2, group 2 (qqq), rollout 1"
    for group, tree, old in zip(joined.groups, joined.trees, joined.old_logprobs, strict=True):
        for row, rollout in enumerate(group.rollouts):
            assert tree.branch(row) == rollout.turns[0].action_ids
            assert (old[row] == rollout.turns[0].logprobs).all()


DULL, GOOD = [1.0, 1.0], [0.0, 1.0]


class Draws:
    """Hands out prepared groups and writes down what was asked for."""

    def __init__(self, *rounds: Sequence[Sequence[float]]) -> None:
        self.experiences = [
            made_up(rewards_BG, name=f"round {index}, group ")
            for index, rewards_BG in enumerate(rounds)
        ]
        self.asked: list[tuple[int, list[int]]] = []

    def __call__(self, attempt: int, sizes: Sequence[int]) -> Experience:
        self.asked.append((attempt, list(sizes)))
        return self.experiences[attempt]


def names(experience: Experience) -> list[str]:
    return [group.scenario.id for group in experience.groups]


def test_dull_groups_are_replaced_and_others_keep_their_places() -> None:
    draws = Draws([DULL, GOOD, DULL, DULL], [DULL, GOOD, DULL], [GOOD, DULL], [GOOD])
    drawn = draw_informative(draws, sizes=[2] * 4, rounds=5, advantage="group")
    assert draws.asked == [(0, [2] * 4), (1, [2] * 3), (2, [2] * 2), (3, [2])]
    assert names(drawn.experience) == [
        "round 2, group 0",
        "round 0, group 1",
        "round 1, group 1",
        "round 3, group 0",
    ]
    assert (drawn.groups, drawn.dull) == (10, 6)
    assert drawn.experience.advantages.varied_B.all()


def test_a_group_makes_room_for_as_many_rollouts_as_it_has() -> None:
    draws = Draws([[1.0] * 3, GOOD, [0.0] * 4], [[0.0] * 5, GOOD], [[0.0, 1.0] * 2 + [0.0]])
    drawn = draw_informative(draws, sizes=[3] * 3, rounds=5, advantage="group")
    assert draws.asked == [(0, [3, 3, 3]), (1, [3, 4]), (2, [5])]
    assert drawn.experience.sizes_B == (5, 2, 2)


def test_the_rollouts_are_as_many_where_replacements_are_dull_too() -> None:
    draws = Draws([[1.0] * 4, GOOD, [0.0] * 4], [[0.0, 1.0] * 3, DULL])
    drawn = draw_informative(draws, sizes=[3, 3, 4], rounds=1, advantage="group")
    assert drawn.experience.sizes_B == (6, 2, 2)
    assert drawn.experience.advantages.varied_B.tolist() == [True, True, False]
    assert (drawn.groups, drawn.dull) == (5, 3)


@pytest.mark.parametrize("rounds", [0, 3])
def test_nothing_is_drawn_again_when_every_group_teaches(rounds: int) -> None:
    draws = Draws([GOOD, GOOD])
    drawn = draw_informative(draws, sizes=[2] * 2, rounds=rounds, advantage="group")
    assert draws.asked == [(0, [2, 2])]
    assert facts(drawn.experience) == facts(draws.experiences[0])
    assert (drawn.groups, drawn.dull) == (2, 0)


def test_after_the_last_round_the_batch_is_what_there_is() -> None:
    draws = Draws([DULL, GOOD], [DULL])
    drawn = draw_informative(draws, sizes=[2] * 2, rounds=1, advantage="group")
    assert names(drawn.experience) == ["round 0, group 0", "round 0, group 1"]
    assert drawn.experience.advantages.varied_B.tolist() == [False, True]
    assert (drawn.groups, drawn.dull) == (3, 2)
    off = draw_informative(Draws([DULL, DULL]), sizes=[2] * 2, rounds=0, advantage="group")
    assert (off.groups, off.dull) == (2, 2)
