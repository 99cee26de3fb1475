"""`/v1/responses` as OpenAI's client and openai-agents call it when nobody tells them otherwise."""

from __future__ import annotations

import asyncio
import itertools
import json

import openai
import pytest
import torch
from openai.types.responses import Response
from scripted import ScriptedBackend, client_of, looks_up

from memograd.gateway.local import AnswerSampling, LocalBackend
from memograd.gateway.protocol import CallRefused
from memograd.gateway.responses_request import ResponseRequest
from memograd.gateway.traces_to_rollouts import rollout_of_trace

TOOL = {
    "type": "function",
    "name": "look_up",
    "description": "查药",
    "parameters": {"type": "object", "properties": {"patient": {"type": "integer"}}},
}


def checked(response: Response) -> Response:
    """The response, if it is one by OpenAI's own types (which the client does not check)."""
    return Response.model_validate(response.model_dump(exclude_unset=True))


def test_a_response_is_captured_as_a_chat_would_be(gateway, tiny_policy) -> None:
    rollout = gateway.rollout()
    response = checked(
        client_of(rollout).responses.create(
            model="any",
            instructions="简短",
            input="你好",
            temperature=0.7,
            include=["message.output_text.logprobs"],
            top_logprobs=2,
            max_output_tokens=9,
            metadata={"agent": "writer"},
        )
    )
    [call] = gateway.store.calls(rollout.id)
    [choice] = call.choices
    said = [{"role": "system", "content": "简短"}, {"role": "user", "content": "你好"}]
    assert call.messages == tuple(said)
    assert call.prompt_ids == tuple(tiny_policy.encode(said))
    assert (call.agent, call.asked["api"], call.sampling["max_tokens"]) == (
        "writer",
        "responses",
        9,
    )
    assert response.output_text == choice.text
    shown = response.output[0].content[0].logprobs
    assert [token.logprob for token in shown] == list(choice.logprobs)
    assert [len(token.top_logprobs) for token in shown] == [2] * len(choice.token_ids)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (
        len(call.prompt_ids),
        len(choice.token_ids),
    )
    cut = choice.finish_reason == "length"
    assert response.status == ("incomplete" if cut else "completed")
    assert (response.incomplete_details is not None) == cut


def test_the_events_of_a_stream_end_with_the_response(gateway) -> None:
    rollout = gateway.rollout()
    client = client_of(rollout)
    whole = client.responses.create(model="m", input="你好", extra_body={"seed": 3})
    asked = {"model": "m", "input": "你好", "extra_body": {"seed": 3}}
    events = list(client.responses.create(**asked, stream=True))
    final = checked(events[-1].response)
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        f"response.{whole.status}",
    ]
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == final.output_text == whole.output_text
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert final.usage == whole.usage
    first, second = gateway.store.calls(rollout.id)
    assert first.choices[0].token_ids == second.choices[0].token_ids


def test_a_conversation_by_previous_response_goes_on_from_the_ids_drawn(gateway) -> None:
    rollout = gateway.rollout()
    client = client_of(rollout)
    previous = None
    for turn in range(4):
        instructions = {"instructions": "短"} if turn == 0 else {}
        response = client.responses.create(
            model="m", input=f"更多 {turn}", previous_response_id=previous, **instructions
        )
        assert response.previous_response_id == previous
        previous = response.id
    calls = gateway.store.calls(rollout.id)
    # The instructions were the first request's own; from the second on, a row goes on.
    assert [len(call.messages) for call in calls] == [2, 3, 5, 7]
    for call, following in itertools.pairwise(calls[1:]):
        held = (*call.prompt_ids, *call.choices[0].token_ids)
        assert following.prompt_ids[: len(held)] == held
    gateway.store.reward(rollout.id, 1.0)
    trained = rollout_of_trace(gateway.store.rollout(rollout.id), calls, temperature=1.0)
    assert [turn.starts_row for turn in trained.turns] == [True, True, False, False]


def test_previous_responses_are_found_after_a_restart_and_only_their_own(
    local, start, tmp_path
) -> None:
    gateway = start(local)
    rollout, other = gateway.rollout(), gateway.rollout()
    response = client_of(rollout).responses.create(model="m", input="一")
    again = start(local)
    rollout.base_url = rollout.base_url.replace(gateway.url, again.url)
    assert client_of(rollout).responses.create(
        model="m", input="二", previous_response_id=response.id
    )
    for stranger, previous in [
        (other, response.id),
        (rollout, "resp_"),
        (rollout, f"resp_{rollout.id}_99"),
        (rollout, f"resp_{rollout.id}_{'9' * 40}"),
    ]:
        with pytest.raises(openai.BadRequestError) as refused:
            client_of(stranger).responses.create(
                model="m", input="二", previous_response_id=previous
            )
        assert refused.value.code == "previous_response_not_found"
    assert len(gateway.store.calls(other.id)) == 0


def test_outside_of_rollouts_a_conversation_is_held_unless_it_must_not_be(gateway) -> None:
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0)
    first = client.responses.create(model="m", input="一")
    second = client.responses.create(model="m", input="二", previous_response_id=first.id)
    assert second.usage.input_tokens > first.usage.input_tokens
    gone = client.responses.create(model="m", input="三", store=False)
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model="m", input="四", previous_response_id=gone.id)
    assert gateway.store.rollouts() == []


def test_tools_are_called_and_their_outputs_come_back(start) -> None:
    gateway = start(ScriptedBackend(looks_up))
    rollout = gateway.rollout()
    client = client_of(rollout)
    asked = checked(client.responses.create(model="m", input="八号?", tools=[TOOL]))
    [call] = asked.output
    assert (call.type, call.name, json.loads(call.arguments)) == (
        "function_call",
        "look_up",
        {"patient": 8},
    )
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "二甲双胍"}
    answered = checked(
        client.responses.create(
            model="m", input=[output], previous_response_id=asked.id, tools=[TOOL]
        )
    )
    assert answered.output_text == "The drug is 二甲双胍."
    # The same without a previous response: the agent sends every item back.
    items = [{"role": "user", "content": "八号?"}, call.model_dump(), output]
    assert client.responses.create(model="m", input=items, tools=[TOOL]).output_text
    _, by_id, by_items = gateway.store.calls(rollout.id)
    assert by_id.messages == by_items.messages
    roles = [message["role"] for message in by_id.messages]
    assert roles == ["user", "assistant", "tool"]


def test_a_streamed_tool_call_has_its_events(start) -> None:
    gateway = start(ScriptedBackend(looks_up))
    events = list(
        client_of(gateway.rollout()).responses.create(
            model="m", input="八号?", tools=[TOOL], stream=True
        )
    )
    assert [event.type.removeprefix("response.") for event in events] == [
        *("created", "in_progress", "output_item.added"),
        *("function_call_arguments.delta", "function_call_arguments.done"),
        *("output_item.done", "completed"),
    ]
    assert json.loads(events[3].delta) == {"patient": 8}


class Broken(ScriptedBackend):
    """Says a little and breaks."""

    async def run(self, seed, on_text=None):
        on_text(0, "a")
        await asyncio.sleep(0.2)
        raise CallRefused(502, "The server behind the gateway is gone.", kind="upstream_error")

    def prepare(self, request, conversation):
        return self


def test_a_stream_that_breaks_off_says_so(start) -> None:
    gateway = start(Broken(looks_up))
    *_, last = client_of(gateway.rollout()).responses.create(model="m", input="?", stream=True)
    assert last.type == "response.failed"
    assert "is gone" in last.response.error.message


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": [{"type": "function_call", "name": "a"}]}, "input[0]"),
        ({"input": [{"role": "robot", "content": "a"}]}, "input[0]"),
        ({"input": [{"content": "a"}]}, "input[0]"),
        ({"input": []}, "input"),
        ({"temperature": 1e-300}, "temperature"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"n": 2}, "n"),
    ],
)
def test_what_is_not_offered_is_refused_by_name(gateway, fields, param) -> None:
    rollout = gateway.rollout()
    refused = rollout.client.post(f"{rollout.base_url}/responses", json={"input": "a", **fields})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
    assert gateway.store.rollout(rollout.id).calls == 0


def test_what_cannot_be_done_with_a_response_is_refused_in_words_and_not_tried_again(
    gateway,
) -> None:
    rollout = gateway.rollout()
    with openai.OpenAI(base_url=rollout.base_url, api_key=rollout.api_key) as client:
        made = client.responses.create(model="m", input="一")
        for ask in (client.responses.cancel, lambda _: client.responses.input_tokens.count()):
            with pytest.raises(openai.NotFoundError, match="nothing to cancel") as refused:
                ask(made.id)
            assert refused.value.code == "not_served"


