"""Answers in OpenAI's form: one JSON object, or the events of a stream.

Invariant: the pieces of a stream, put together, are the object's message.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from memograd.gateway.backend import BackendAnswer
from memograd.gateway.conversation import answer_message
from memograd.gateway.rows import dump

if TYPE_CHECKING:
    import numpy as np

DONE = "data: [DONE]\n\n"


class Json(JSONResponse):
    """JSON of anything that was said, half a surrogate pair included, which is escaped."""

    def render(self, content: Any) -> bytes:
        """The bytes to send."""
        return dump(content).encode("utf-8")


def completion(answer: BackendAnswer, answer_id: str, *, logprobs: bool) -> dict[str, Any]:
    """A `chat.completion`; token ids in vLLM's words where they are known."""
    body: dict[str, Any] = {
        **_head("chat.completion", answer_id, answer.model),
        "choices": [
            {
                "index": place,
                "message": {**answer_message(choice), "refusal": None},
                "finish_reason": choice.finish_reason,
                "logprobs": _logprobs(answer, place) if logprobs else None,
            }
            for place, choice in enumerate(answer.choices)
        ],
        "usage": usage(answer),
    }
    return body


def piece(answer_id: str, model: str, place: int, delta: dict[str, Any]) -> str:
    """An event with more of a choice's message."""
    choice = {"index": place, "delta": delta, "finish_reason": None, "logprobs": None}
    return event({**_head("chat.completion.chunk", answer_id, model), "choices": [choice]})


def endings(
    answer: BackendAnswer, answer_id: str, *, logprobs: bool, with_usage: bool
) -> Iterator[str]:
    """The events after the last text: tool calls, reasons, usage."""
    head = _head("chat.completion.chunk", answer_id, answer.model)
    for place, choice in enumerate(answer.choices):
        delta: dict[str, Any] = {}
        if choice.tool_calls:
            calls = [{"index": n, **call} for n, call in enumerate(choice.tool_calls)]
            delta = {"tool_calls": calls}
        ended = {
            "index": place,
            "delta": delta,
            "finish_reason": choice.finish_reason,
            "logprobs": _logprobs(answer, place) if logprobs else None,
        }
        yield event({**head, "choices": [ended]})
    if with_usage:
        yield event({**head, "choices": [], "usage": usage(answer)})


def event(body: dict[str, Any]) -> str:
    """A server-sent event."""
    return f"data: {dump(body)}\n\n"


def usage(answer: BackendAnswer) -> dict[str, int]:
    """Tokens in and out."""
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


def embeddings(vectors: np.ndarray, model: str, *, as_base64: bool) -> dict[str, Any]:
    """A list of `vectors` [n, d]. Embedders do not count tokens, so usage says 0."""
    return {
        "object": "list",
        "model": model,
        "data": [
            {
                "object": "embedding",
                "index": place,
                "embedding": (
                    base64.b64encode(vector.astype("<f4").tobytes()).decode()
                    if as_base64
                    else vector.tolist()
                ),
            }
            for place, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }


def models(names: Sequence[str]) -> dict[str, Any]:
    """The list of models."""
    return {
        "object": "list",
        "data": [
            {"id": name, "object": "model", "created": 0, "owned_by": "memograd"} for name in names
        ],
    }


def _head(kind: str, answer_id: str, model: str) -> dict[str, Any]:
    return {"id": answer_id, "object": kind, "created": int(time.time()), "model": model}


def _logprobs(answer: BackendAnswer, place: int) -> dict[str, Any] | None:
    """OpenAI's form of a choice's log-probabilities."""
    values = answer.choices[place].logprobs
    if values is None:
        return None
    texts = answer.token_texts[place]
    tops = answer.tops[place] or [[]] * len(values)
    return {
        "content": [
            {
                **_token(text, value),
                "top_logprobs": [_token(other, logprob) for other, logprob in alternatives],
            }
            for text, value, alternatives in zip(texts, values, tops, strict=True)
        ],
        "refusal": None,
    }


def _token(text: str, logprob: float) -> dict[str, Any]:
    # JSON has no infinity; OpenAI's servers write -9999 for a token that cannot be.
    shown = max(logprob, -9999.0)
    return {"token": text, "logprob": shown, "bytes": list(text.encode("utf-8", "replace"))}
