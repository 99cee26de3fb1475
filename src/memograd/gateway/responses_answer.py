"""`/v1/responses`, the answer: a `response` with its output items, whole or as typed events.

    response.created, response.in_progress
      response.output_item.added        a message, when there is text of it
        response.content_part.added
        response.output_text.delta ...
        response.output_text.done, response.content_part.done
      response.output_item.done
      response.output_item.added ...    each call, with its arguments
    response.completed                  or .incomplete: the answer reached its longest

Invariant: the last event holds the very response that is told where no stream was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memograd.gateway.answers import token_logprobs
from memograd.gateway.backend import BackendAnswer
from memograd.gateway.database import dump
from memograd.gateway.responses_request import ResponseRequest


class ResponseForm:
    """`response_id` is what a later request goes on from; `began_at` is in seconds since 1970;
    `remember` is told the answer, and when it was complete, before the agent is."""

    def __init__(
        self,
        response_id: str,
        model: str,
        asked: ResponseRequest,
        began_at: float,
        remember: Callable[[BackendAnswer, float], None] | None = None,
    ) -> None:
        self._id = response_id
        self._part = response_id.removeprefix("resp_")
        self._model = model
        self._asked = asked
        self._remember = remember
        self._began_at = began_at
        self._count = 0
        self._begun = False

    def whole(self, answer: BackendAnswer) -> dict[str, Any]:
        """The response."""
        completed_at = time.time()
        if self._remember is not None:
            self._remember(answer, completed_at)
        return self.told(answer, completed_at)

    def told(self, answer: BackendAnswer, completed_at: float) -> dict[str, Any]:
        """The response, which was complete at that time."""
        cut = answer.choices[0].finish_reason == "length"
        return {
            **self._frame("incomplete" if cut else "completed"),
            "model": answer.model,
            "output": self._items(answer),
            "usage": _usage(answer),
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "completed_at": None if cut else int(completed_at),
        }

    def opening(self) -> Iterator[str]:
        """It has begun."""
        for kind in ("created", "in_progress"):
            yield self._event(f"response.{kind}", response=self._frame("in_progress"))

    def more(self, place: int, text: str) -> Iterator[str]:
        """A delta of the message's text."""
        if not self._begun:
            yield from self._message_begins()
        yield self._of_text("response.output_text.delta", delta=text, logprobs=[])

    def endings(self, answer: BackendAnswer) -> Iterator[str]:
        """The items, and the response."""
        response = self.whole(answer)
        for place, item in enumerate(response["output"]):
            if item["type"] == "message":
                if not self._begun:
                    yield from self._message_begins()
                [part] = item["content"]
                logprobs, text = part["logprobs"], part["text"]
                yield self._of_text("response.output_text.done", text=text, logprobs=logprobs)
                yield self._of_text("response.content_part.done", part=part)
            else:
                begun = {**item, "arguments": "", "status": "in_progress"}
                yield self._event("response.output_item.added", output_index=place, item=begun)
                where, arguments = {"item_id": item["id"], "output_index": place}, item["arguments"]
                called = "response.function_call_arguments"
                yield self._event(f"{called}.delta", **where, delta=arguments)
                yield self._event(f"{called}.done", **where, name=item["name"], arguments=arguments)
            yield self._event("response.output_item.done", output_index=place, item=item)
        yield self._event(f"response.{response['status']}", response=response)

    def failure(self, body: dict[str, Any]) -> str:
        """`response.failed`: the stream breaks off."""
        told = {"code": "server_error", "message": body["error"]["message"]}
        response = {**self._frame("failed"), "error": told}
        return self._event("response.failed", response=response)

    def _items(self, answer: BackendAnswer) -> list[dict[str, Any]]:
        """What the model said, then what it calls; openai's clients read them as one turn."""
        [choice] = answer.choices
        status = "incomplete" if choice.finish_reason == "length" else "completed"
        items: list[dict[str, Any]] = []
        if choice.text or not choice.tool_calls:
            logprobs = token_logprobs(answer, 0) if self._asked.wants_logprobs else None
            part = {**_TEXT, "text": choice.text, "logprobs": logprobs or []}
            items.append({**self._message(), "status": status, "content": [part]})
        for number, call in enumerate(choice.tool_calls):
            items.append(
                {
                    "type": "function_call",
                    "id": f"fc_{self._part}_{number}",
                    "call_id": call["id"],
                    "name": call["function"]["name"],
                    "arguments": call["function"].get("arguments", "{}"),
                    "status": "completed",
                }
            )
        return items

    def _message_begins(self) -> Iterator[str]:
        self._begun = True
        item = {**self._message(), "status": "in_progress", "content": []}
        yield self._event("response.output_item.added", output_index=0, item=item)
        yield self._of_text("response.content_part.added", part={**_TEXT, "text": ""})

    def _message(self) -> dict[str, Any]:
        return {"type": "message", "id": f"msg_{self._part}", "role": "assistant"}

    def _frame(self, status: str) -> dict[str, Any]:
        """The response with what was asked, and nothing of the answer yet."""
        asked = self._asked
        choice = "auto" if asked.tool_choice is None else asked.tool_choice
        return {
            "id": self._id,
            "object": "response",
            "created_at": int(self._began_at),
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": asked.instructions,
            "max_output_tokens": asked.max_output_tokens,
            "metadata": asked.metadata or {},
            "model": self._model,
            "output": [],
            "parallel_tool_calls": asked.parallel_tool_calls is not False,
            "previous_response_id": asked.previous_response_id,
            "reasoning": asked.reasoning,
            "store": asked.store is not False,
            "temperature": asked.temperature,
            "text": {"format": {"type": "text"}, **(asked.text or {})},
            "tool_choice": choice,
            "tools": asked.tools or [],
            "top_logprobs": asked.top_logprobs,
            "top_p": asked.top_p,
            "truncation": "disabled",
            "usage": None,
            "user": asked.user,
        }

    def _of_text(self, kind: str, **fields: Any) -> str:
        where = {"item_id": f"msg_{self._part}", "output_index": 0, "content_index": 0}
        return self._event(kind, **where, **fields)

    def _event(self, kind: str, **fields: Any) -> str:
        body = {"type": kind, "sequence_number": self._count, **fields}
        self._count += 1
        return f"event: {kind}\ndata: {dump(body)}\n\n"


_TEXT: Mapping[str, Any] = {"type": "output_text", "annotations": [], "logprobs": []}


def _usage(answer: BackendAnswer) -> dict[str, Any]:
    return {
        "input_tokens": answer.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }
