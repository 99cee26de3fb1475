"""Responses read again, listed and deleted, by OpenAI's own client."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest
from openai.types.responses import Response, ResponseItem
from pydantic import TypeAdapter
from scripted import ScriptedBackend, looks_up

from memograd.gateway import responses_kept
from memograd.gateway.store import TraceStore

TOOL = {
    "type": "function",
    "name": "look_up",
    "description": "查药",
    "parameters": {"type": "object", "properties": {"patient": {"type": "integer"}}},
}


def client_of(base_url: str, api_key: str = "any") -> openai.OpenAI:
    client = httpx.Client(verify=False, timeout=60)
    return openai.OpenAI(base_url=base_url, api_key=api_key, max_retries=0, http_client=client)


@pytest.fixture(params=["in a rollout", "outside of rollouts"])
def client(request: pytest.FixtureRequest, gateway) -> openai.OpenAI:
    if request.param == "outside of rollouts":
        return client_of(f"{gateway.url}/v1")
    rollout = gateway.rollout()
    return client_of(rollout.base_url, rollout.api_key)


def told(response: Response) -> dict[str, Any]:
    """What a response says, without the moment at which it was complete."""
    return response.model_dump(exclude={"completed_at"})


def all_items(client: openai.OpenAI, response_id: str, **query: Any) -> list[dict[str, Any]]:
    return [
        # By OpenAI's types, which the client does not check.
        TypeAdapter(ResponseItem).validate_python(item.model_dump()).model_dump(exclude_none=True)
        for item in client.responses.input_items.list(response_id, **query)
    ]


def test_a_response_is_read_as_it_was_told(client: openai.OpenAI) -> None:
    first = client.responses.create(model="m", input="一", instructions="简短")
    made = client.responses.create(
        model="m",
        input="二",
        instructions="更短",
        previous_response_id=first.id,
        temperature=0.5,
        top_p=0.9,
        max_output_tokens=5,
        metadata={"agent": "writer"},
        user="ada",
        tools=[TOOL],
        tool_choice="none",
        parallel_tool_calls=False,
        reasoning={"effort": "low"},
    )
    read = client.responses.retrieve(made.id, include=["message.input_image.image_url"])
    assert told(read) == told(made)
    assert (read.instructions, read.tools[0].name, read.metadata) == (
        "更短",
        "look_up",
        {"agent": "writer"},
    )
    assert told(client.responses.retrieve(first.id)) == told(first)
    Response.model_validate(read.model_dump(exclude_unset=True))


def test_a_streamed_response_is_read_as_its_last_event_told_it(client: openai.OpenAI) -> None:
    *_, last = client.responses.create(model="m", input="一", stream=True)
    assert told(client.responses.retrieve(last.response.id)) == told(last.response)


def test_log_probabilities_are_told_with_the_answer_alone(client: openai.OpenAI) -> None:
    include = ["message.output_text.logprobs"]
    made = client.responses.create(model="m", input="一", include=include)
    assert made.output[0].content[0].logprobs
    assert client.responses.retrieve(made.id).output[0].content[0].logprobs == []
    for ask in (client.responses.retrieve, client.responses.input_items.list):
        with pytest.raises(openai.BadRequestError, match="not again") as refused:
            ask(made.id, include=include)
        assert refused.value.param == "include"


def test_input_items_are_the_conversation_the_newest_first(client: openai.OpenAI) -> None:
    first = client.responses.create(model="m", input="一", instructions="简短")
    image = {"type": "input_text", "text": "二"}
    second = client.responses.create(
        model="m",
        input=[{"role": "developer", "content": "规则"}, {"role": "user", "content": [image]}],
        previous_response_id=first.id,
    )
    [one] = all_items(client, first.id)
    assert (one["role"], one["content"]) == ("user", [{"type": "input_text", "text": "一"}])
    items = all_items(client, second.id, order="asc")
    assert [item["role"] for item in items] == ["user", "assistant", "developer", "user"]
    assert items[1]["content"][0]["text"] == first.output_text
    assert items[3]["content"][0]["text"] == "二"
    assert items[::-1] == all_items(client, second.id)
    ids = [item["id"] for item in items]
    assert len({*ids, *(item.id for item in second.output)}) == len(ids) + 1
    # A client reads page after page by itself, or one after an item.
    assert all_items(client, second.id, order="asc", limit=1) == items
    page = client.responses.input_items.list(second.id, order="asc", limit=2, after=ids[0])
    assert ([item.id for item in page.data], page.has_more) == (ids[1:3], True)
    assert all_items(client, second.id, after=ids[0]) == []


def test_input_items_hold_calls_and_their_outputs(start) -> None:
    gateway = start(ScriptedBackend(looks_up))
    rollout = gateway.rollout()
    client = client_of(rollout.base_url, rollout.api_key)
    asked = client.responses.create(model="m", input="八号?", tools=[TOOL])
    output = {"type": "function_call_output", "call_id": asked.output[0].call_id, "output": "药"}
    answered = client.responses.create(
        model="m", input=[output], previous_response_id=asked.id, tools=[TOOL]
    )
    question, call, result = all_items(client, answered.id, order="asc")
    assert question["content"][0]["text"] == "八号?"
    assert (call["name"], call["arguments"]) == ("look_up", asked.output[0].arguments)
    assert call["call_id"] == result["call_id"] == asked.output[0].call_id
    assert result["output"] == "药"
    # What was listed can be sent: it is the same conversation.
    sent = [question, call, result]
    client.responses.create(model="m", input=sent, tools=[TOOL])
    _, by_id, by_items = gateway.store.calls(rollout.id)
    assert by_id.messages == by_items.messages
    assert told(client.responses.retrieve(asked.id)) == told(asked)


def test_an_image_is_listed_as_it_was_sent(start) -> None:
    gateway = start(ScriptedBackend(lambda messages: "好"))
    client = client_of(f"{gateway.url}/v1")
    parts = [
        {"type": "input_text", "text": "看"},
        {"type": "input_image", "image_url": "data:,x", "detail": "low"},
    ]
    made = client.responses.create(model="m", input=[{"role": "user", "content": parts}])
    [item] = all_items(client, made.id)
    assert item["content"] == parts


def test_a_deleted_response_is_found_nowhere(client: openai.OpenAI, gateway) -> None:
    first = client.responses.create(model="m", input="一")
    second = client.responses.create(model="m", input="二", previous_response_id=first.id)
    assert client.responses.delete(first.id) is None
    for ask in (
        client.responses.retrieve,
        client.responses.delete,
        client.responses.input_items.list,
    ):
        with pytest.raises(openai.NotFoundError, match=f"no response '{first.id}'") as refused:
            ask(first.id)
        assert refused.value.code == "response_not_found"
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="m", input="三", previous_response_id=first.id)
    assert refused.value.code == "previous_response_not_found"
    # The response that went on from it has its conversation still.
    assert len(all_items(client, second.id)) == 3
    assert client.responses.create(model="m", input="三", previous_response_id=second.id)


def test_deleting_says_what_openai_says_and_takes_nothing_from_the_trace(gateway) -> None:
    rollout = gateway.rollout()
    made = rollout.client.post(f"{rollout.base_url}/responses", json={"input": "一"}).json()
    before = gateway.store.calls(rollout.id)
    gateway.store.reward(rollout.id, 1.0)  # reading and deleting are no calls
    url = f"{rollout.base_url}/responses/{made['id']}"
    read = rollout.client.get(url).json()
    assert read == {**made, "completed_at": read["completed_at"]}
    deleted = rollout.client.delete(url)
    assert deleted.json() == {"id": made["id"], "object": "response", "deleted": True}
    [call] = gateway.store.calls(rollout.id)
    assert call.asked.pop("deleted") is True
    assert [call] == before
    assert gateway.store.rollout(rollout.id).calls == 1


def test_a_response_that_must_not_be_kept_is_not(client: openai.OpenAI) -> None:
    made = client.responses.create(model="m", input="一", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model="m", input="二", previous_response_id=made.id)


def test_a_rollout_reads_its_own_responses_after_a_restart_and_nobody_elses(
    local, start, tmp_path
) -> None:
    gateway = start(local)
    rollout, other = gateway.rollout(), gateway.rollout()
    mine = client_of(rollout.base_url, rollout.api_key).responses.create(model="m", input="一")
    chat = rollout.chat("二").json()
    free = client_of(f"{gateway.url}/v1").responses.create(model="m", input="三")
    again = start(local, TraceStore(f"sqlite:///{tmp_path}/traces.db"))
    rollout.base_url = rollout.base_url.replace(gateway.url, again.url)
    other.base_url = other.base_url.replace(gateway.url, again.url)
    client = client_of(rollout.base_url, rollout.api_key)
    assert told(client.responses.retrieve(mine.id)) == told(mine)
    stranger, outside = client_of(other.base_url, other.api_key), client_of(f"{gateway.url}/v1")
    assert outside.responses.retrieve(free.id).output_text == free.output_text
    for asker, wanted in [
        (stranger, mine.id),
        (outside, mine.id),
        (client, free.id),
        (client, mine.id.removeprefix("resp_")),
        (client, f"resp_{rollout.id}_1"),  # a chat
        (client, f"resp_{rollout.id}_99"),
        (client, chat["id"]),
    ]:
        for ask in (
            asker.responses.retrieve,
            asker.responses.delete,
            asker.responses.input_items.list,
        ):
            with pytest.raises(openai.NotFoundError) as refused:
                ask(wanted)
            assert refused.value.code == "response_not_found"
    assert told(client.responses.retrieve(mine.id)) == told(mine)


@pytest.mark.parametrize("path", ["", "/input_items"])
def test_each_path_wants_its_key(local, start, path: str) -> None:
    gateway = start(local, key="open")
    opened = {"Authorization": "Bearer open"}
    made = gateway.client.post(f"{gateway.url}/rollout", json={}, headers=opened).json()
    own = {"Authorization": f"Bearer {made['api_key']}"}
    for base_url, right, wrong in [
        (f"{gateway.url}/v1", opened, own),
        (made["base_url"], own, opened),
    ]:
        asked = gateway.client.post(f"{base_url}/responses", json={"input": "一"}, headers=right)
        url = f"{base_url}/responses/{asked.json()['id']}{path}"
        for headers in ({}, wrong):
            assert gateway.client.get(url, headers=headers).status_code == 401
            if not path:
                assert gateway.client.delete(url, headers=headers).status_code == 401
        assert gateway.client.get(url, headers=right).status_code == 200


@pytest.mark.parametrize(
    ("path", "param"),
    [
        ("?stream=true", "stream"),
        ("?starting_after=3", "starting_after"),
        ("?colour=red", "colour"),
        ("/input_items?limit=0", "limit"),
        ("/input_items?limit=101", "limit"),
        ("/input_items?order=up", "order"),
        ("/input_items?after=msg_9", "after"),
        ("/input_items?before=msg_9", "before"),
    ],
)
def test_what_cannot_be_asked_of_a_response_is_refused_by_name(gateway, path, param) -> None:
    url = f"{gateway.url}/v1/responses"
    made = gateway.client.post(url, json={"input": "一"}).json()
    refused = gateway.client.get(f"{url}/{made['id']}{path}")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


def test_the_oldest_responses_outside_of_rollouts_make_room(start, monkeypatch) -> None:
    monkeypatch.setattr(responses_kept, "HELD_BYTES", 4_000)
    client = client_of(f"{start(ScriptedBackend(lambda _: 'x' * 1_500)).url}/v1")
    first, second, third = (client.responses.create(model="m", input=one) for one in "abc")
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    assert client.responses.retrieve(second.id).output_text == "x" * 1_500
    client.responses.create(model="m", input="d")  # the second was read last
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(third.id)
    client.responses.delete(second.id)
    fifth = client.responses.create(model="m", input="e")
    assert client.responses.retrieve(fifth.id)
