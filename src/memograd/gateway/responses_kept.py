"""Responses that were given: gone on from, read again, deleted.

    previous_response_id                    a request goes on from its conversation
    GET    /v1/responses/{id}               the response as it was told
    GET    /v1/responses/{id}/input_items   what it answers, the conversation before it included
    DELETE /v1/responses/{id}               from now on it is found by none of these

In a rollout a response's id names its call, and all is read from the trace, so it is there after a
restart and when the rollout is over. Deleting marks the call and takes nothing from the trace,
which is what is trained from. Outside of rollouts nothing is written down: the latest responses are
held in memory. The instructions of a response belong to its own request, as OpenAI says: they are
not carried over, and are no input item. Log-probabilities are told with the answer alone.

Invariants: a rollout finds its own responses and no others; one with `store=false`, or deleted, is
found nowhere; what is read again is written by the form that told it first.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from memograd.gateway.backend import BackendAnswer
from memograd.gateway.calls import BegunCall, Calls
from memograd.gateway.conversation import answer_message
from memograd.gateway.database import dump
from memograd.gateway.protocol import CallRefused, ChatRequest
from memograd.gateway.records import CallRecord, Choice
from memograd.gateway.responses_answer import ResponseForm
from memograd.gateway.responses_request import API, LOGPROBS, ResponseRequest

HELD_BYTES: Final = 64 * 1024 * 1024
"""Of responses outside of rollouts with their conversations, as JSON."""

Messages = Sequence[Mapping[str, Any]]


class ResponseQuery(BaseModel):
    """How a response is read; clients write a list's name with or without brackets."""

    model_config = ConfigDict(extra="forbid")
    include: list[str] = []
    include_list: Annotated[list[str], Field(alias="include[]")] = []
    include_obfuscation: bool | None = None
    stream: bool | None = None
    starting_after: int | None = None

    def check(self) -> None:
        """Raise `CallRefused` for what is not told again."""
        _check_include([*self.include, *self.include_list])
        for name, given in (("stream", self.stream), ("starting_after", self.starting_after)):
            if given not in (None, False):
                raise CallRefused(
                    400,
                    f"{name}: a response that can be read is complete, so it comes in one piece.",
                    param=name,
                )


class InputItemsQuery(BaseModel):
    """Which input items are listed."""

    model_config = ConfigDict(extra="forbid")
    include: list[str] = []
    include_list: Annotated[list[str], Field(alias="include[]")] = []
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    order: Literal["asc", "desc"] = "desc"
    after: str | None = None

    def page(self, items: list[dict[str, Any]]) -> dict[str, Any]:
        """The page of `items`, which are in the order they were said; else `CallRefused`."""
        _check_include([*self.include, *self.include_list])
        listed = items if self.order == "asc" else items[::-1]
        if self.after is not None:
            places = [place for place, item in enumerate(listed) if item["id"] == self.after]
            if not places:
                raise CallRefused(
                    400, f"after: there is no input item {self.after!r}.", param="after"
                )
            listed = listed[places[0] + 1 :]
        shown = listed[: self.limit]
        return {
            "object": "list",
            "data": shown,
            "first_id": shown[0]["id"] if shown else None,
            "last_id": shown[-1]["id"] if shown else None,
            "has_more": len(listed) > len(shown),
        }


def _check_include(include: Sequence[str]) -> None:
    if LOGPROBS in include:
        raise CallRefused(
            400,
            "include: log-probabilities are told with the answer itself, and not again.",
            param="include",
        )


@dataclass(frozen=True)
class KeptResponse:
    """A response that can be found. `messages` are what it answers, without its instructions."""

    id: str
    request: ResponseRequest
    messages: Messages
    answer: BackendAnswer
    began_at: float
    completed_at: float

    def thread(self) -> Messages:
        """The conversation that a request goes on from."""
        return [*self.messages, answer_message(self.answer.choices[0])]

    def told(self) -> dict[str, Any]:
        """The response."""
        form = ResponseForm(self.id, self.answer.model, self.request, self.began_at)
        return form.told(self.answer, self.completed_at)

    def input_items(self) -> list[dict[str, Any]]:
        """What it answers, in the order it was said; an item's id is the same at each reading."""
        part = self.id.removeprefix("resp_")
        items = [item for message in self.messages for item in _items(message)]
        kinds = {"message": "msg", "function_call": "fc", "function_call_output": "fco"}
        return [
            {"id": f"{kinds[item['type']]}_{part}_in{place}", "status": "completed", **item}
            for place, item in enumerate(items)
        ]


