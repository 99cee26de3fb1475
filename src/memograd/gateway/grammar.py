"""What a request holds its answer to: structured output, forced tools, one call only.

    response_format                     JSON of the schema, or any object; or calls, with tools
    tool_choice required                one call or more, each of a tool and its schema
    tool_choice of a function           one call of it
    tool_choice allowed_tools           as auto or required, with calls of those tools only
    parallel_tool_calls false           text, and one call at most

The grammar is written in llguidance's Lark, with JSON schemas in it; calls are written as the chat
template asks for them (`memograd.rollout.tool_calls`). llguidance says after each token what may
come next; a grammar is read once and forked for every answer.

Invariants: an answer that was not cut off is what its request asked for, whatever the model would
have said; where a request asks for nothing of this kind there is no grammar, and the model's own
distribution is drawn from; a grammar that llguidance cannot read is a refusal before the call has a
number, with its reason.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from memograd.errors import MemogradError
from memograd.gateway.protocol import CallRefused, ChatRequest
from memograd.rollout.tool_calls import CLOSE, OPEN
from memograd.rollout.types import TokenMask

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer
    from transformers import PreTrainedTokenizerFast

    from memograd.policy.model_policy import ModelPolicy


SPELLING: Final = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""JSON as models write it most, on one line: free white space could go on for ever."""

_OPEN: Final = {
    *("additionalProperties", "patternProperties", "unevaluatedProperties"),
    *("allOf", "anyOf", "oneOf", "$ref"),
}
"""Words of a schema that may allow properties beside those that it lists."""


@dataclass(frozen=True)
class _ToolChoice:
    """What `tool_choice` says: the tools that may be called, and whether text may come instead.

    `free`: a call need not be made. `bounded`: other tools are shown, and must not be called.
    `single`: one call, and no more.
    """

    tools: Sequence[Mapping[str, Any]]
    free: bool = True
    bounded: bool = False
    single: bool = False


def grammar_of(request: ChatRequest) -> str | None:
    """The grammar in Lark; None where there is nothing to hold to. Raises `CallRefused`."""
    form = _form(request.response_format)
    choice = _choice(request)
    one = choice.single or request.parallel_tool_calls is False
    calls = "call" if one else 'call ("\\n" call)*'
    if not choice.free:
        return _written(f"start: {calls}", form=None, tools=choice.tools)
    if form is not None:
        start = f"start: form | {calls}" if choice.tools else "start: form"
        return _written(start, form=form, tools=choice.tools)
    if choice.bounded or (choice.tools and one):
        # Two ways to read what is said: to its end, or up to where a call begins.
        said = f"SAID: /(.|\\n)*/ & ~/(.|\\n)*{OPEN}(.|\\n)*/"
        before = f"before[lazy]: /(.|\\n)*{OPEN}/"
        start = f"start: SAID | before {calls.replace('call', 'body', 1)}\n{said}\n{before}"
        return _written(start, form=None, tools=choice.tools)
    return None


