"""In front of another server: what it says is passed on, and what it knows is kept."""

from __future__ import annotations

import json
import socket
import threading

import httpx
import pytest

from memograd.errors import BadInput
from memograd.gateway import upstream
from memograd.gateway.traces_to_rollouts import CannotTrain, rollout_of_trace
from memograd.gateway.upstream import UpstreamBackend

ANSWER = {
    "model": "served",
    "prompt_token_ids": [1, 2, 3],
    "choices": [
        {
            "message": {"role": "assistant", "content": "好"},
            "finish_reason": "stop",
            "token_ids": [4, 5],
            "logprobs": {
                "content": [
                    {"token": "好", "logprob": -0.25, "top_logprobs": []},
                    {"token": "", "logprob": -0.5, "top_logprobs": []},
                ]
            },
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}


class Server:
    """Answers with `status` and `body`, and keeps what it was asked."""

    def __init__(self) -> None:
        self.status, self.body = 200, json.dumps(ANSWER)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return httpx.Response(self.status, text=self.body)


@pytest.fixture
def server() -> Server:
    return Server()


def started(start, server: Server, **given):
    transport = httpx.MockTransport(server)
    return start(UpstreamBackend("http://up/v1/", "m", transport=transport, **given))


def test_token_ids_are_asked_for_and_kept(start, server) -> None:
    gateway = started(start, server, token_ids=True, api_key="geheim")
    rollout = gateway.rollout()
    said = rollout.chat("hi", temperature=1, stream=False, priority=3).json()
    assert said["choices"][0]["message"]["content"] == "好"
    asked = json.loads(server.asked[0].content)
    assert asked["return_token_ids"] is True and asked["logprobs"] is True
    assert (asked["model"], asked["priority"], "stream" in asked) == ("m", 3, False)
    assert server.asked[0].headers["Authorization"] == "Bearer geheim"
    assert str(server.asked[0].url) == "http://up/v1/chat/completions"
    gateway.store.reward(rollout.id, 1.0)
    record, calls = gateway.store.rollout(rollout.id), gateway.store.calls(rollout.id)
    [turn] = rollout_of_trace(record, calls, temperature=1.0).turns
    assert (turn.observation_ids, turn.action_ids) == ((1, 2, 3), (4, 5))
    assert turn.logprobs.tolist() == [-0.25, -0.5]


def test_where_the_agent_says_nothing_the_models_own_distribution_is_asked_for(
    start, server
) -> None:
    """vLLM would take the recommendations in the model's folder, unseen."""
    gateway = started(start, server, token_ids=True)
    rollout = gateway.rollout(seed=7)
    rollout.chat("hi", temperature=None, top_k=20)
    rollout.chat("hi", repetition_penalty=1.1, tool_choice="required")
    first, second = (json.loads(one.content) for one in server.asked)
    neutral = {"temperature": 1.0, "top_p": 1.0, "min_p": 0.0}
    assert first.items() >= {**neutral, "top_k": 20, "repetition_penalty": 1.0}.items()
    assert second.items() >= {**neutral, "top_k": -1, "repetition_penalty": 1.1}.items()
    calls = gateway.store.calls(rollout.id)
    record = gateway.store.reward(rollout.id, 1.0)
    for call, said in zip(calls, ("top_k=20", "repetition_penalty=1.1"), strict=True):
        with pytest.raises(CannotTrain, match=said):
            rollout_of_trace(record, [call], temperature=1.0)


def test_a_text_is_passed_on_and_its_older_form_read(start, server) -> None:
    server.body = json.dumps(
        {
            "model": "served",
            "choices": [
                {
                    "text": "好",
                    "finish_reason": "length",
                    "token_ids": [4, 5],
                    "prompt_token_ids": [1, 2, 3],
                    "logprobs": {
                        "tokens": ["好", ""],
                        "token_logprobs": [-0.25, -0.5],
                        "top_logprobs": [{"好": -0.25}, None],
                    },
                }
            ],
        }
    )
    rollout = started(start, server, token_ids=True).rollout()
    url = f"{rollout.base_url}/completions"
    answer = rollout.client.post(url, json={"prompt": "你", "logprobs": 1, "n": 1}).json()
    assert answer["choices"][0]["logprobs"]["top_logprobs"] == [{"好": -0.25}, {}]
    asked = json.loads(server.asked[0].content)
    assert str(server.asked[0].url) == "http://up/v1/completions"
    assert (asked["prompt"], asked["logprobs"], asked["max_tokens"]) == ("你", 1, 16)
    assert not {"messages", "text", "top_logprobs"} & set(asked)


def test_a_response_is_asked_for_as_a_chat(start, server) -> None:
    rollout = started(start, server).rollout()
    url = f"{rollout.base_url}/responses"
    told = rollout.client.post(url, json={"input": "你", "max_output_tokens": 5}).json()
    assert told["output"][0]["content"][0]["text"] == "好"
    asked = json.loads(server.asked[0].content)
    assert str(server.asked[0].url) == "http://up/v1/chat/completions"
    assert asked["max_completion_tokens"] == 5
    assert asked["messages"] == [{"role": "user", "content": "你"}]


def test_without_ids_a_trace_is_kept_and_training_refuses(start, server) -> None:
    bare = json.loads(server.body)
    del bare["prompt_token_ids"], bare["choices"][0]["token_ids"], bare["choices"][0]["logprobs"]
    server.body = json.dumps(bare)
    gateway = started(start, server)
    rollout = gateway.rollout()
    events = rollout.chat("hi", stream=True).text
    assert '"content": "好"' in events and events.endswith("[DONE]\n\n")
    assert "return_token_ids" not in json.loads(server.asked[0].content)
    gateway.store.reward(rollout.id, 1.0)
    [call] = gateway.store.calls(rollout.id)
    assert call.choices[0].token_ids is None
    with pytest.raises(CannotTrain, match="--token-ids"):
        rollout_of_trace(gateway.store.rollout(rollout.id), [call], temperature=1.0)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (429, '{"error": {"message": "slower."}}', (429, r"refused with 429: slower\.$")),
        (
            401,
            '{"error": {"message": "wrong key geheim"}}',
            (502, r"401: wrong key \*\*\*; its key is MEMOGRAD_UPSTREAM_KEY\.$"),
        ),
        (404, '{"detail": "Not Found"}', (404, r"refused with 404: Not Found\.$")),
        (400, '{"error": "too long"}', (400, r"refused with 400: too long\.$")),
        (400, '[{"message": "odd"}]', (400, r'refused with 400: \[{"message": "odd"}\]\.$')),
        # A key is not told in part either.
        (400, f'"{"x" * 995}geheim"', (400, r"x\*\*\*\.$")),
        (500, "{}", (500, r"refused with 500: {}\.$")),
        (502, "<html>", (502, "with 502 and no JSON: its address may be wrong")),
        (200, "no json", (502, "with 200 and no JSON: its address may be wrong")),
        (200, "{}", (502, "without choices")),
        (200, '{"choices": [{}]}', (502, "not understood")),
        (200, '{"choices": [{"message": 3}]}', (502, "not understood")),
    ],
)
def test_its_failures_are_told_without_its_key(start, server, status, body, expected) -> None:
    import re

    server.status, server.body = status, body
    gateway = started(start, server, api_key="geheim")
    rollout = gateway.rollout()
    refused = rollout.chat("hi")
    assert refused.status_code == expected[0]
    assert re.search(expected[1], refused.json()["error"]["message"])
    assert "geheim" not in refused.text
    assert gateway.store.calls(rollout.id) == []


