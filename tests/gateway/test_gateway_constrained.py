"""Answers held to grammars on the local model, and scored by the learner as they were drawn."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Literal

import numpy as np
import openai
import pytest
import torch
from pydantic import BaseModel

from memograd.gateway.grammar import Grammars, grammar_of
from memograd.gateway.local import AnswerSampling, LocalBackend
from memograd.gateway.protocol import ChatRequest
from memograd.gateway.traces_to_rollouts import rollout_of_trace
from memograd.rollout.token_tree import grow_trees

pytest.importorskip("llguidance", reason="llguidance is not installed")

SCHEMA = {
    "type": "object",
    "properties": {"答": {"enum": ["是", "否"]}, "n": {"type": "integer", "maximum": 99}},
    "required": ["答", "n"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "parameters": {
                "type": "object",
                "properties": {"patient": {"enum": [7, 8]}},
                "required": ["patient"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {"name": "wait", "parameters": {"type": "object", "maxProperties": 0}},
    },
]
CALLED = {"look_up": [{"patient": 7}, {"patient": 8}], "wait": [{}]}


@pytest.fixture
def gateway(tiny_policy, tool_template, start):
    backend = LocalBackend(
        tiny_policy, sampling=AnswerSampling(max_tokens=300), chat_template=tool_template
    )
    yield start(backend)
    backend.close()


def calls_of(message) -> list[tuple[str, dict]]:
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or []
    ]


def asked(rollout, **fields):
    answer = rollout.chat("八号?", **fields)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]


def test_an_answer_is_json_of_its_schema(gateway) -> None:
    rollout = gateway.rollout()
    for seed in range(4):
        choice = asked(rollout, response_format=FORM, seed=seed)
        assert choice["finish_reason"] == "stop"
        told = json.loads(choice["message"]["content"])
        assert told["答"] in ("是", "否") and told["n"] <= 99 and len(told) == 2


def test_a_json_object_is_one(gateway) -> None:
    choice = asked(gateway.rollout(), response_format={"type": "json_object"}, max_tokens=300)
    if choice["finish_reason"] == "stop":
        assert isinstance(json.loads(choice["message"]["content"]), dict)
    else:
        assert choice["message"]["content"].startswith("{")


@pytest.mark.slow
def test_forced_tools_are_called(gateway) -> None:
    rollout = gateway.rollout()
    for seed in range(3):
        named = {"type": "function", "function": {"name": "wait"}}
        choice = asked(rollout, tools=TOOLS, tool_choice=named, seed=seed)
        assert calls_of(choice["message"]) == [("wait", {})]
        assert choice["finish_reason"] == "tool_calls"
        given = {"tools": TOOLS, "tool_choice": "required", "seed": seed}
        [(name, arguments)] = calls_of(
            asked(rollout, **given, parallel_tool_calls=False)["message"]
        )
        assert arguments in CALLED[name]
        calls = calls_of(asked(rollout, **given)["message"])
        assert calls and all(arguments in CALLED[name] for name, arguments in calls)


def allowed(mode: str, *names: str) -> dict:
    """What OpenAI's chats call it when some of the tools alone may be called."""
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def test_allowed_tools_alone_are_called(gateway) -> None:
    rollout = gateway.rollout()
    for seed in range(3):
        choice = asked(rollout, tools=TOOLS, tool_choice=allowed("required", "look_up"), seed=seed)
        called = calls_of(choice["message"])
        assert called and {name for name, _ in called} == {"look_up"}
    shown = gateway.store.calls(rollout.id)[0].tools
    assert [tool["function"]["name"] for tool in shown] == ["look_up", "wait"]


def test_allowed_tools_of_a_response(gateway) -> None:
    rollout = gateway.rollout()
    client = openai.OpenAI(base_url=rollout.base_url, api_key=rollout.api_key, max_retries=0)
    response = client.responses.create(
        model="m",
        input="八号?",
        tools=[{"type": "function", **tool["function"], "strict": False} for tool in TOOLS],
        tool_choice={
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "wait"}],
        },
    )
    assert {item.name for item in response.output if item.type == "function_call"} == {"wait"}


@pytest.mark.slow
def test_with_tools_a_form_is_for_the_answer_only(gateway) -> None:
    rollout = gateway.rollout()
    kinds = set()
    for seed in range(12):
        message = asked(rollout, tools=TOOLS, response_format=FORM, seed=seed)["message"]
        if message.get("tool_calls"):
            assert all(arguments in CALLED[name] for name, arguments in calls_of(message))
        else:
            assert json.loads(message["content"])["答"] in ("是", "否")
        kinds.add(bool(message.get("tool_calls")))
    assert kinds == {True, False}


def test_one_call_at_most(tiny_policy) -> None:
    """A random model never calls by itself; the grammar is asked what it would let through."""

    request = ChatRequest.model_validate(
        {
            "messages": [{"role": "user", "content": "a"}],
            "tools": TOOLS,
            "parallel_tool_calls": False,
        }
    )
    for text, fits in [
        ("你好 <tool", True),
        (f"看一下\n{WAIT}", True),
        (WAIT, True),
        (f"{WAIT}\n{WAIT}", False),
        (f"{WAIT} x", False),
        ('<tool_call>\n{"name": "go"', False),
    ]:
        assert _holds(tiny_policy, request, text) is fits, text


