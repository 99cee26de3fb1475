"""`/v1/responses`, the request: input items become the messages of a chat, and tools its tools.

    instructions                    system
    {role, content}                 a message
    function_call                   joins the assistant's message before it, as the model said both
    function_call_output            tool
    reasoning                       left out: another model's thoughts are no part of a chat

With `previous_response_id` the messages go on from a response that is kept (`responses_kept`).

Invariant: what this API offers and a chat cannot say (tools that OpenAI runs, stored conversations
and prompts, work in the background) is refused by name, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memograd.gateway.protocol import (
    CallRefused,
    ChatRequest,
    Seed,
    Temperature,
    Text,
    TopLogprobs,
    TopP,
    field_error,
)

API: Final = "responses"
LOGPROBS: Final = "message.output_text.logprobs"
"""What `include` calls the log-probabilities of an answer."""
TOLD_BACK: Final = {
    *("max_output_tokens", "metadata", "parallel_tool_calls", "previous_response_id", "reasoning"),
    *("store", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "user"),
}
"""Fields of a request that its response repeats; `instructions` are its first message."""

NO_EFFECT: Final = {
    *("include", "store", "stream_options", "service_tier", "safety_identifier"),
    *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
}
"""Fields that change no answer; `include` names what is shown of it."""
PASSED_ON: Final = {
    *("stop", "top_k", "min_p", "repetition_penalty"),
    *("frequency_penalty", "presence_penalty", "logit_bias"),
}
"""Fields of a chat that some send here too."""
ONLY: Final[Mapping[str, tuple[Any, ...]]] = {"truncation": ("disabled",), "background": (False,)}
"""Fields that may have a value without effect, beside null."""
ROLES: Final = ("user", "assistant", "system", "developer")
TEXT_PARTS: Final = {"input_text", "output_text", "text"}


class InputItem(BaseModel):
    """A message, a call, or a call's output; `type` may be left out of a message."""

    model_config = ConfigDict(extra="allow")
    type: str = "message"
    role: str | None = None
    content: Text | list[dict[str, Any]] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: Text | list[dict[str, Any]] | None = None


class ResponseRequest(BaseModel):
    """A request of `/v1/responses`."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    input: Text | list[InputItem] = []
    instructions: Text | None = None
    previous_response_id: str | None = None
    model: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    text: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    seed: Seed | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    top_logprobs: TopLogprobs | None = None
    include: list[str] | None = None
    store: bool | None = None
    stream: bool | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def wants_logprobs(self) -> bool:
        """Whether the answer shows log-probabilities."""
        return bool(self.top_logprobs) or LOGPROBS in (self.include or ())

    def told_back(self) -> dict[str, Any]:
        """What its response repeats of it."""
        return self.model_dump(include=TOLD_BACK, exclude_none=True)

    def as_chat(self, before: Sequence[Mapping[str, Any]] = ()) -> ChatRequest:
        """The request as a chat that goes on from the messages `before`; raises `CallRefused`."""
        passed = self._passed_on()
        messages = [*before, *self._said()]
        if self.instructions is not None:
            messages.insert(0, {"role": "system", "content": self.instructions})
        if not messages:
            raise CallRefused(400, "input: there is nothing to answer.", param="input")
        text, reasoning = self.text or {}, self.reasoning or {}
        fields = {
            **passed,
            "messages": messages,
            "model": self.model,
            "tools": [_tool(tool, place) for place, tool in enumerate(self.tools or ())] or None,
            "tool_choice": _tool_choice(self.tool_choice),
            "parallel_tool_calls": self.parallel_tool_calls,
            "response_format": _response_format(text.get("format")),
            "verbosity": text.get("verbosity"),
            "reasoning_effort": reasoning.get("effort"),
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "max_completion_tokens": self.max_output_tokens,
            "logprobs": self.wants_logprobs or None,
            "top_logprobs": self.top_logprobs,
            "stream": self.stream,
            "user": self.user,
            "metadata": self.metadata,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        try:
            return ChatRequest.model_validate(given)
        except ValidationError as error:
            where, message = field_error(error.errors())
            raise CallRefused(400, message, param=where) from None

    def _passed_on(self) -> dict[str, Any]:
        """Fields that stay as they are; `CallRefused` for those that nothing here understands."""
        passed: dict[str, Any] = {}
        for name, value in (self.model_extra or {}).items():
            if name in PASSED_ON:
                passed[name] = value
            elif value is not None and name not in NO_EFFECT and value not in ONLY.get(name, ()):
                raise CallRefused(400, f"Responses here do not know {name}={value!r}.", param=name)
        return passed

    def _said(self) -> list[dict[str, Any]]:
        """The input as a chat's messages."""
        if isinstance(self.input, str):
            return [{"role": "user", "content": self.input}]
        messages: list[dict[str, Any]] = []
        for place, item in enumerate(self.input):
            where = f"input[{place}]"
            if item.type == "message":
                if item.role not in ROLES:
                    raise CallRefused(
                        400,
                        f"{where}: the role of a message is one of {', '.join(ROLES)}, not "
                        f"{item.role!r}.",
                        param=where,
                    )
                messages.append({"role": item.role, "content": _content(item.content, where)})
            elif item.type == "function_call":
                if item.call_id is None or item.name is None:
                    raise CallRefused(400, f"{where}: a call needs call_id and name.", param=where)
                call = {
                    "id": item.call_id,
                    "type": "function",
                    "function": {"name": item.name, "arguments": item.arguments or "{}"},
                }
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": None})
                messages[-1].setdefault("tool_calls", []).append(call)
            elif item.type == "function_call_output":
                if item.call_id is None:
                    raise CallRefused(400, f"{where}: an output needs call_id.", param=where)
                told = _content(item.output, where)
                messages.append({"role": "tool", "tool_call_id": item.call_id, "content": told})
            elif item.type != "reasoning":
                raise CallRefused(
                    400,
                    f"{where}: items of type {item.type} are not known; send messages, "
                    "function_call and function_call_output.",
                    param=where,
                )
        return messages