def test_more_log_probabilities_than_ids_are_not_taken(start, server) -> None:
    body = json.loads(server.body)
    body["choices"][0]["token_ids"] = [4]
    server.body = json.dumps(body)
    refused = started(start, server, token_ids=True).rollout().chat("hi")
    assert (refused.status_code, refused.json()["error"]["type"]) == (502, "upstream_error")


@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_has_its_status_and_code_also_where_a_stream_was_asked_for(
    start, server, stream: bool
) -> None:
    """A client that is told 429 or 400 knows what to do; one told 200 does not try again."""
    gateway = started(start, server)
    rollout = gateway.rollout()
    for status, code in ((429, "busy"), (400, "context_length_exceeded")):
        server.status = status
        server.body = json.dumps({"error": {"message": "太长", "code": code, "param": "messages"}})
        refused = rollout.chat("hi", stream=stream)
        assert refused.status_code == status
        told = refused.json()["error"]
        assert (told["code"], told["param"]) == (code, "messages") and "太长" in told["message"]
    assert gateway.store.calls(rollout.id) == []


def test_half_a_surrogate_pair_is_passed_on(start, server) -> None:
    gateway = started(start, server)
    rollout = gateway.rollout()
    server.body = json.dumps(ANSWER).replace("\\u597d", "\\ud83d")
    headers = {"Content-Type": "application/json"}
    body = '{"messages": [{"role": "user", "content": "hi"}], "metadata": {"a": "\\ud83d"}}'
    answer = rollout.client.post(
        f"{rollout.base_url}/chat/completions", content=body, headers=headers
    )
    assert answer.json()["choices"][0]["message"]["content"] == "\ud83d"
    assert json.loads(server.asked[0].content)["metadata"] == {"a": "\ud83d"}
    assert "\\ud83d" in rollout.chat("hi", stream=True).text


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ('"prompt_tokens": 3', '"prompt_tokens": ' + "9" * 30),
        ('"prompt_tokens": 3', '"prompt_tokens": -3'),
        ('"prompt_tokens": 3', '"prompt_tokens": 1e300'),
        ('"prompt_token_ids": [1, 2, 3]', '"prompt_token_ids": [-1]'),
        ('"token_ids": [4, 5]', '"token_ids": [4, 99999999999999999999]'),
        ("-0.25", "NaN"),
        ("-0.25", "1e999"),
        ('"content": "\\u597d"', '"content": [{"type": "text", "text": "a"}]'),
        ('"model": "served"', '"model": ' + "[" * 100_000 + "]" * 100_000),
    ],
)
def test_what_no_trace_could_hold_is_a_502(start, server, said: str, instead: str) -> None:
    gateway = started(start, server)
    server.body = json.dumps(ANSWER).replace(said, instead, 1)
    assert server.body != json.dumps(ANSWER)
    rollout = gateway.rollout()
    assert rollout.chat("hi").status_code == 502
    assert gateway.store.calls(rollout.id) == []