def _written(start: str, *, form: Any, tools: Sequence[Mapping[str, Any]]) -> str:
    """The whole grammar: `start`, the form of the answer, the calls of the tools."""
    lines = [start]
    if form is not None:
        lines.append(f"form: {_json(form)}")
    if tools:
        names = [f"call_{place}" for place in range(len(tools))]
        lines.append(f"call: {json.dumps(OPEN)} body")
        inside = " | ".join(names)
        lines.append(f"body: {json.dumps(chr(10))} ({inside}) {json.dumps(chr(10) + CLOSE)}")
        for name, tool in zip(names, tools, strict=True):
            schema = {
                "type": "object",
                "properties": {
                    "name": {"const": tool["name"]},
                    "arguments": _arguments(tool.get("parameters")),
                },
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            lines.append(f"{name}: {_json(schema)}")
    return "\n".join(lines)


def _arguments(parameters: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The schema of a call's arguments: those that the tool names, unless it says that it takes
    others, since a function that is called with others fails."""
    if not parameters:
        return {"type": "object"}
    if "properties" in parameters and not _OPEN & parameters.keys():
        return {**parameters, "additionalProperties": False}
    return parameters


def _json(schema: Any) -> str:
    if isinstance(schema, dict):
        schema = {"x-guidance": SPELLING, **schema}
    return f"%json {json.dumps(schema, ensure_ascii=False)}"


def _form(asked: Mapping[str, Any] | None) -> Any:
    """The schema of an answer; None where it is text."""
    kind = None if asked is None else asked.get("type")
    if asked is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    described = asked.get("json_schema")
    if kind != "json_schema" or not isinstance(described, Mapping):
        raise _refused("response_format", "ask for text, json_object or json_schema")
    if not isinstance(described.get("schema"), dict):
        raise _refused("response_format", "json_schema needs a schema, which is an object")
    return described["schema"]


def _choice(request: ChatRequest) -> _ToolChoice:
    """What the request says of its tools; `CallRefused` where it cannot be followed."""
    tools = {tool["function"]["name"]: tool["function"] for tool in request.tool_schemas()}
    asked = request.tool_choice
    if asked in (None, "auto", "none"):
        return _ToolChoice([*tools.values()])
    if not tools:
        raise _refused("tool_choice", "there is no tool to choose; send tools")
    if asked == "required":
        return _ToolChoice([*tools.values()], free=False)
    kind = asked.get("type") if isinstance(asked, Mapping) else None
    if kind == "function":
        return _ToolChoice([_named(asked, tools)], free=False, single=True)
    if kind == "allowed_tools":
        allowed = asked.get("allowed_tools")
        listed = allowed.get("tools") if isinstance(allowed, Mapping) else None
        mode = allowed.get("mode") if isinstance(allowed, Mapping) else None
        if not isinstance(listed, list) or not listed or mode not in ("auto", "required"):
            what = "allowed_tools needs a mode, auto or required, and tools, one or more"
            raise _refused("tool_choice", what)
        chosen = {tool["name"]: tool for tool in (_named(one, tools) for one in listed)}
        return _ToolChoice([*chosen.values()], free=mode == "auto", bounded=True)
    raise _refused("tool_choice", _KNOWN.format(", ".join(sorted(tools))))


_KNOWN: Final = "ask for auto, none, required, allowed_tools or one of {}"


def _named(asked: Any, tools: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The tool of the request that `{"type": "function", "function": {"name": ...}}` names."""
    function = asked.get("function") if isinstance(asked, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or name not in tools:
        raise _refused("tool_choice", _KNOWN.format(", ".join(sorted(tools))))
    return tools[name]


def _refused(param: str, what: str) -> CallRefused:
    return CallRefused(400, f"{param}: {what}.", param=param)


READ: Final = 64
"""Grammars that are held."""


class Grammars:
    """The grammars of a policy's answers."""

    def __init__(self, policy: ModelPolicy) -> None:
        self._policy = policy
        self._tokenizer: LLTokenizer | None = None
        self._read: OrderedDict[str, LLMatcher] = OrderedDict()

    def constraint(self, grammar: str, param: str) -> GrammarConstraint:
        """An answer's beginning in the grammar, or `CallRefused`, which names `param`."""
        matcher = self._read.get(grammar)
        if matcher is None:
            matcher = self._matcher(grammar, param)
            self._read[grammar] = matcher
            if len(self._read) > READ:
                self._read.popitem(last=False)
        self._read.move_to_end(grammar)
        return GrammarConstraint(matcher.deep_copy(), self._policy.end_ids)

    def _matcher(self, grammar: str, param: str) -> LLMatcher:
        try:
            from llguidance import LLMatcher
            from llguidance.hf import from_tokenizer
        except ImportError:
            raise CallRefused(
                400,
                f"{param}: holding the local model to a grammar needs llguidance: "
                "pip install 'memograd[grammar]'.",
                param=param,
            ) from None
        if self._tokenizer is None:
            head = self._policy.model.get_output_embeddings()
            assert head is not None  # what draws tokens has one
            self._tokenizer = from_tokenizer(
                cast("PreTrainedTokenizerFast", self._policy.tokenizer),
                n_vocab=int(head.weight.shape[0]),
                eos_token=sorted(self._policy.end_ids),
            )
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise _refused(param, f"it cannot be followed ({_reason(matcher)})")
        if not _may_come(matcher):  # such as a schema that refers to nothing but itself
            raise _refused(param, "it cannot be followed (no text is what it asks for)")
        return matcher


def _may_come(matcher: LLMatcher) -> TokenMask | None:
    """The tokens that may come next; None where there is none."""
    mask = matcher.compute_bitmask()
    return None if matcher.is_error() or not any(mask) else mask


def _reason(matcher: LLMatcher) -> str:
    """What llguidance says first; its state, which follows, is for nobody who asks."""
    lines = matcher.get_error().strip().splitlines()
    return lines[0] if lines else "nothing may come next"


class GrammarConstraint:
    """A `memograd.policy.token_logprobs.Constraint` over llguidance."""

    def __init__(self, matcher: LLMatcher, end_ids: frozenset[int]) -> None:
        self._matcher = matcher
        self._end_ids = end_ids

    def fork(self) -> GrammarConstraint:
        """An answer of its own, from here on."""
        return GrammarConstraint(self._matcher.deep_copy(), self._end_ids)

    def allowed(self) -> TokenMask | None:
        """The tokens that may come next."""
        mask = _may_come(self._matcher)
        if mask is None:
            raise MemogradError(
                f"The answer cannot be held to its grammar ({_reason(self._matcher)}): ask for a "
                "simpler schema."
            )
        return mask

    def advance(self, token: int) -> None:
        """This token has come; what is wrong with it `allowed` says."""
        if token not in self._end_ids:
            self._matcher.consume_token(token)
