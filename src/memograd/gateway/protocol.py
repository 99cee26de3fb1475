"""What agents may ask for, in OpenAI's words, and what a refusal looks like.

`ChatRequest` is what backends take; the other APIs are made into one (`completions_api`,
`responses_request`). Only what the gateway reads is named here; other fields are kept in
`model_extra`, and each backend says which of them it can serve.

pydantic lists every way in which a value does not fit, each alternative of a field by itself;
`field_error` makes one sentence of it that names the field. Invariants: a body that is not
understood is a 400 in OpenAI's error form, whatever it holds; the sentence is about the alternative
that the value came nearest to, and names all kinds of values that would do where it is of none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from memograd.errors import MemogradError

Text = Annotated[str, Field(max_length=4_000_000)]

COLDEST = 1e-8
"""The smallest temperature that is not 0: some clients send it to mean 0. Below, what the model
says divided by it is no number any more."""


def _not_too_cold(temperature: float) -> float:
    if 0 < temperature < COLDEST:
        raise ValueError(f"a temperature is 0 or at least {COLDEST:g}")
    return temperature


Temperature = Annotated[float, Field(ge=0, le=2), AfterValidator(_not_too_cold)]
TopP = Annotated[float, Field(gt=0, le=1)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
TopLogprobs = Annotated[int, Field(ge=0, le=20)]


class CallRefused(MemogradError):
    """An HTTP status and the error that goes with it."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        kind: str = "invalid_request_error",
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(message, kind=kind, code=code, param=param)


def error_body(
    message: str, *, kind: str, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    """OpenAI's error form."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """An error as OpenAI's servers send it."""

    error: ErrorDetail


class ContentPart(BaseModel):
    """A piece of a message's content."""

    model_config = ConfigDict(extra="allow")
    type: str
    text: Text | None = None


class FunctionCall(BaseModel):
    """A function and its arguments, as JSON in a text."""

    model_config = ConfigDict(extra="allow")
    name: Annotated[str, Field(min_length=1)]
    arguments: str = "{}"

    def model_post_init(self, _: object) -> None:
        """Without arguments is with none: messages are passed on with what was set only."""
        self.model_fields_set.add("arguments")


class ToolCallMessage(BaseModel):
    """A call that the model made earlier."""

    model_config = ConfigDict(extra="allow")
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class RequestMessage(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(extra="allow")
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCallMessage] | None = None
    tool_call_id: str | None = None


class Function(BaseModel):
    """A function that the model may call."""

    model_config = ConfigDict(extra="allow")
    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Tool(BaseModel):
    """A tool; only functions are known."""

    model_config = ConfigDict(extra="allow")
    type: Literal["function"]
    function: Function


class StreamOptions(BaseModel):
    """What a stream ends with."""

    model_config = ConfigDict(extra="allow")
    include_usage: bool = False


class ChatRequest(BaseModel):
    """A request of `/v1/chat/completions`."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    messages: Annotated[list[RequestMessage], Field(min_length=1)]
    model: str | None = None
    tools: list[Tool] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, Any] | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    seed: Seed | None = None
    stop: Text | Annotated[list[Text], Field(max_length=64)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None

    def said(self) -> list[dict[str, Any]]:
        """The messages as they were sent."""
        return [message.model_dump(exclude_unset=True) for message in self.messages]

    def tool_schemas(self) -> list[dict[str, Any]]:
        """The tools as they were sent; none where the model may not call any."""
        if self.tool_choice == "none":
            return []
        return [tool.model_dump(exclude_unset=True) for tool in self.tools or []]

    def longest(self) -> int | None:
        """Tokens of an answer, at most, if the request says so."""
        return self.max_completion_tokens or self.max_tokens

    def stops(self) -> list[str]:
        """The strings that end an answer."""
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return [stop for stop in given if stop]


class TextRequest(ChatRequest):
    """A text that is continued as it stands; `messages` hold it as a trace shows it."""

    text: Text


class EmbeddingRequest(BaseModel):
    """A request of `/v1/embeddings`."""

    model_config = ConfigDict(extra="allow")
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=2048)]
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None


class NewRolloutRequest(BaseModel):
    """A request of `POST /rollout`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    metadata: dict[str, Any] = {}
    seconds: Annotated[float, Field(gt=0, le=7 * 86_400)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None


class RewardRequest(BaseModel):
    """A request of `POST /rollout/{id}/reward`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)
    reward: Annotated[float, Field(ge=-1e12, le=1e12)]


class FailureRequest(BaseModel):
    """A request of `POST /rollout/{id}/failure`."""

    model_config = ConfigDict(extra="forbid")
    error: Annotated[str, Field(min_length=1, max_length=10_000)]


WANTED: Final[Mapping[str, str]] = {
    "string_type": "a text",
    "string_unicode": "a text that can be written as UTF-8",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
"""What would have done, by the kind of pydantic's error."""


def field_error(errors: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """The field, empty for the whole request, and the sentence about it."""
    located = [(_field(error["loc"]), error) for error in errors]
    while True:
        field, first = located[0]
        if first["type"] not in WANTED:
            return _told(field, _sentence(first))
        of_field = [one for one in located if one[0][: len(field)] == field]
        nearer = [one for one in of_field if one[0] != field or one[1]["type"] not in WANTED]
        if not nearer:
            kinds = dict.fromkeys(WANTED[error["type"]] for _, error in of_field)
            return _told(field, f"{' or '.join(kinds)} is wanted")
        located = nearer


def _told(field: tuple[str, ...], what: str) -> tuple[str, str]:
    where = ".".join(field)
    return where, f"{where or 'The request'}: {what}."


def _field(place: Sequence[str | int]) -> tuple[str, ...]:
    """A place in a request without what pydantic adds: where it was looked for (`body`), and names
    of alternatives, which have brackets and dashes in them."""
    parts = map(str, place[1:] if place[:1] in (("body",), ("query",), ("path",)) else place)
    return tuple(part for part in parts if part.isalnum() or part.isidentifier())


def _sentence(error: Mapping[str, Any]) -> str:
    kind = error["type"]
    if kind == "missing":
        return "it is missing"
    if kind == "extra_forbidden":
        return "this field is not known here"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message.replace(" after validation", "").rstrip(".")