def test_an_answer_without_end_is_read_no_further(start, server, monkeypatch) -> None:
    monkeypatch.setattr(upstream, "LARGEST_ANSWER", 1000)
    gateway = started(start, server)
    assert gateway.rollout().chat("hi").status_code == 200
    server.body = json.dumps(ANSWER) + " " * 1000
    refused = gateway.rollout().chat("hi")
    assert (refused.status_code, "more than 1000 bytes" in refused.text) == (502, True)


@pytest.mark.parametrize("calls", ['["x"]', '[{"id": "a"}]', '[{"id": 1, "function": {}}]', "7"])
def test_tool_calls_that_are_none_are_a_502(start, server, calls: str) -> None:
    gateway = started(start, server)
    server.body = json.dumps(ANSWER).replace('"content": "\\u597d"', f'"tool_calls": {calls}')
    assert "tool_calls" in server.body
    rollout = gateway.rollout()
    assert rollout.chat("hi").status_code == 502
    assert gateway.store.calls(rollout.id) == []


@pytest.mark.parametrize("url", ["http://", "http:///v1", "http://x:port/v1", "ftp://x", "x"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadInput, match="is no URL"):
        UpstreamBackend(url, "m")


class Breaking:
    """A server on a socket whose first `breaks` connections end within the answer or before it."""

    def __init__(self, breaks: int, said: bytes) -> None:
        self.breaks, self.said, self.asked = breaks, said, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        body = json.dumps(ANSWER).encode()
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                self.asked += 1
                connection.sendall(self.said if self.asked <= self.breaks else whole)


@pytest.mark.parametrize(
    "said",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"],
    ids=["none", "half"],
)
@pytest.mark.parametrize(("breaks", "status", "asked"), [(1, 200, 2), (2, 502, 2), (0, 200, 1)])
def test_one_broken_connection_is_tried_again(start, said, breaks, status, asked) -> None:
    server = Breaking(breaks, said)
    rollout = start(UpstreamBackend(server.url, "m")).rollout()
    try:
        assert rollout.chat("hi").status_code == status
    finally:
        server.listening.close()
    assert server.asked == asked


@pytest.mark.parametrize("status", [400, 429, 500, 503])
def test_what_the_server_refuses_is_not_asked_again(start, server, status: int) -> None:
    server.status = status
    assert started(start, server).rollout().chat("hi").status_code == status
    assert len(server.asked) == 1
