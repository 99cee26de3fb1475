"""`/v1/completions`: the model goes on with a text as it stands, without a chat template.

A trace shows such a call as one user's message, the text, and its answer. Invariant: where a text
begins with an earlier one of the rollout and its answer, as agents that write thoughts and
observations one after the other send it, the prompt begins with the ids that were drawn.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from memograd.gateway.answers import DONE, event, head, token_logprobs, usage
from memograd.gateway.backend import BackendAnswer
from memograd.gateway.protocol import (
    Seed,
    StreamOptions,
    Temperature,
    Text,
    TextRequest,
    TopP,
)

API = "completions"
USUAL_TOKENS = 16
"""Tokens of an answer where the request does not say: OpenAI's number."""

Prompt = Annotated[str, Field(min_length=1, max_length=4_000_000)]


class CompletionRequest(BaseModel):
    """A request of `/v1/completions`; one text a call, because a call is one prompt in a trace."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    prompt: Prompt | Annotated[list[Prompt], Field(min_length=1, max_length=1)]
    model: str | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    seed: Seed | None = None
    stop: Text | Annotated[list[Text], Field(max_length=64)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None

    def as_chat(self) -> TextRequest:
        """The request as backends take it."""
        given = self.model_dump(exclude_unset=True)
        text = self.prompt if isinstance(self.prompt, str) else self.prompt[0]
        given.pop("prompt")
        tops = given.pop("logprobs", None)
        if tops is not None:
            given |= {"logprobs": True, "top_logprobs": tops}
        if self.max_tokens is None:
            given["max_tokens"] = USUAL_TOKENS
        message = {"role": "user", "content": text}
        return TextRequest.model_validate({**given, "messages": [message], "text": text})


class CompletionForm:
    """A `text_completion`, whole or in pieces."""

    def __init__(self, model: str, asked: CompletionRequest) -> None:
        self._id = f"cmpl-{secrets.token_hex(12)}"
        self._model = model
        self._asked = asked

    def whole(self, answer: BackendAnswer) -> dict[str, Any]:
        """One object."""
        return {
            **head("text_completion", self._id, answer.model),
            "choices": [
                {
                    "index": place,
                    "text": choice.text,
                    "finish_reason": choice.finish_reason,
                    "logprobs": self._logprobs(answer, place),
                }
                for place, choice in enumerate(answer.choices)
            ],
            "usage": usage(answer),
        }

    def opening(self) -> Iterator[str]:
        """Nothing comes before the text."""
        return iter(())

    def more(self, place: int, text: str) -> Iterator[str]:
        """A piece of a choice's text."""
        yield self._piece(self._model, {"index": place, "text": text})

    def endings(self, answer: BackendAnswer) -> Iterator[str]:
        """Reasons and usage."""
        for place, choice in enumerate(answer.choices):
            ended = {
                "index": place,
                "text": "",
                "finish_reason": choice.finish_reason,
                "logprobs": self._logprobs(answer, place),
            }
            yield self._piece(answer.model, ended)
        if self._asked.stream_options and self._asked.stream_options.include_usage:
            body = head("text_completion", self._id, answer.model)
            yield event({**body, "choices": [], "usage": usage(answer)})
        yield DONE

    def failure(self, body: dict[str, Any]) -> str:
        """The error as an event."""
        return event(body)

    def _piece(self, model: str, choice: dict[str, Any]) -> str:
        whole = {"finish_reason": None, "logprobs": None, **choice}
        return event({**head("text_completion", self._id, model), "choices": [whole]})

    def _logprobs(self, answer: BackendAnswer, place: int) -> dict[str, Any] | None:
        """The older form of log-probabilities: a list of each thing."""
        if self._asked.logprobs is None:
            return None
        tokens = token_logprobs(answer, place)
        if tokens is None:
            return None
        texts = [token["token"] for token in tokens]
        begins = [sum(map(len, texts[:count])) for count in range(len(texts))]
        return {
            "tokens": texts,
            "token_logprobs": [token["logprob"] for token in tokens],
            "top_logprobs": [
                {top["token"]: top["logprob"] for top in token["top_logprobs"]} for token in tokens
            ],
            "text_offset": begins,
        }
