"""A backend that says what a test wrote: for paths that a random model never takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import openai

from memograd.gateway.backend import BackendAnswer, OnText
from memograd.gateway.conversation import TracedConversation, from_answer
from memograd.gateway.protocol import ChatRequest
from memograd.gateway.records import CallRecord, Choice

Script = Callable[[Sequence[Mapping[str, Any]]], str]


@dataclass
class ScriptedRequest:
    text: str
    tools: bool

    async def run(self, seed: int, on_text: OnText | None = None) -> BackendAnswer:
        said, calls = from_answer(self.text, tools=self.tools)
        if on_text is not None:
            on_text(0, said)
        choice = Choice(said, "tool_calls" if calls else "stop", calls)
        return BackendAnswer((choice,), "scripted", 1, 1, {})


class ScriptedBackend:
    """Answers a conversation with what `script` makes of its messages."""

    model, policy_version = "scripted", 0

    def __init__(self, script: Script) -> None:
        self.script = script

    def prepare(self, request: ChatRequest, conversation: TracedConversation) -> ScriptedRequest:
        return ScriptedRequest(self.script(request.said()), bool(request.tools))

    def recall(self, call: CallRecord, conversation: TracedConversation) -> None:
        """Nothing to go on from."""

    def close(self) -> None:
        """Nothing to free."""


def looks_up(messages: Sequence[Mapping[str, Any]]) -> str:
    """Calls the tool for patient 8 once, then says what it said."""
    if messages[-1]["role"] == "tool":
        return f"The drug is {messages[-1]['content']}."
    return '<tool_call>\n{"name": "look_up", "arguments": {"patient": 8}}\n</tool_call>'


def client_of(rollout) -> openai.OpenAI:
    """OpenAI's own client, for an agent of that rollout."""
    return openai.OpenAI(
        base_url=rollout.base_url,
        api_key=rollout.api_key,
        max_retries=0,
        http_client=httpx.Client(verify=False, timeout=60),
    )