def _content(content: str | list[dict[str, Any]] | None, where: str) -> Any:
    """A chat's content: a text, or parts where there is more than text."""
    if content is None or isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = []
    for part in content:
        kind = part.get("type")
        if kind in TEXT_PARTS:
            parts.append({"type": "text", "text": part.get("text")})
        elif kind == "refusal":
            parts.append({"type": "text", "text": part.get("refusal")})
        elif kind == "input_image" and isinstance(part.get("image_url"), str):
            url = {name: part[name] for name in ("detail",) if part.get(name) is not None}
            parts.append({"type": "image_url", "image_url": {"url": part["image_url"], **url}})
        else:
            raise CallRefused(400, f"{where}: content of type {kind} is not known.", param=where)
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def _tool(tool: Mapping[str, Any], place: int) -> dict[str, Any]:
    """A function as chats name it."""
    if tool.get("type") != "function":
        raise CallRefused(
            400,
            f"tools[{place}]: only functions can be called here, not {tool.get('type')!r}: the "
            "agent has to bring its own tools.",
            param=f"tools[{place}]",
        )
    known = ("name", "description", "parameters", "strict")
    function = {name: tool[name] for name in known if tool.get(name) is not None}
    return {"type": "function", "function": function}


def _tool_choice(choice: Any) -> Any:
    if not isinstance(choice, Mapping):
        return choice
    if choice.get("type") == "function":
        return _choice_of(choice)
    if choice.get("type") == "allowed_tools":
        tools = choice.get("tools")
        listed = [_choice_of(tool) for tool in tools] if isinstance(tools, list) else tools
        return {
            "type": "allowed_tools",
            "allowed_tools": {"mode": choice.get("mode"), "tools": listed},
        }
    raise CallRefused(
        400, f"tool_choice: {choice.get('type')!r} is not known here.", param="tool_choice"
    )


def _choice_of(tool: Any) -> Any:
    """A tool that is named by its type and name, as chats name it; others stay as they are."""
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        return tool
    return {"type": "function", "function": {"name": tool.get("name")}}


def _response_format(form: Any) -> dict[str, Any] | None:
    """What a chat calls `response_format`."""
    if form is None:
        return None
    if not isinstance(form, Mapping):
        raise CallRefused(400, "text.format: an object is wanted.", param="text.format")
    if form.get("type") != "json_schema":
        return dict(form)
    return {
        "type": "json_schema",
        "json_schema": {name: value for name, value in form.items() if name != "type"},
    }