class KeptResponses:
    """The responses of a gateway; for one event loop."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._held: OrderedDict[str, tuple[KeptResponse, int]] = OrderedDict()
        self._bytes = 0

    async def before(self, asked: ResponseRequest, rollout_id: str | None) -> Messages:
        """The messages that the request goes on from; else `CallRefused`."""
        previous = asked.previous_response_id
        if previous is None:
            return ()
        kept = await self._found(previous, rollout_id)
        if kept is None:
            raise CallRefused(
                400,
                f"There is no response {previous!r} to go on from here.",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        return kept.thread()

    def follow(
        self, begun: BegunCall, asked: ResponseRequest
    ) -> tuple[str, Callable[[BackendAnswer, float], None] | None]:
        """The id of the response that is about to be made, and what holds its answer, if it is not
        in the trace."""
        if begun.rollout is not None:
            return f"resp_{begun.rollout.id}_{begun.number}", None
        response_id = f"resp_{secrets.token_hex(12)}"
        if asked.store is False:
            return response_id, None
        own = 0 if asked.instructions is None else 1
        said = begun.request.said()[own:]
        request = asked.model_copy(update={"input": []})

        def hold(answer: BackendAnswer, completed_at: float) -> None:
            kept = KeptResponse(
                response_id, request, said, _lean(answer), begun.began_at, completed_at
            )
            size = len(dump([*kept.thread(), asked.told_back(), asked.instructions]))
            self._held[response_id] = (kept, size)
            self._bytes += size
            while self._bytes > HELD_BYTES and len(self._held) > 1:
                self._drop(next(iter(self._held)))

        return response_id, hold

    async def told(self, response_id: str, rollout_id: str | None) -> dict[str, Any]:
        """The response again; else `CallRefused` (404)."""
        return (await self._known(response_id, rollout_id)).told()

    async def input_items(
        self, response_id: str, rollout_id: str | None, query: InputItemsQuery
    ) -> dict[str, Any]:
        """A page of what it answers; else `CallRefused`."""
        return query.page((await self._known(response_id, rollout_id)).input_items())

    async def delete(self, response_id: str, rollout_id: str | None) -> dict[str, Any]:
        """Find it no more; `CallRefused` (404) if it is not found now."""
        await self._known(response_id, rollout_id)
        if rollout_id is None:
            self._drop(response_id)
        else:
            call = await self._call(response_id, rollout_id)
            assert call is not None  # calls are never taken from a trace
            asked = {**call.asked, "deleted": True}
            await self._calls.in_store(self._calls.store.amend, rollout_id, call.number, asked)
        return {"id": response_id, "object": "response", "deleted": True}

    async def _known(self, response_id: str, rollout_id: str | None) -> KeptResponse:
        kept = await self._found(response_id, rollout_id)
        if kept is None:
            raise CallRefused(
                404, f"There is no response {response_id!r} here.", code="response_not_found"
            )
        return kept

    async def _found(self, response_id: str, rollout_id: str | None) -> KeptResponse | None:
        if rollout_id is not None:
            call = await self._call(response_id, rollout_id)
            return None if call is None else _of_call(response_id, call)
        if response_id not in self._held:
            return None
        self._held.move_to_end(response_id)
        return self._held[response_id][0]

    async def _call(self, response_id: str, rollout_id: str) -> CallRecord | None:
        """The call behind a response of this rollout, where it is kept."""
        owner, _, number = response_id.removeprefix("resp_").partition("_")
        counted = number.isascii() and number.isdigit() and len(number) < 10
        if response_id != f"resp_{owner}_{number}" or owner != rollout_id or not counted:
            return None
        call = await self._calls.in_store(self._calls.store.call, rollout_id, int(number))
        if call is None or call.asked.get("api") != API or call.asked.get("deleted"):
            return None
        return None if call.asked.get("request", {}).get("store") is False else call

    def _drop(self, response_id: str) -> None:
        _, freed = self._held.pop(response_id)
        self._bytes -= freed


def record_of(asked: ResponseRequest, chat: ChatRequest) -> dict[str, Any]:
    """What a call's record says of its request, beside the messages and tools of the chat."""
    told = asked.told_back()
    if told.get("tools") == _flat(chat.tool_schemas()):
        del told["tools"]
    kept: dict[str, Any] = {"api": API, "request": told}
    if asked.instructions is not None:
        kept["instructions"] = True
    return kept


def _of_call(response_id: str, call: CallRecord) -> KeptResponse:
    """The response that a call was answered with."""
    own = 1 if call.asked.get("instructions") else 0
    request = {"tools": _flat(call.tools), **call.asked.get("request", {})}
    if own:
        request["instructions"] = call.messages[0]["content"]
    answer = BackendAnswer(
        call.choices, call.model, call.prompt_tokens, call.completion_tokens, dict(call.sampling)
    )
    return KeptResponse(
        response_id,
        ResponseRequest.model_validate(request),
        call.messages[own:],
        _lean(answer),
        call.began_at,
        call.began_at + call.latency,
    )


def _lean(answer: BackendAnswer) -> BackendAnswer:
    """What is told again of an answer: no token of it."""
    [choice] = answer.choices
    return BackendAnswer(
        (Choice(choice.text, choice.finish_reason, choice.tool_calls),),
        answer.model,
        answer.prompt_tokens,
        answer.completion_tokens,
        answer.sampling,
    )


def _flat(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A chat's tools as responses name them."""
    return [{"type": "function", **tool["function"]} for tool in tools]


def _items(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The items of a chat's message."""
    role, content = message["role"], message.get("content")
    if role == "tool":
        output = content if isinstance(content, str) else _parts(content, "input_text")
        called = message["tool_call_id"]
        yield {"type": "function_call_output", "call_id": called, "output": output}
        return
    if content or not message.get("tool_calls"):
        kind = "output_text" if role == "assistant" else "input_text"
        yield {"type": "message", "role": role, "content": _parts(content, kind)}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": function["name"],
            "arguments": function.get("arguments", "{}"),
        }


def _parts(content: Any, kind: str) -> list[dict[str, Any]]:
    """The content of an item; `kind` is that of its texts."""
    more: dict[str, Any] = {"annotations": [], "logprobs": []} if kind == "output_text" else {}
    given: list[dict[str, Any]] = content or []
    if isinstance(content, str):
        given = [{"type": "text", "text": content}]
    parts: list[dict[str, Any]] = []
    for part in given:
        if part["type"] == "image_url":
            shown = part["image_url"]
            detail = shown.get("detail", "auto")
            parts.append({"type": "input_image", "image_url": shown["url"], "detail": detail})
        else:
            parts.append({"type": kind, "text": part["text"], **more})
    return parts