def test_where_some_tools_are_allowed_text_may_come_instead(tiny_policy) -> None:
    request = ChatRequest.model_validate(
        {
            "messages": [{"role": "user", "content": "a"}],
            "tools": TOOLS,
            "tool_choice": allowed("auto", "wait"),
        }
    )
    for text, fits in [
        ("你好 <tool", True),
        (f"看一下\n{WAIT}\n{WAIT}", True),
        (LOOK_UP, False),
        (f"{WAIT}\n{LOOK_UP}", False),
    ]:
        assert _holds(tiny_policy, request, text) is fits, text


WAIT = '<tool_call>\n{"name": "wait", "arguments": {}}\n</tool_call>'
LOOK_UP = '<tool_call>\n{"name": "look_up", "arguments": {"patient": 7}}\n</tool_call>'


def _holds(policy, request: ChatRequest, text: str) -> bool:
    """Whether the text may be said, and may end there."""
    answer = Grammars(policy).constraint(grammar_of(request), "tools")
    ids = policy.tokenizer.encode(text, add_special_tokens=False)
    return all(_takes(answer, token) for token in (*ids, *policy.end_ids))


def _takes(answer, token: int) -> bool:
    mask = np.unpackbits(np.frombuffer(answer.allowed(), np.uint8), bitorder="little")
    if mask[token]:
        answer.advance(token)
    return bool(mask[token])


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"type": "x"}},
                }
            },
            "response_format",
        ),
        (  # refers to nothing but itself, so nothing is right
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"$ref": "#"}},
                }
            },
            "response_format",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "sometimes", "tools": TOOLS}, "tool_choice"),
        (
            {"tool_choice": {"type": "function", "function": {"name": "no"}}, "tools": TOOLS},
            "tool_choice",
        ),
        ({"tool_choice": allowed("auto", "no"), "tools": TOOLS}, "tool_choice"),
        ({"tool_choice": allowed("auto", "wait")}, "tool_choice"),
        ({"tool_choice": allowed("auto"), "tools": TOOLS}, "tool_choice"),
        ({"tool_choice": allowed("never", "wait"), "tools": TOOLS}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools"}, "tools": TOOLS}, "tool_choice"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(gateway, fields, param) -> None:
    rollout = gateway.rollout()
    refused = rollout.chat("?", **fields)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
    assert gateway.store.rollout(rollout.id).calls == 0


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_learner_scores_what_was_drawn_as_it_was_drawn(
    gateway, tiny_policy, temperature: float
) -> None:
    """Constrained, free and constrained otherwise, in one rollout and side by side: the ratio of
    on-policy learning is 1, and without the masks it would not be."""
    groups = []
    for seed in range(3):
        rollout = gateway.rollout(seed=seed)
        messages = [{"role": "user", "content": "八号?"}]
        for fields in (
            {"response_format": FORM},
            {"max_tokens": 5},
            {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
        ):
            answer = rollout.chat(*messages, temperature=temperature, **fields).json()
            messages += [answer["choices"][0]["message"], {"role": "user", "content": "再?"}]
        rollout.chat("八号?", temperature=temperature, max_tokens=4)  # free, where others were held
        gateway.store.reward(rollout.id, 1.0)
        record, calls = gateway.store.rollout(rollout.id), gateway.store.calls(rollout.id)
        assert [call.choices[0].allowed is not None for call in calls] == [True, False, True, False]
        groups.append(rollout_of_trace(record, calls, temperature=temperature))
    rows = grow_trees([groups])
    parts = [tree.part([row]) for tree in rows.trees for row in range(len(tree.branches))]
    assert [one.allowed_in(0) for one in parts] == [
        tree.allowed_in(row) for tree in rows.trees for row in range(len(tree.branches))
    ]
    free = [dataclasses.replace(tree, allowed={}) for tree in rows.trees]
    old = [row for tree in rows.old_logprobs for row in tree]
    for forward in ("packed", "tree", "rows"):
        tiny_policy.forward = forward
        with torch.no_grad():
            scores = tiny_policy.logprobs(rows.trees, temperature=temperature)
            without = tiny_policy.logprobs(free, temperature=temperature)
        for line, drawn in enumerate(old):
            own = scores.mask_RT[line, : len(drawn)].numpy()
            now = scores.logprobs_RT[line, : len(drawn)].numpy()
            assert np.abs(np.exp(now - drawn)[own] - 1).max() < 1e-4
        assert torch.isfinite(scores.entropies_RT).all()
        assert (scores.logprobs_RT - without.logprobs_RT).abs().max() > 1
    assert sum(int(own.sum()) for tree in rows.trees for own in tree.scored) == sum(
        rollout.tokens for rollout in groups
    )


def test_gradients_flow_where_there_was_a_choice(gateway, tiny_policy) -> None:
    rollout = gateway.rollout()
    rollout.chat("八号?", response_format=FORM)
    gateway.store.reward(rollout.id, 1.0)
    found = rollout_of_trace(
        gateway.store.rollout(rollout.id), gateway.store.calls(rollout.id), temperature=1.0
    )
    scores = tiny_policy.logprobs(grow_trees([[found]]).trees, temperature=1.0)
    scores.logprobs_RT.sum().backward()
    gradients = [p.grad for p in tiny_policy.parameters() if p.grad is not None]
    assert gradients and all(torch.isfinite(gradient).all() for gradient in gradients)
    assert any(gradient.abs().max() > 0 for gradient in gradients)


def test_structured_output_of_openais_clients(gateway) -> None:
    class Answer(BaseModel):
        n: int

    rollout = gateway.rollout()
    client = openai.OpenAI(base_url=rollout.base_url, api_key=rollout.api_key, max_retries=0)
    parsed = client.chat.completions.parse(
        model="m", messages=[{"role": "user", "content": "几?"}], response_format=Answer
    )
    assert isinstance(parsed.choices[0].message.parsed, Answer)
    response = client.responses.parse(model="m", input="几?", text_format=Answer)
    assert isinstance(response.output_parsed, Answer)


class Dose(BaseModel):
    """What a random model says within its longest answer, if it is held to it."""

    drug: Literal["二甲双胍", "华法林"]
    pills: Literal[1, 2]


@pytest.mark.parametrize("by_responses", [False, True], ids=["chats", "responses"])
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output_of_langchain(gateway, method: str, by_responses: bool) -> None:
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    rollout = gateway.rollout()
    model = langchain.ChatOpenAI(
        model="m",
        base_url=rollout.base_url,
        api_key=rollout.api_key,
        use_responses_api=by_responses,
        max_retries=0,
    )
    said = model.with_structured_output(Dose, method=method).invoke("八号病人吃什么药?")
    assert isinstance(said, Dose)
    [call] = gateway.store.calls(rollout.id)
    assert call.choices[0].allowed is not None  # the learner knows what was allowed


def test_structured_output_of_a_langgraph_agent(gateway) -> None:
    """The agent's last call is held to its answer's form, whatever was said before."""
    pytest.importorskip("langgraph", reason="langgraph is not installed")
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    from langchain_core.tools import tool
    from langgraph.prebuilt import create_react_agent

    @tool
    def look_up(patient: Literal[7, 8]) -> str:
        """Which drug a patient takes."""
        return "二甲双胍"

    rollout = gateway.rollout()
    model = langchain.ChatOpenAI(
        model="m", base_url=rollout.base_url, api_key=rollout.api_key, max_retries=0
    )
    agent = create_react_agent(model, [look_up], response_format=Dose)
    done = agent.invoke({"messages": [("user", "八号病人吃什么药?")]}, {"recursion_limit": 9})
    assert isinstance(done["structured_response"], Dose)
    *before, last = gateway.store.calls(rollout.id)
    assert before and all(call.choices[0].allowed is None for call in before)
    assert last.choices[0].allowed is not None


@pytest.mark.parametrize("strategy", ["ToolStrategy", "ProviderStrategy"])
def test_structured_output_of_langchains_agents(gateway, strategy: str) -> None:
    agents = pytest.importorskip("langchain.agents", reason="langchain is not installed")
    from langchain.agents import structured_output
    from langchain_openai import ChatOpenAI

    rollout = gateway.rollout()
    model = ChatOpenAI(model="m", base_url=rollout.base_url, api_key=rollout.api_key, max_retries=0)
    form = getattr(structured_output, strategy)(Dose)
    agent = agents.create_agent(model, tools=[], response_format=form)
    done = agent.invoke({"messages": [("user", "八号病人吃什么药?")]}, {"recursion_limit": 9})
    assert isinstance(done["structured_response"], Dose)
    assert gateway.store.calls(rollout.id)[-1].choices[0].allowed is not None


@pytest.mark.parametrize("model_class", ["OpenAIResponsesModel", "OpenAIChatCompletionsModel"])
def test_the_agents_sdks_output_type_after_a_tool_that_it_forces(gateway, model_class: str) -> None:
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    rollout = gateway.rollout()
    patients: list[int] = []

    @agents.function_tool
    def look_up(patient: Literal[7, 8]) -> str:
        """Which drug a patient takes."""
        patients.append(patient)
        return "二甲双胍"

    async def run() -> object:
        async with openai.AsyncOpenAI(
            base_url=rollout.base_url, api_key=rollout.api_key, max_retries=0
        ) as client:
            agent = agents.Agent(
                name="doctor",
                instructions="Answer from the tool.",
                tools=[look_up],
                output_type=Dose,
                model=getattr(agents, model_class)(model="m", openai_client=client),
                model_settings=agents.ModelSettings(tool_choice="look_up"),
            )
            done = await agents.Runner.run(
                agent, "八号?", run_config=agents.RunConfig(tracing_disabled=True)
            )
            return done.final_output

    assert isinstance(asyncio.run(run()), Dose)
    assert patients
    assert len(gateway.store.calls(rollout.id)) >= 2
