"""The trainer trains an agent that only knows a base URL."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import torch

from memograd.config import LoraConfig, TrainConfig
from memograd.gateway.agents import AgentFailed, Running
from memograd.gateway.drawing import ServedAgent
from memograd.gateway.store import TraceStore
from memograd.grpo import RunFolder
from memograd.grpo.batch import Draw
from memograd.grpo.trainer import Stage, Trainer
from memograd.policy.language_model import LanguageModel
from memograd.rewards import parse_rewards
from memograd.rollout.types import Scenario


async def talks_twice(task, base_url, api_key) -> float:
    """Two calls that go on from each other, and one of another agent between them."""
    async with httpx.AsyncClient(verify=False, timeout=60) as client:

        async def say(agent, messages):
            headers = {"Authorization": f"Bearer {api_key}", "X-Agent-Name": agent}
            path = f"{base_url}/chat/completions"
            answer = await client.post(path, json={"messages": messages}, headers=headers)
            return answer.json()["choices"][0]["message"]["content"]

        chat = [{"role": "user", "content": task["prompt"][0]["content"]}]
        first = await say("writer", chat)
        await say("critic", [{"role": "user", "content": f"check {task['number']}"}])
        chat += [{"role": "assistant", "content": first}, {"role": "user", "content": "再来"}]
        second = await say("writer", chat)
    return sum(map(ord, first + second)) % 97 / 97


def scenarios(count: int = 3) -> list[Scenario]:
    return [
        Scenario(f"q{n}", ({"role": "user", "content": f"say {n}"},), {"number": n})
        for n in range(count)
    ]


@pytest.fixture
def policy(tiny_model_folder: Path) -> LanguageModel:
    return LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=2), device="cpu")


def served(policy, store, **given) -> ServedAgent:
    fields = {"num_generations": 3, "max_completion_length": 5, **given}
    return ServedAgent(policy, fields.pop("agent", talks_twice), store, **fields)


def draw(drawing: ServedAgent, seed: int):
    generator = torch.Generator().manual_seed(seed)
    return drawing(scenarios(), Draw(1, 0.8, generator))


def test_groups_are_the_attempts_at_their_scenarios(policy, tmp_path) -> None:
    store = TraceStore(f"sqlite:///{tmp_path}/traces.db")
    with served(policy, store, optimize_agents=["writer"]) as drawing:
        attempts = draw(drawing, seed=4)
        again = draw(drawing, seed=4)
    assert [group.scenario.id for group in attempts.groups] == ["q0", "q1", "q2"]
    for group, same in zip(attempts.groups, again.groups, strict=True):
        assert len(group.rollouts) == 3
        for rollout, other in zip(group.rollouts, same.rollouts, strict=True):
            assert [turn.starts_row for turn in rollout.turns] == [True, False]
            assert group.scenario.id in rollout.id
            ids = [turn.action_ids for turn in rollout.turns]
            assert ids == [turn.action_ids for turn in other.turns]
            assert rollout.reward == other.reward
    scored = policy.logprobs(attempts.trees, temperature=0.8)
    old = [row for rows in attempts.old_logprobs for row in rows]
    counted = [flags for tree in attempts.trees for flags in tree.scored]
    for row, (logprobs, flags) in enumerate(zip(old, counted, strict=True)):
        mine = scored.logprobs_RT[row, : len(flags)].detach()[torch.as_tensor(flags)]
        assert mine.tolist() == pytest.approx(logprobs[flags].tolist(), abs=1e-4)


@pytest.mark.slow
def test_measuring_while_a_thread_draws_ahead_changes_nothing_of_it(policy, tmp_path) -> None:
    """As with `sampler.max_staleness` and `eval_steps`; both play on one gateway."""
    store = TraceStore(f"sqlite:///{tmp_path}/traces.db")
    measures, measured = threading.Event(), threading.Event()

    async def takes_its_time(task, base_url, api_key) -> float:
        if task["number"] == 7:
            measured.set()
        else:
            measures.set()
            for _ in range(20):  # until the other plays, too, if it may
                if not measured.is_set():
                    await asyncio.sleep(0.05)
        return await talks_twice(task, base_url, api_key)

    held_out = [Scenario("held", ({"role": "user", "content": "say 7"},), {"number": 7})]
    with served(policy, store, agent=takes_its_time) as drawing, ThreadPoolExecutor() as threads:
        ahead = threads.submit(draw, drawing, 4)
        assert measures.wait(60)
        ((alone,),) = drawing.play(held_out, [["held"]], temperature=0.0, generator=None)
        attempts = ahead.result()
        again = draw(drawing, seed=4)
    assert len(alone.turns) == 3
    for group, other in zip(attempts.groups, again.groups, strict=True):
        for rollout, same in zip(group.rollouts, other.rollouts, strict=True):
            ids = [turn.action_ids for turn in rollout.turns]
            assert ids == [turn.action_ids for turn in same.turns]
    store.close()


def test_a_run_learns_from_it(policy, tiny_model_folder, tmp_path) -> None:
    store = TraceStore(f"sqlite:///{tmp_path}/traces.db")
    config = TrainConfig(
        model=str(tiny_model_folder), device="cpu", lora=LoraConfig(r=2), steps=2,
        prompts_per_step=2, num_generations=3, max_completion_length=5, save_steps=2,
        rewards="environment", learning_rate=1e-2,
    )  # fmt: skip
    before = [parameter.detach().clone() for parameter in policy.parameters()]
    with served(policy, store) as drawing:
        run = RunFolder.create(tmp_path / "run", config.model_dump_json())
        Trainer(
            policy, scenarios(), parse_rewards(config.rewards), config, Stage(run), drawing=drawing
        ).train()
    assert any(
        not torch.equal(old, new) for old, new in zip(before, policy.parameters(), strict=True)
    )
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 2
    for line in map(json.loads, lines):
        assert line["sampler_gap"] < 1e-3
        assert line["rows_mean"] == 2.0  # the writer's and the critic's
    versions = {record.policy_version for record in store.rollouts()}
    assert versions == {1, 2}


def test_an_agent_that_crashes_stops_the_run_with_its_name(policy, tmp_path) -> None:
    async def crashes(task, base_url, api_key):
        if task["number"] == 1:
            raise RuntimeError("no luck")
        return 1.0

    store = TraceStore(f"sqlite:///{tmp_path}/traces.db")
    agents = Running(retries=0)
    with (
        served(policy, store, agent=crashes, agents=agents) as drawing,
        pytest.raises(AgentFailed, match=r"step 1, group 1 \(q1\), rollout \d: .*no luck"),
    ):
        draw(drawing, seed=0)
