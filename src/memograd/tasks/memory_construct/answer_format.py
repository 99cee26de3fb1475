"""How a model says what to do with its memory: one line a call, or tool calls as JSON.

    + Tom has a dog called Ziggy.          remember; `+ [core]` or `+ [episodic]` names a kind
    ~ 2 Tom's dog Ziggy eats fish now.     item 2 says this from now on
    - 3                                    forget item 3
    =                                      nothing to do

Lines are what a small model learns; `tools` is the way of the model's own chat template
(`memory_insert`, `memory_update`, `memory_delete`). Items have small numbers, those of the view.

Invariants: reading never raises, whatever was written; every line that is not empty, and every tool
call, becomes a call, a failed one if it is none; calls that were written by `write` are read back
unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from memograd.memory.records.items import Kind
from memograd.memory.records.operations import OpKind
from memograd.rollout.episode import ToolSchema
from memograd.rollout.tool_calls import CLOSE, OPEN, MalformedCall, ToolCall, parse_tool_calls

Format = Literal["lines", "tools"]
MOST_CALLS: Final = 32
NOTHING: Final = "="
_KINDS: Final = {kind.value: kind for kind in (Kind.CORE, Kind.EPISODIC, Kind.SEMANTIC)}
_ADD = re.compile(r"[+＋]\s*(?:\[(\w+)\]\s*)?(.*)")
_UPDATE = re.compile(r"[~～]\s*([0-9]{1,6})(?:[:.)]+\s*|\s+)(.*)")
_DELETE = re.compile(r"[-－]\s*([0-9]{1,6})\s*")
_NOTHING = re.compile(r"[=＝](?:\s*(?:nothing|无))?\s*")


@dataclass(frozen=True, slots=True)
class Call:
    """One wish: what to do, with which text, to the item of which number.

    kind: None if it is no operation at all. failure: why it is no call that could be carried out.
    """

    kind: OpKind | None
    text: str = ""
    number: int | None = None
    memory_kind: Kind = Kind.SEMANTIC
    failure: str | None = None


def read(answer: str, form: Format, *, cut: bool = False) -> list[Call]:
    """The calls of an answer, in order; `cut`: it ended at the limit, so its last call is half."""
    calls = _read_lines(answer) if form == "lines" else _read_tools(answer)
    if cut and calls:
        calls[-1] = Call(calls[-1].kind, failure="cut")
    kept, beyond = calls[:MOST_CALLS], calls[MOST_CALLS:]
    return [*kept, *(Call(call.kind, failure="too many calls") for call in beyond)]


def write(calls: Sequence[Call], form: Format) -> str:
    """An answer that says these calls, which have no failure."""
    if form == "lines":
        return "\n".join(_line(call) for call in calls) or NOTHING
    if not calls:
        return NOTHING
    return "\n".join(
        f"{OPEN}\n{json.dumps(_as_json(c), ensure_ascii=False)}\n{CLOSE}" for c in calls
    )


def _read_lines(answer: str) -> list[Call]:
    calls = []
    for line in answer.splitlines():
        said = line.strip()
        if said and not _NOTHING.fullmatch(said):
            calls.append(_read_line(said))
    return calls


def _read_line(said: str) -> Call:
    if found := _DELETE.fullmatch(said):
        return Call(OpKind.DELETE, number=int(found[1]))
    if found := _UPDATE.fullmatch(said):
        return _checked(Call(OpKind.UPDATE, found[2].strip(), int(found[1])))
    if found := _ADD.fullmatch(said):
        named = found[1] or Kind.SEMANTIC.value
        if named not in _KINDS:
            return Call(OpKind.ADD, failure=f"there is no kind {named}")
        return _checked(Call(OpKind.ADD, found[2].strip(), memory_kind=_KINDS[named]))
    return Call(None, failure="malformed")


def _line(call: Call) -> str:
    if call.kind is OpKind.DELETE:
        return f"- {call.number}"
    if call.kind is OpKind.UPDATE:
        return f"~ {call.number} {call.text}"
    kind = "" if call.memory_kind is Kind.SEMANTIC else f"[{call.memory_kind.value}] "
    return f"+ {kind}{call.text}"


def _checked(call: Call) -> Call:
    if not call.text:
        return Call(call.kind, number=call.number, failure="no text")
    return call


_NAMES: Final = {
    "memory_insert": OpKind.ADD,
    "memory_update": OpKind.UPDATE,
    "memory_delete": OpKind.DELETE,
}


def _read_tools(answer: str) -> list[Call]:
    calls = [_read_tool(call) for call in parse_tool_calls(answer)]
    said = answer.strip()
    if not calls and said and not _NOTHING.fullmatch(said):
        return [Call(None, failure="malformed")]
    return calls


def _read_tool(call: ToolCall | MalformedCall) -> Call:
    if isinstance(call, MalformedCall):
        return Call(None, failure="malformed")
    kind = _NAMES.get(call.name)
    if kind is None:
        return Call(None, failure="unknown tool")
    wanted = {"memory_insert": {"text"}, "memory_update": {"id", "text"}, "memory_delete": {"id"}}
    given = dict(call.arguments)
    named = given.pop("kind", Kind.SEMANTIC.value) if kind is OpKind.ADD else Kind.SEMANTIC.value
    number, text = given.get("id"), given.get("text", "")
    fits = set(given) == wanted[call.name] and isinstance(text, str) and isinstance(named, str)
    if not fits or ("id" in given and type(number) is not int):
        return Call(kind, failure="wrong arguments")
    if named not in _KINDS:
        return Call(kind, failure=f"there is no kind {named}")
    # A memory is one line: no text may pass itself off as two.
    found = Call(kind, " ".join(text.split()), number, _KINDS[named])
    return found if kind is OpKind.DELETE else _checked(found)


def _as_json(call: Call) -> dict[str, Any]:
    name = next(name for name, kind in _NAMES.items() if kind is call.kind)
    arguments: dict[str, Any] = {}
    if call.kind is OpKind.ADD:
        arguments["kind"] = call.memory_kind.value
    if call.number is not None:
        arguments["id"] = call.number
    if call.kind is not OpKind.DELETE:
        arguments["text"] = call.text
    return {"name": name, "arguments": arguments}


def _tool(name: str, description: str, **parameters: dict[str, Any]) -> ToolSchema:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": parameters,
                "required": list(parameters),
            },
        },
    }


_ID: Final = {"type": "integer", "description": "Number of the item in the list."}
_TEXT: Final = {"type": "string", "description": "One fact, with names and full dates."}
_KIND: Final = {"type": "string", "enum": sorted(_KINDS)}
TOOLS: Final[tuple[ToolSchema, ...]] = (
    _tool("memory_insert", "Remember a new fact.", kind=_KIND, text=_TEXT),
    _tool("memory_update", "Replace what an item says.", id=_ID, text=_TEXT),
    _tool("memory_delete", "Forget an item.", id=_ID),
)
"""The three tools, as chat templates show them."""
