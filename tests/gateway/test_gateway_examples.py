"""The examples, unchanged, on a gateway: agents of three frameworks become rollouts."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest
from scripted import ScriptedBackend, looks_up

from memograd.gateway.agents import AgentAttempt, Running, load_agent, run_agents
from memograd.gateway.traces_to_rollouts import rollout_of_trace

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "gateway"

needs_agents = pytest.mark.skipif(
    importlib.util.find_spec("agents") is None, reason="openai-agents is not installed"
)
needs_langgraph = pytest.mark.skipif(
    importlib.util.find_spec("langgraph") is None, reason="langgraph is not installed"
)
WITH_TOOLS = [
    pytest.param("openai_agents", marks=needs_agents),
    pytest.param("lang_graph", marks=needs_langgraph),
]


def play(gateway, name: str, count: int = 1, answer: str = "二甲双胍") -> list[str]:
    agent = load_agent(f"{FOLDER / name}.py:run")
    task = {"prompt": "Which drug does patient 8 take? 八号病人吃什么药?", "answer": answer}
    attempts = [AgentAttempt(task, f"attempt {number}", seed=number) for number in range(count)]
    return asyncio.run(
        run_agents(agent, attempts, gateway.store, gateway.url, running=Running(retries=0))
    )


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_tools_are_called_and_their_results_come_back(start, name: str) -> None:
    gateway = start(ScriptedBackend(looks_up))
    [rollout_id] = play(gateway, name)
    asked, answered = gateway.store.calls(rollout_id)
    assert [choice.finish_reason for choice in asked.choices] == ["tool_calls"]
    assert [tool["function"]["name"] for tool in asked.tools] == ["look_up"]
    roles = [message["role"] for message in answered.messages]
    assert roles[-2:] == ["assistant", "tool"]
    assert gateway.store.rollout(rollout_id).reward == 1.0


@pytest.mark.parametrize("name", [*WITH_TOOLS, "plain_openai"])
def test_a_real_model_makes_rollouts_to_train_on(gateway, name: str) -> None:
    for rollout_id in play(gateway, name, count=2):
        record, calls = gateway.store.rollout(rollout_id), gateway.store.calls(rollout_id)
        rollout = rollout_of_trace(record, calls, temperature=1.0)
        drawn = [choice.token_ids for call in calls for choice in call.choices]
        assert sorted(turn.action_ids for turn in rollout.turns) == sorted(drawn)
        assert rollout.reward == record.reward == 0.0


def test_the_writer_alone_is_one_row(gateway) -> None:
    [rollout_id] = play(gateway, "plain_openai")
    record, calls = gateway.store.rollout(rollout_id), gateway.store.calls(rollout_id)
    assert [call.agent for call in calls] == ["writer", "critic", "writer"]
    rollout = rollout_of_trace(record, calls, temperature=1.0, optimize_agents={"writer"})
    assert [turn.starts_row for turn in rollout.turns] == [True, False]
