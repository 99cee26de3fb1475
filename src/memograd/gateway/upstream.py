"""The backend over another OpenAI-compatible server: vLLM, or any hosted model.

The request is passed on as it came and the answer written down as it is. With `token_ids`, the
server is asked for what training needs, in vLLM's words (`return_token_ids`, `logprobs`), and for
the model's own distribution where the agent asks for no other; its log-probabilities are those of
the model itself, at temperature 1. Without it a trace holds text
only, and training from it refuses. Answers are fetched whole, also where the agent reads them as a
stream.

Invariant: one broken connection is tried again; a failure of the server reaches the agent with its
status, its words and its code, never its key, and an answer that is not understood, or cannot be
written down, is a 502.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from memograd.errors import BadInput
from memograd.gateway.backend import BackendAnswer, OnText
from memograd.gateway.conversation import TracedConversation
from memograd.gateway.database import dump
from memograd.gateway.protocol import CallRefused, ChatRequest, TextRequest, ToolCallMessage
from memograd.gateway.records import CallRecord, Choice
from memograd.gateway.traces_to_rollouts import UNCHANGED

logger = logging.getLogger(__name__)

RAW_TEMPERATURE = 1.0
"""vLLM reports log-probabilities before temperature and nucleus, unless it was told otherwise."""
OWN_DISTRIBUTION: Final = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
}
"""What is asked for where an agent says nothing: vLLM would take what the model's authors recommend
(`generation_config.json`), and a trace would not say so."""

LONGEST_REASON: Final = 1000
"""Characters of a server's own words in a refusal."""
LARGEST_ANSWER: Final = 256 * 1024 * 1024
"""Bytes of an answer, unpacked; one with alternatives to its tokens may have ten millions."""
LARGEST_NUMBER: Final = 2**31 - 1
"""Of tokens, and of a token's id: what a database of ours takes."""


