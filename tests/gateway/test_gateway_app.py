"""The paths as OpenAI's own client uses them, over the tiny model."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from scripted import ScriptedBackend

from memograd.gateway import answering
from memograd.gateway.admission import GatewayLimits
from memograd.gateway.store import TraceStore

ASK = [{"role": "user", "content": "你好"}]


def client_of(rollout) -> openai.OpenAI:
    return openai.OpenAI(base_url=rollout.base_url, api_key=rollout.api_key, max_retries=0)


def test_a_call_is_answered_and_written_down(gateway, tiny_policy) -> None:
    rollout = gateway.rollout(metadata={"task": 7})
    answer = client_of(rollout).chat.completions.create(
        model="any",
        messages=ASK,
        n=2,
        seed=5,
        temperature=0.7,
        logprobs=True,
        top_logprobs=2,
        extra_headers={"X-Agent-Name": "writer"},
    )
    [call] = gateway.store.calls(rollout.id)
    assert (call.agent, call.number, call.model) == ("writer", 0, answer.model)
    assert call.messages == tuple(ASK)
    assert call.prompt_ids == tuple(tiny_policy.encode(ASK))
    assert call.sampling["seed"] == 5
    assert answer.usage.prompt_tokens == len(call.prompt_ids)
    assert answer.usage.completion_tokens == sum(len(one.token_ids) for one in call.choices)
    for said, kept in zip(answer.choices, call.choices, strict=True):
        assert said.message.content == kept.text
        shown = said.logprobs.content
        assert [token.logprob for token in shown] == list(kept.logprobs)
        assert [len(token.top_logprobs) for token in shown] == [2] * len(kept.token_ids)
    assert gateway.store.rollout(rollout.id).state == "running"


def test_a_stream_is_the_same_answer_in_pieces(gateway) -> None:
    rollout = gateway.rollout()
    client = client_of(rollout)
    whole = client.chat.completions.create(model="m", messages=ASK, seed=3, n=2)
    texts, reasons, usage = ["", ""], [None, None], None
    for chunk in client.chat.completions.create(
        model="m",
        messages=ASK,
        seed=3,
        n=2,
        stream=True,
        stream_options={"include_usage": True},
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            reasons[choice.index] = choice.finish_reason or reasons[choice.index]
    assert texts == [choice.message.content for choice in whole.choices]
    assert reasons == [choice.finish_reason for choice in whole.choices]
    assert usage == whole.usage
    first, second = gateway.store.calls(rollout.id)
    assert [one.token_ids for one in first.choices] == [one.token_ids for one in second.choices]


def test_a_stop_string_ends_the_text_but_not_the_ids(gateway, tiny_policy) -> None:
    rollout = gateway.rollout()
    text = rollout.chat("say", seed=1, temperature=0.9).json()["choices"][0]["message"]["content"]
    stop = text[2:4]
    cut = rollout.chat("say", seed=1, temperature=0.9, stop=[stop]).json()["choices"][0]
    assert cut["message"]["content"] == text[: text.index(stop)]
    assert cut["finish_reason"] == "stop"
    kept = gateway.store.calls(rollout.id)[1].choices[0]
    assert stop in tiny_policy.tokenizer.decode(kept.token_ids)


def test_rewards_and_failures_end_a_rollout(gateway) -> None:
    rollout, broken = gateway.rollout(), gateway.rollout()
    assert rollout.chat("say").status_code == 200
    root = rollout.base_url.removesuffix("/v1")
    assert rollout.client.post(f"{root}/reward", json={"reward": 1}).json()["reward"] == 1.0
    shown = rollout.client.get(root).json()
    assert (shown["state"], shown["calls"], shown["reward"]) == ("rewarded", 1, 1.0)
    assert rollout.client.post(f"{root}/reward", json={"reward": 0}).status_code == 409
    late = rollout.chat("say")
    assert (late.status_code, late.json()["error"]["code"]) == (409, "rollout_over")
    root = broken.base_url.removesuffix("/v1")
    assert broken.client.post(f"{root}/failure", json={"error": "坏了"}).status_code == 200
    assert gateway.store.rollout(broken.id).error == "坏了"


def test_a_deadline_ends_a_rollout(gateway) -> None:
    rollout = gateway.rollout(seconds=0.01)
    time.sleep(0.02)
    assert rollout.chat("say").status_code == 409
    assert gateway.store.rollout(rollout.id).state == "timed_out"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"frequency_penalty": 0.5}, "frequency_penalty"),
        ({"n": 100}, "n"),
        ({"stop": ["x"] * 65}, "stop"),  # each is looked for after each token, of everybody
        ({"temperature": 3}, "temperature"),
        ({"messages": []}, "messages"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(gateway, fields, param) -> None:
    rollout = gateway.rollout()
    refused = rollout.chat("say", **fields)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == param
    assert gateway.store.calls(rollout.id) == []


def test_a_conversation_too_long_says_so(gateway) -> None:
    refused = gateway.rollout().chat("x" * 5000).json()
    assert refused["error"]["code"] == "context_length_exceeded"


def test_plain_paths_keep_nothing(gateway) -> None:
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any")
    assert client.chat.completions.create(model="m", messages=ASK).choices
    assert [model.id for model in client.models.list()] == [gateway.backend.model]
    assert gateway.store.rollouts() == []
    assert gateway.client.get(f"{gateway.url}/health").json()["status"] == "ok"


class Letters:
    """A vector of how often a text has each of the first letters."""

    name, dimension = "letters", 4

    def embed(self, texts):
        counts = np.array([[1.0, *(text.count(letter) for letter in "abc")] for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)

    embed_queries = embed


def test_embeddings(local, start) -> None:
    gateway = start(local, embedder=Letters())
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any")
    expected = Letters().embed(["aab", "苹果"])
    for form in ("float", "base64"):
        got = client.embeddings.create(model="m", input=["aab", "苹果"], encoding_format=form)
        vectors = [one.embedding for one in got.data]
        if form == "base64":
            import base64

            vectors = [
                np.frombuffer(base64.b64decode(one), "<f4") if isinstance(one, str) else one
                for one in vectors
            ]
        assert np.allclose(vectors, expected)
    with pytest.raises(openai.BadRequestError, match="vectors of 4"):
        client.embeddings.create(model="m", input="a", dimensions=3)


def test_without_an_embedder_there_are_no_embeddings(gateway) -> None:
    answer = gateway.client.post(f"{gateway.url}/v1/embeddings", json={"input": "a"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "invalid_request_error")


class Slow:
    """A backend that does not answer, or fails at once."""

    model, policy_version, answers = "slow", 0, False

    def __init__(self, backend) -> None:
        self.backend, self.cancelled = backend, threading.Event()
        self.started = threading.Event()

    def prepare(self, request, conversation):
        return self

    async def run(self, seed, on_text=None):
        import asyncio

        self.started.set()
        if self.answers:
            raise RuntimeError("it has been asked")
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    def recall(self, call, conversation) -> None:
        raise AssertionError

    def close(self) -> None:
        """Nothing to free."""


@contextlib.contextmanager
def asking(rollout, slow: Slow, **fields: Any) -> Iterator[None]:
    """Within this block a call is being answered; at its end its reader goes away."""
    url = httpx.URL(f"{rollout.base_url}/chat/completions")
    body = json.dumps({"messages": [{"role": "user", "content": "say"}], **fields})
    slow.started.clear()
    slow.cancelled.clear()
    with socket.create_connection((url.host, url.port)) as connection:
        connection.sendall(
            f"POST {url.path} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {rollout.api_key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        assert slow.started.wait(60)
        yield


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_whose_reader_goes_stops_and_is_in_no_trace(local, start, stream: bool) -> None:
    slow = Slow(local)
    gateway = start(slow, limits=GatewayLimits(max_calls=1))
    rollout = gateway.rollout()
    with asking(rollout, slow, stream=stream):
        assert rollout.chat("say").status_code == 429
    assert slow.cancelled.wait(60)
    assert gateway.store.calls(rollout.id) == []
    # Its place is free again, if not at once.
    slow.answers = True
    give_up_at = time.monotonic() + 60
    while (status := rollout.chat("say").status_code) == 429 and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert status == 500


def test_an_answer_that_takes_too_long_is_a_504(local, start) -> None:
    slow = Slow(local)
    gateway = start(slow, limits=GatewayLimits(call_seconds=0.1))
    assert gateway.rollout().chat("say").status_code == 504
    assert slow.cancelled.wait(60)


def test_a_call_beyond_the_limit_is_a_429(local, start) -> None:
    slow = Slow(local)
    gateway = start(slow, limits=GatewayLimits(max_calls=1))
    one, other = gateway.rollout(), gateway.rollout()
    with asking(one, slow):
        assert other.chat("say").status_code == 429


def test_a_bug_says_nothing_of_itself(local, start) -> None:
    class Broken(Slow):
        async def run(self, seed, on_text=None):
            raise RuntimeError("secret")

    answer = start(Broken(local)).rollout().chat("say")
    assert answer.status_code == 500
    assert "secret" not in answer.text


CALLS = (
    '<tool_call>\n{"name": "look_up", "arguments": {"药": "\\ud83d"}}\n</tool_call>'
    '<tool_call>\n{"name": "other", "arguments": {}}\n</tool_call>'
)
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("look_up", "other")
]


def test_parallel_calls_come_whole_and_as_a_stream(start) -> None:
    """Whatever the model wrote as arguments: half a surrogate pair is JSON, and no UTF-8."""
    rollout = start(ScriptedBackend(lambda _: CALLS)).rollout()
    client = client_of(rollout)
    whole = client.chat.completions.create(model="m", messages=ASK, tools=TOOLS)
    found = whole.choices[0].message.tool_calls
    streamed: dict[int, list[str]] = {}
    for chunk in client.chat.completions.create(model="m", messages=ASK, tools=TOOLS, stream=True):
        for call in chunk.choices[0].delta.tool_calls or []:
            parts = streamed.setdefault(call.index, ["", "", ""])
            for n, more in enumerate((call.id, call.function.name, call.function.arguments)):
                parts[n] += more or ""
    assert [parts[1:] for _, parts in sorted(streamed.items())] == [
        [call.function.name, call.function.arguments] for call in found
    ]
    assert len({parts[0] for parts in streamed.values()}) == 2
    assert json.loads(found[0].function.arguments) == {"药": "\ud83d"}


def test_a_call_sent_back_without_arguments_is_one_with_none(gateway) -> None:
    rollout = gateway.rollout()
    called = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]}
    answer = rollout.chat("say", called, {"role": "tool", "tool_call_id": "a", "content": "1"})
    assert answer.status_code == 200
    [call] = gateway.store.calls(rollout.id)
    assert call.messages[1]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}


def test_agents_may_have_chinese_names(gateway) -> None:
    rollout = gateway.rollout()
    for name in ("写手".encode(), "é".encode("latin-1")):
        own = {"Authorization": f"Bearer {rollout.api_key}", "X-Agent-Name": name}
        path = f"{rollout.base_url}/chat/completions"
        assert rollout.client.post(path, json={"messages": ASK}, headers=own).status_code == 200
    assert [call.agent for call in gateway.store.calls(rollout.id)] == ["写手", "é"]


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ('{"metadata": {"a": NaN}}', "application/json", "not JSON: NaN"),
        ('{"metadata": {"a": -Infinity}}', "application/json", "not JSON: -Infinity"),
        ('{"metadata": ', "application/json", "not JSON"),
        ("[]", "application/json", "no JSON object"),
        ('{"metadata": {}}', "application/x-www-form-urlencoded", "Content-Type"),
    ],
)
def test_what_is_no_json_is_said_to_be_none(gateway, body: str, kind: str, said: str) -> None:
    headers = {"Content-Type": kind}
    answer = gateway.client.post(f"{gateway.url}/rollout", content=body, headers=headers)
    assert answer.status_code == 400 and said in answer.json()["error"]["message"]
    assert gateway.store.rollouts() == []


def test_metadata_come_back_as_they_were_sent(gateway) -> None:
    metadata = {"任务": "\ud83d", "n": 2**70}
    content = json.dumps({"metadata": metadata})
    headers = {"Content-Type": "application/json"}
    made = gateway.client.post(f"{gateway.url}/rollout", content=content, headers=headers).json()
    headers = {"Authorization": f"Bearer {made['api_key']}"}
    shown = gateway.client.get(f"{gateway.url}/rollout/{made['id']}", headers=headers)
    assert shown.json()["metadata"] == metadata


def test_a_rollout_that_waits_for_an_answer_is_not_idle(
    local, start, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(answering, "SWEEP_SECONDS", 0.01)
    now = [1000.0]
    slow = Slow(local)
    store = TraceStore(f"sqlite:///{tmp_path}/idle.db", idle_seconds=100, clock=lambda: now[0])
    rollout = start(slow, store).rollout()
    with asking(rollout, slow):
        for _ in range(3):  # much longer than it may be silent
            now[0] += 60
            give_up_at = time.monotonic() + 60
            while store.rollout(rollout.id).updated_at < now[0]:
                assert time.monotonic() < give_up_at
                time.sleep(0.01)
        assert store.rollout(rollout.id).state == "running"
    assert slow.cancelled.wait(60)
    now[0] += 101
    assert store.rollout(rollout.id).state == "timed_out"


@pytest.mark.parametrize("stream", [False, True])
def test_a_bug_is_an_error_of_the_server_whole_or_as_a_stream(local, start, stream) -> None:
    slow = Slow(local)
    slow.answers = True
    answer = start(slow).rollout().chat("say", stream=stream)
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "server_error"


def test_a_failure_after_the_first_text_is_an_event(local, start) -> None:
    class Halfway(Slow):
        async def run(self, seed, on_text=None):
            on_text(0, "好")
            raise RuntimeError("no more")

    answer = start(Halfway(local)).rollout().chat("say", stream=True)
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line]
    assert answer.status_code == 200 and "no more" not in answer.text
    assert events[1]["choices"][0]["delta"] == {"content": "好"}
    assert events[-1]["error"]["type"] == "server_error"


def test_nobody_waits_while_a_long_conversation_is_rendered(local, start) -> None:
    class Rendering(Slow):
        answers, go_on = True, threading.Event()

        def prepare(self, request, conversation):
            self.started.set()
            assert self.go_on.wait(60)
            return self

    rendering = Rendering(local)
    gateway = start(rendering)
    rollout = gateway.rollout()
    body = [{"type": "text", "text": "药" * 60_000}]
    asker = threading.Thread(target=rollout.chat, args=({"role": "user", "content": body},))
    asker.start()
    assert rendering.started.wait(60)
    assert gateway.client.get(f"{gateway.url}/health").status_code == 200
    rendering.go_on.set()
    asker.join(60)
