"""An agent of the user's own, whose calls sampling servers draw: ids in, ids out, one version."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest
import torch
from tests.gateway.test_served_agent import draw, scenarios, served, talks_twice

from memograd.config import LoraConfig, SamplerConfig, TrainConfig
from memograd.errors import BadInput, MemogradError
from memograd.gateway.engine import EngineJob, TextStream
from memograd.gateway.remote_engine import RemoteEngine
from memograd.gateway.store import TraceStore
from memograd.grpo import RunFolder
from memograd.grpo.batch import Draw
from memograd.grpo.trainer import Stage, Trainer
from memograd.policy.continuous import SampleRequest
from memograd.policy.language_model import LanguageModel
from memograd.policy.remote.pool import ServerPool
from memograd.policy.remote.sampler import RemoteSampler
from memograd.policy.remote.server import VllmServer
from memograd.rewards import parse_rewards
from memograd.rollout.types import Scenario


@pytest.fixture
def policy(tiny_model_folder, server, tmp_path) -> Iterator[LanguageModel]:
    made = LanguageModel.load(str(tiny_model_folder), lora=LoraConfig(r=2), device="cpu")
    pool = ServerPool([VllmServer(server.url, seconds=60)], tmp_path / "adapters", patience=1)
    made.remote = RemoteSampler(made, pool)
    yield made
    made.remote.close()


@pytest.mark.slow
def test_a_group_is_drawn_by_the_servers_under_one_version(policy, server, tmp_path):
    store = TraceStore(f"sqlite:///{tmp_path / 'traces.db'}")
    with served(policy, store, optimize_agents=["writer"]) as drawing:
        policy.publish(4)
        attempts = draw(drawing, seed=3)
        again = draw(drawing, seed=3)
    for group, other in zip(attempts.groups, again.groups, strict=True):
        for rollout, same in zip(group.rollouts, other.rollouts, strict=True):
            assert [turn.action_ids for turn in rollout.turns] == [
                turn.action_ids for turn in same.turns
            ]
            for turn in rollout.turns:
                (span,) = turn.versions
                assert (span.version, span.tokens) == (4, len(turn.action_ids))
    # 3 scenarios x 3 attempts x 3 calls, twice, and every prompt went as ids.
    asked = [body for path, body in server.asked if path == "/v1/completions"]
    assert len(asked) == 54 and all(isinstance(body["prompt"][0], int) for body in asked)
    store.close()


@pytest.mark.slow
def test_what_is_published_while_agents_start_does_not_draw_for_them(policy, server, tmp_path):
    """A thread draws ahead while the learner goes on (`sampler.max_staleness`)."""
    policy.remote.close()
    pool = ServerPool([VllmServer(server.url, seconds=60)], tmp_path / "adapters", patience=1)
    policy.remote = RemoteSampler(policy, pool, max_staleness=1)
    store = TraceStore(f"sqlite:///{tmp_path / 'traces.db'}")

    async def slow_to_start(task, base_url, api_key) -> float:
        policy.publish(5)
        return await talks_twice(task, base_url, api_key)

    with served(policy, store, agent=slow_to_start) as drawing:
        policy.publish(4)
        attempts = draw(drawing, seed=3)
    drawn = {body["model"] for path, body in server.asked if path == "/v1/completions"}
    assert [name.rpartition("-")[2] for name in drawn] == ["4"]
    turns = [turn for group in attempts.groups for one in group.rollouts for turn in one.turns]
    assert {span.version for turn in turns for span in turn.versions} == {4}
    store.close()


def test_versions_that_servers_cannot_keep_are_refused_before_an_agent_runs(policy, tmp_path):
    policy.remote.pool.holds_one = True  # as servers of whole weights
    store = TraceStore(f"sqlite:///{tmp_path / 'traces.db'}")
    served(policy, store).close()
    ahead = RemoteSampler(policy, policy.remote.pool, max_staleness=1)
    policy.remote = ahead
    with pytest.raises(BadInput, match=r"tuning=full.* use sampler\.max_staleness=0"):
        served(policy, store)
    store.close()


def test_a_call_is_held_to_what_the_servers_take(policy, server, tmp_path):
    store = TraceStore(f"sqlite:///{tmp_path / 'traces.db'}")
    answers = []

    async def says(task, base_url, api_key) -> float:
        async with httpx.AsyncClient(verify=False, timeout=60) as client:
            for text in ("x", "x" * 60):
                answers.append(
                    await client.post(
                        f"{base_url}/chat/completions",
                        json={"messages": [{"role": "user", "content": text}]},
                        headers={"Authorization": f"Bearer {api_key}"},
                    )
                )
        return 0.0

    policy.publish(0)
    short = len(policy.encode([{"role": "user", "content": "x"}]))
    policy.remote.pool.longest = short + 3
    with served(policy, store, agent=says, num_generations=1, max_completion_length=8) as drawing:
        drawing(scenarios(1), Draw(1, 0.8, torch.Generator().manual_seed(0)))
    assert [answer.status_code for answer in answers] == [200, 400]
    assert answers[1].json()["error"]["code"] == "context_length_exceeded"
    (asked,) = [body for path, body in server.asked if path == "/v1/completions"]
    assert asked["max_tokens"] == 3
    store.close()


def test_it_trains_without_a_gap(policy, server, tmp_path):
    config = TrainConfig(
        steps=2,
        prompts_per_step=1,
        num_generations=3,
        max_completion_length=4,
        learning_rate=1e-2,
        beta=0.0,
        sampler=SamplerConfig(engine="vllm", url=[server.url]),
    )
    run = RunFolder.create(tmp_path / "run", config.model_dump_json())
    store = TraceStore(f"sqlite:///{tmp_path / 'traces.db'}")
    asked = [Scenario("q0", ({"role": "user", "content": "say 0"},), {"number": 0})]
    with served(policy, store, max_completion_length=4) as drawing:
        rewards = parse_rewards("environment")
        Trainer(policy, asked, rewards, config, Stage(run), drawing=drawing).train()
    for row in run.read_metrics():
        assert row["sampler_gap"] < 1e-4 and row["sampler_unknown_tokens"] == 0
    store.close()


def test_a_rest_ends_jobs_and_nothing_settles_them_later(policy, server):
    engine = RemoteEngine(policy.remote, policy.end_ids)
    policy.publish(0)
    let_go, asked = threading.Event(), threading.Event()

    def plan(path, body):
        if path == "/v1/completions":
            asked.set()
            let_go.wait(60)
        return None

    def job() -> EngineJob:
        request = SampleRequest((3, 4, 5), max_tokens=4, seed=1)
        return EngineJob(request, TextStream(lambda ids: policy.decode(ids)))

    server.plan = plan
    first = job()
    engine.submit(first)
    assert asked.wait(60)
    engine.rest()
    with pytest.raises(MemogradError, match="about to change"):
        first.future.result(timeout=60)
    second = job()
    engine.submit(second)  # waits in line
    let_go.set()
    engine.resume()
    assert len(second.future.result(timeout=60).ids) >= 1
    engine.close()
    with pytest.raises(MemogradError, match="closed"):
        engine.submit(job())
