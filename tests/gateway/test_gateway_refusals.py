"""What newcomers get wrong is told in one sentence: the field, the path, the way out."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest
from scripted import ScriptedBackend

ASK = [{"role": "user", "content": "你好"}]


@pytest.fixture
def scripted(start) -> Any:
    return start(ScriptedBackend(lambda messages: "好"))


def client_of(base_url: str, api_key: str) -> openai.OpenAI:
    client = httpx.Client(verify=False)
    return openai.OpenAI(base_url=base_url, api_key=api_key, max_retries=0, http_client=client)


def refused(gateway: Any, path: str, body: Any) -> tuple[int, str, str | None]:
    answer = gateway.client.post(f"{gateway.url}{path}", json=body)
    error = answer.json()["error"]
    return answer.status_code, error["message"], error["param"]


@pytest.mark.parametrize(
    ("path", "body", "param", "said"),
    [
        ("chat/completions", {"messages": "hi"}, "messages", "a list is wanted"),
        ("chat/completions", {"messages": ["hi"]}, "messages.0", "an object is wanted"),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": 3}]},
            "messages.0.content",
            "a text or a list is wanted",
        ),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
            "messages.0.content.0.type",
            "it is missing",
        ),
        (
            "chat/completions",
            {"messages": []},
            "messages",
            "List should have at least 1 item, not 0",
        ),
        ("chat/completions", {"model": "m"}, "messages", "it is missing"),
        ("chat/completions", {"messages": ASK, "n": 1.5}, "n", "a whole number is wanted"),
        (
            "chat/completions",
            {"messages": ASK, "temperature": "warm"},
            "temperature",
            "a number is wanted",
        ),
        (
            "chat/completions",
            {"messages": ASK, "temperature": 1e-300},
            "temperature",
            "a temperature is 0 or at least 1e-08",
        ),
        (
            "chat/completions",
            {"messages": ASK, "stream": "si"},
            "stream",
            "true or false is wanted",
        ),
        (
            "completions",
            {"prompt": ["a", "b"]},
            "prompt",
            "List should have at most 1 item, not 2",
        ),
        ("completions", {"prompt": [1]}, "prompt.0", "a text is wanted"),
        ("completions", {"prompt": 3}, "prompt", "a text or a list is wanted"),
        ("embeddings", {"input": [[1, 2]]}, "input.0", "a text is wanted"),
        ("responses", {"input": 3}, "input", "a text or a list is wanted"),
        (
            "responses",
            {"input": [{"type": "function_call_output", "call_id": "c", "output": 7}]},
            "input.0.output",
            "a text or a list is wanted",
        ),
    ],
)
def test_a_field_that_does_not_fit(
    scripted: Any, path: str, body: Any, param: str, said: str
) -> None:
    assert refused(scripted, f"/v1/{path}", body) == (400, f"{param}: {said}.", param)


def test_an_unknown_field_of_a_rollout_and_a_reward_that_is_none(scripted: Any) -> None:
    told = refused(scripted, "/rollout", {"meta": {}})
    assert told == (400, "meta: this field is not known here.", "meta")
    rollout = scripted.rollout()
    answer = rollout.client.post(f"{scripted.url}/rollout/{rollout.id}/reward", json={})
    assert answer.json()["error"]["message"] == "reward: it is missing."


def test_a_request_without_a_body(scripted: Any) -> None:
    answer = scripted.client.post(f"{scripted.url}/v1/chat/completions")
    assert answer.status_code == 400
    told = answer.json()["error"]["message"]
    assert told == "The request has no body: send a JSON object."


def test_the_role_of_an_input_item_is_named_where_the_request_has_it(scripted: Any) -> None:
    status, said, param = refused(
        scripted, "/v1/responses", {"input": [*ASK, {"role": "robot", "content": "a"}]}
    )
    assert (status, param) == (400, "input[1]")
    assert "user, assistant, system, developer, not 'robot'" in said


def test_alternatives_without_log_probabilities_are_refused_not_left_out(
    scripted: Any,
) -> None:
    body = {"messages": ASK, "top_logprobs": 2}
    told = refused(scripted, "/v1/chat/completions", body)
    assert told == (400, "top_logprobs needs logprobs=true.", "top_logprobs")
    for fits in ({"top_logprobs": 0}, {"top_logprobs": 2, "logprobs": True}):
        answer = scripted.client.post(
            f"{scripted.url}/v1/chat/completions", json={"messages": ASK, **fits}
        )
        assert answer.status_code == 200, answer.text


def test_a_base_url_without_its_v1_says_what_it_lacks(scripted: Any) -> None:
    rollout = scripted.rollout()
    for url in (scripted.url, rollout.base_url.removesuffix("/v1")):
        client = openai.OpenAI(
            base_url=url,
            api_key=rollout.api_key,
            max_retries=0,
            http_client=httpx.Client(verify=False),
        )
        with pytest.raises(openai.NotFoundError, match="the base URL of a client ends in /v1"):
            client.chat.completions.create(model="m", messages=ASK)


def test_paths_that_openai_has_and_a_gateway_has_not_are_named(scripted: Any) -> None:
    client = openai.OpenAI(
        base_url=f"{scripted.url}/v1",
        api_key="k",
        max_retries=0,
        http_client=httpx.Client(verify=False),
    )
    with pytest.raises(openai.NotFoundError, match="no path /v1/files here: GET /docs lists"):
        client.files.list()
    answer = scripted.client.get(f"{scripted.url}/v1/chat/completions")
    assert answer.status_code == 405 and answer.headers["Allow"] == "POST"
    assert answer.json()["error"]["message"] == "/v1/chat/completions does not take GET, but POST."


def test_a_rollout_that_is_over_says_so_when_it_is_rewarded_again(scripted: Any) -> None:
    rollout = scripted.rollout()
    url = f"{scripted.url}/rollout/{rollout.id}/reward"
    assert rollout.client.post(url, json={"reward": 1}).status_code == 200
    again = rollout.client.post(url, json={"reward": 1})
    assert again.status_code == 409
    said = again.json()["error"]["message"]
    assert said == (
        f"The rollout {rollout.id} is over: it is rewarded, so it cannot become rewarded."
    )
