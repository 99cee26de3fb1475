"""What filters of mem0's clients say in words of mem0's service, said in ours.

    {"metadata": {"city": "Rome"}}      {"metadata.city": "Rome"}
    {"memory_ids": ["a", "b"]}          {"id": ["a", "b"]}
    {"keywords": {"contains": "tea"}}   {"text": {"contains": "tea"}}

mem0's client writes a filter into an address as Python shows a dictionary, `{'user_id': 'a'}`;
`in_an_address` reads that, and JSON.

An application may have metadata of its own called `memory_ids` or `keywords`; that is looked at
too. Invariants: a filter without such words is given back as it is; `app_id`, which no memory has,
is refused and never passed over; `metadata.app_id` is the application's own and as good as any.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from memograd.memory.filters.filter import OPERATORS
from memograd.serve.refusals import NotOffered, Unprocessable
from memograd.web.strict_json import checked_body

OURS: Final = {"memory_ids": "id", "keywords": "text"}
_JOINTS: Final = ("AND", "OR", "NOT")


def in_our_words(filters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The filter that means the same. Raises `NotOffered` where it asks for an `app_id`."""
    members = list(_members(filters))
    if members == [{name: value} for name, value in filters.items()]:
        return filters
    return members[0] if len(members) == 1 else {"AND": members}


def in_an_address(text: str) -> dict[str, Any]:
    """The filter that a parameter of an address says. Raises `Unprocessable` where it says none."""
    try:
        said = checked_body(_as_json(text).encode("utf-8", "surrogatepass"))
    except json.JSONDecodeError:
        said = None
    if not isinstance(said, dict) or not said:  # an empty one would mean all of it
        raise Unprocessable('filters must be a JSON object, such as {"user_id": "alice"}.')
    return said


def _as_json(text: str) -> str:
    """The text, or what it says in JSON where it is what Python shows of a JSON value."""
    try:
        value = ast.literal_eval(text)
        said = json.dumps(value)
        # Only what a program wrote: by hand, a name could stand there twice.
        return said if repr(value) == text and json.loads(said) == value else text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _members(filters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Conditions that hold together where the filter holds."""
    for name, value in filters.items():
        if name == "app_id":
            raise NotOffered("app_id is not offered: use agent_id.")
        if isinstance(name, str) and name.removeprefix("$").upper() in _JOINTS:
            yield {name: _each(value)}
        elif name == "metadata" and _says_keys(value):
            yield from ({f"metadata.{key}": one} for key, one in value.items())
        elif name in OURS:
            meant = _contained(value) if name == "keywords" else value
            yield {"OR": [{OURS[name]: meant}, {f"metadata.{name}": value}]}
        else:
            yield {name: value}


def _each(members: Any) -> Any:
    """The members of AND, OR or NOT; what can be none is left to be refused."""
    if isinstance(members, Mapping):
        return in_our_words(members)
    if not isinstance(members, list | tuple):
        return members
    return [in_our_words(one) if isinstance(one, Mapping) else one for one in members]


def _says_keys(value: Any) -> bool:
    """Whether it names keys of the metadata, and no operator in their place."""
    return isinstance(value, Mapping) and bool(value) and not any(one in OPERATORS for one in value)


def _contained(value: Any) -> Any:
    """A word alone is looked for in the text, in whatever case."""
    return {"icontains": value} if isinstance(value, str) and value != "*" else value