class UpstreamBackend:
    """A server behind the gateway.

    base_url: up to and including `/v1`. model: what it is asked for, whatever the agent asks.
    seconds: how long one answer may take.
    """

    policy_version = 0

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str = "",
        token_ids: bool = False,
        seconds: float = 600.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        try:
            known = httpx.URL(base_url).host if base_url.startswith(("http://", "https://")) else ""
        except httpx.InvalidURL:
            known = ""
        if not known:
            raise BadInput(f"The upstream {base_url!r} is no URL: write http://host:port/v1.")
        self.model = model
        self.token_ids = token_ids
        self._api_key = api_key
        self._base_url = base_url.rstrip("/")
        self._seconds = seconds
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    def prepare(self, request: ChatRequest, conversation: TracedConversation) -> UpstreamRequest:
        """The request as it came, not as a stream, with what traces need."""
        body = request.model_dump(exclude_unset=True)
        for name in ("stream", "stream_options"):
            body.pop(name, None)
        body["model"] = self.model
        if self.token_ids:
            body |= {"logprobs": True, "return_token_ids": True}
            own = OWN_DISTRIBUTION
            body |= {name: value for name, value in own.items() if body.get(name) is None}
        if not isinstance(request, TextRequest):
            return UpstreamRequest(self, body, "chat/completions")
        body["prompt"] = body.pop("text")
        body.pop("messages")
        tops = body.pop("top_logprobs", None)
        if body.pop("logprobs", False):
            body["logprobs"] = tops or 0
        return UpstreamRequest(self, body, "completions")

    def recall(self, call: CallRecord, conversation: TracedConversation) -> None:
        """The server tokenises every conversation itself."""

    def close(self) -> None:
        """The client's connections close with the event loop that they belong to."""

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The server's answer; raises `CallRefused` with its status if it refuses or fails."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=self._seconds,
                transport=self._transport,
                limits=httpx.Limits(max_connections=None),
            )
        headers = {"Content-Type": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        try:
            status, said = await self._sent(self._client, path, dump(body).encode(), headers)
        except httpx.TimeoutException:
            raise self._failure(504, f"did not answer within {self._seconds:g} s") from None
        except httpx.HTTPError as error:
            raise self._failure(502, f"cannot be reached ({type(error).__name__})") from None
        try:
            answer = json.loads(said)
        except (ValueError, RecursionError):
            what = f"with {status} and no JSON: its address may be wrong"
            raise self._failure(502, f"answered {what}") from None
        if status != 200:
            raise self._refusal(status, answer)
        if not isinstance(answer, dict) or not answer.get("choices"):
            raise self._failure(502, "gave an answer without choices")
        return answer

    async def _sent(
        self, client: httpx.AsyncClient, path: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """The server's status and body, asked for once more over a new connection if one breaks:
        servers close those that were idle for long, and restart."""
        try:
            return await self._asked(client, path, content, headers)
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            logger.info("the connection to %s broke (%r); trying again", self._base_url, error)
            return await self._asked(client, path, content, headers)

    async def _asked(
        self, client: httpx.AsyncClient, path: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        url, body = f"{self._base_url}/{path}", bytearray()
        async with client.stream("POST", url, content=content, headers=headers) as response:
            async for part in response.aiter_bytes():
                body += part
                if len(body) > LARGEST_ANSWER:
                    raise self._failure(502, f"answered more than {LARGEST_ANSWER} bytes")
            return response.status_code, bytes(body)

    def _refusal(self, status: int, answer: Any) -> CallRefused:
        """What the server refused, with its own status, code and param."""
        told = answer.get("error", answer) if isinstance(answer, dict) else answer
        details: dict[str, Any] = told if isinstance(told, dict) else {"message": told}
        said = details.get("message") or details.get("detail") or answer
        text = said if isinstance(said, str) else dump(said)
        text = self._without_key(text)[:LONGEST_REASON]
        what = f"refused with {status}: {text.rstrip().rstrip('.')}"
        code, param = (
            found if isinstance(found := details.get(name), str) else None
            for name in ("code", "param")
        )
        if status in (401, 403):
            # A wrong key of the gateway's own is not the agent's fault.
            return self._failure(502, f"{what}; its key is MEMOGRAD_UPSTREAM_KEY", code=code)
        passed_on = status if 400 <= status < 600 else 502
        return self._failure(passed_on, what, code=code, param=param)

    def _failure(
        self, status: int, what: str, *, code: str | None = None, param: str | None = None
    ) -> CallRefused:
        message = self._without_key(f"The server behind the gateway {what}.")
        return CallRefused(status, message, kind="upstream_error", code=code, param=param)

    def _without_key(self, text: str) -> str:
        return text.replace(self._api_key, "***") if self._api_key else text


@dataclass(frozen=True)
class UpstreamRequest:
    """A request as it will be passed on, to a path of the server's API."""

    backend: UpstreamBackend
    body: dict[str, Any]
    path: str

    async def run(self, seed: int, on_text: OnText | None = None) -> BackendAnswer:
        """Ask the server."""
        body = dict(self.body)
        if self.backend.token_ids and body.get("seed") is None:
            body["seed"] = seed % 2**31
        answer = await self.backend.post(self.path, body)
        try:
            found = [_choice_of(choice) for choice in answer["choices"]]
            usage = answer.get("usage") or {}
            prompt_ids = answer.get("prompt_token_ids")
            if prompt_ids is None:  # of a plain text, vLLM tells it with each choice
                prompt_ids = answer["choices"][0].get("prompt_token_ids")
            scored = all(choice.logprobs is not None for choice, _, _ in found)
            read = BackendAnswer(
                choices=tuple(choice for choice, _, _ in found),
                model=str(answer.get("model") or self.backend.model),
                prompt_tokens=_number(usage.get("prompt_tokens") or len(prompt_ids or ())),
                completion_tokens=_number(usage.get("completion_tokens") or 0),
                sampling={name: body[name] for name in _SAMPLING if name in body},
                prompt_ids=None if prompt_ids is None else tuple(map(_number, prompt_ids)),
                logprobs_temperature=RAW_TEMPERATURE if scored else None,
                token_texts=tuple(texts for _, texts, _ in found),
                tops=tuple(tops for _, _, tops in found),
            )
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise CallRefused(
                502,
                f"The server behind the gateway gave an answer that is not understood ({error!r}).",
                kind="upstream_error",
            ) from error
        if on_text is not None:
            for place, choice in enumerate(read.choices):
                on_text(place, choice.text)
        return read


_SAMPLING = (
    *("temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "stop", "n"),
    *UNCHANGED,
)


def _choice_of(
    choice: Mapping[str, Any],
) -> tuple[Choice, list[str], list[list[tuple[str, float]]]]:
    """One choice, the texts of its tokens, and their alternatives."""
    message = choice["message"] if "message" in choice else {"content": choice["text"]}
    tokens = _tokens(choice.get("logprobs") or {})
    ids = choice.get("token_ids")
    logprobs = tuple(_finite(token["logprob"]) for token in tokens) or None
    if ids is not None and logprobs is not None and len(ids) != len(logprobs):
        raise ValueError(f"{len(ids)} token ids with {len(logprobs)} log-probabilities")
    return (
        Choice(
            text=_text(message.get("content") or ""),
            finish_reason=str(choice.get("finish_reason") or "stop"),
            tool_calls=tuple(
                ToolCallMessage.model_validate(call).model_dump()
                for call in message.get("tool_calls") or ()
            ),
            token_ids=None if ids is None else tuple(map(_number, ids)),
            logprobs=logprobs,
        ),
        [str(token["token"]) for token in tokens],
        [
            [
                (str(top["token"]), _finite(top["logprob"]))
                for top in token.get("top_logprobs") or []
            ]
            for token in tokens
        ],
    )


def _text(content: Any) -> str:
    if not isinstance(content, str):
        raise ValueError(f"a content that is no text but {type(content).__name__}")
    return content


def _number(given: Any) -> int:
    number = int(given)
    if not 0 <= number <= LARGEST_NUMBER:
        raise ValueError(f"{str(number)[:30]} as a number of tokens or the id of one")
    return number


def _finite(given: Any) -> float:
    number = float(given)
    if not math.isfinite(number):
        raise ValueError(f"{number} as a log-probability")
    return number


def _tokens(logprobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A choice's tokens as chats tell them; of a plain text each thing is a list of its own."""
    if "tokens" not in logprobs:
        return logprobs.get("content") or []
    tops = logprobs.get("top_logprobs") or [None] * len(logprobs["tokens"])
    return [
        {
            "token": token,
            "logprob": logprob,
            "top_logprobs": [{"token": t, "logprob": value} for t, value in (top or {}).items()],
        }
        for token, logprob, top in zip(
            logprobs["tokens"], logprobs["token_logprobs"], tops, strict=True
        )
    ]