def test_items_become_the_messages_of_a_chat() -> None:
    asked = ResponseRequest.model_validate(
        {
            "instructions": "短",
            "input": [
                {"role": "developer", "content": [{"type": "input_text", "text": "规则"}]},
                {"role": "user", "content": [{"type": "input_image", "image_url": "data:,x"}]},
                {"type": "reasoning", "summary": []},
                {
                    "type": "message",
                    "role": "assistant",
                    "id": "msg_1",
                    "content": [{"type": "output_text", "text": "好", "annotations": []}],
                },
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "一"},
                {
                    "type": "function_call_output",
                    "call_id": "c2",
                    "output": [{"type": "input_text", "text": "二"}],
                },
            ],
            "text": {"format": {"type": "json_schema", "name": "x", "schema": {}}},
            "tool_choice": {"type": "function", "name": "f"},
        }
    )
    chat = asked.as_chat([{"role": "user", "content": "before"}])
    said = chat.said()
    roles = ["system", "user", "developer", "user", "assistant", "tool", "tool"]
    assert [message["role"] for message in said] == roles
    assert said[3]["content"] == [{"type": "image_url", "image_url": {"url": "data:,x"}}]
    assert said[4]["content"] == "好"
    assert [call["function"]["name"] for call in said[4]["tool_calls"]] == ["f", "g"]
    assert [message["content"] for message in said[5:]] == ["一", "二"]
    assert chat.response_format["json_schema"] == {"name": "x", "schema": {}}
    assert chat.tool_choice == {"type": "function", "function": {"name": "f"}}


# openai-agents, as it is when nothing but its base URL is changed


@pytest.fixture
def agents(monkeypatch):
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    agents.set_tracing_disabled(True)

    def use(rollout):
        client = openai.AsyncOpenAI(
            base_url=rollout.base_url, api_key=rollout.api_key, max_retries=0
        )
        agents.set_default_openai_client(client, use_for_tracing=False)

    yield agents, use
    agents.set_default_openai_client(openai.AsyncOpenAI(api_key="none"), use_for_tracing=False)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("by_id", [False, True])
def test_openai_agents_by_default(start, agents, streamed: bool, by_id: bool) -> None:
    sdk, use = agents
    gateway = start(ScriptedBackend(looks_up))
    rollout = gateway.rollout()
    use(rollout)

    @sdk.function_tool
    def look_up(patient: int) -> str:
        return {8: "二甲双胍"}[patient]

    agent = sdk.Agent(name="nurse", instructions="短", tools=[look_up])

    async def played() -> str:
        given = {"max_turns": 4, "auto_previous_response_id": by_id}
        if not streamed:
            return (await sdk.Runner.run(agent, "八号病人?", **given)).final_output
        run = sdk.Runner.run_streamed(agent, "八号病人?", **given)
        async for _ in run.stream_events():
            pass
        return run.final_output

    assert asyncio.run(played()) == "The drug is 二甲双胍."
    first, second = gateway.store.calls(rollout.id)
    assert [one.asked["api"] for one in (first, second)] == ["responses"] * 2
    roles = [message["role"] for message in second.messages]
    assert roles == ["system", "user", "assistant", "tool"]
    assert [tool["function"]["name"] for tool in second.tools] == ["look_up"]


def test_openai_agents_over_a_real_model_is_one_row(tiny_policy, start, agents) -> None:
    sdk, use = agents
    # A random model seldom ends by itself, and this framework takes no answer that was cut off.
    [end] = tiny_policy.end_ids
    more = torch.zeros(len(tiny_policy.tokenizer))
    more[end] = 6.0
    tiny_policy.model.get_output_embeddings().register_forward_hook(lambda _m, _i, out: out + more)
    backend = LocalBackend(tiny_policy, sampling=AnswerSampling(max_tokens=200))
    gateway = start(backend)
    rollout = gateway.rollout()
    use(rollout)
    agent = sdk.Agent(name="writer", instructions="短")

    async def played() -> None:
        said: list = []
        for turn in range(3):
            result = await sdk.Runner.run(agent, [*said, {"role": "user", "content": f"{turn}"}])
            said = result.to_input_list()

    try:
        asyncio.run(played())
    finally:
        backend.close()
    calls = gateway.store.calls(rollout.id)
    gateway.store.reward(rollout.id, 0.5)
    trained = rollout_of_trace(gateway.store.rollout(rollout.id), calls, temperature=1.0)
    assert [turn.starts_row for turn in trained.turns] == [True, False, False]
