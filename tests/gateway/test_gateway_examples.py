"""The examples, unchanged, on a gateway: whoever's framework they are made with."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
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
needs_mcp = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None, reason="mcp is not installed"
)
needs_langchain = pytest.mark.skipif(
    importlib.util.find_spec("langchain_openai") is None, reason="langchain-openai is not installed"
)
WITH_TOOLS = [
    pytest.param("mcp_tools", marks=needs_mcp),
    pytest.param("openai_agents", marks=needs_agents),
    pytest.param("lang_graph", marks=needs_langgraph),
]


def play(gateway, name: str, count: int = 1, answer: str = "二甲双胍") -> list[str]:
    agent = load_agent(name if name.startswith("exec:") else f"{FOLDER / name}.py:run")
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


LANG_CHAIN = pytest.param("lang_chain", marks=needs_langchain)


@pytest.mark.parametrize("name", [*WITH_TOOLS, LANG_CHAIN, "plain_openai"])
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


@needs_langchain
def test_agents_that_nobody_names_are_told_apart_by_their_prompts(gateway) -> None:
    [rollout_id] = play(gateway, "lang_chain")
    record, calls = gateway.store.rollout(rollout_id), gateway.store.calls(rollout_id)
    first, second = (call.agent for call in calls)
    assert first.startswith("answer-the-question-") and second.startswith("correct-the-answer-")
    rollout = rollout_of_trace(record, calls, temperature=1.0, optimize_agents={second})
    assert [turn.action_ids for turn in rollout.turns] == [calls[1].choices[0].token_ids]


@needs_agents
def test_the_agents_sdk_calls_responses_by_default(gateway) -> None:
    [rollout_id] = play(gateway, "openai_agents")
    calls = gateway.store.calls(rollout_id)
    assert {call.asked["api"] for call in calls} == {"responses"}
    assert calls[0].agent.startswith("answer-from-what-the-tool-")


AGENTS_PYTHON = "MEMOGRAD_AGENTS_PYTHON"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["auto_gen", "crew_ai"])
def test_frameworks_that_live_apart_are_programs(start, name: str, monkeypatch) -> None:
    """AutoGen and CrewAI want older packages than ours: a Python of their own runs them."""
    python = os.environ.get(AGENTS_PYTHON)
    if not python:
        pytest.skip(f"{AGENTS_PYTHON} names no Python that has autogen-agentchat and crewai")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    gateway = start(ScriptedBackend(looks_up))
    [rollout_id] = play(gateway, f"exec:{python} {FOLDER / name}.py")
    asked, *_, answered = gateway.store.calls(rollout_id)
    assert [tool["function"]["name"] for tool in asked.tools] == ["look_up"]
    assert [message["role"] for message in answered.messages][-2:] == ["assistant", "tool"]
    assert gateway.store.rollout(rollout_id).reward == 1.0


QUICK = ("plain_openai.py", "auto_gen.py", "crew_ai.py", "autogen_agent.py", "crewai_crew.py")
STARTED = [
    pytest.param(path, marks=() if path.name in QUICK else pytest.mark.slow, id=path.stem)
    for folder in ("gateway", "frameworks", "sql")
    for path in sorted((FOLDER.parent / folder).glob("*.py"))
]


@pytest.mark.parametrize("example", STARTED)
def test_an_example_that_is_told_nothing_says_what_it_wants(example: Path) -> None:
    """Or that its framework is not installed."""
    done = subprocess.run(
        [sys.executable, str(example)], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "arguments are required" in done.stderr or "pip install" in done.stderr
