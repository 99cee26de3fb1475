"""What filters of mem0's clients say in words of mem0's service, said in ours.

    {"metadata": {"city": "Rome"}}      {"metadata.city": "Rome"}
    {"memory_ids": ["a", "b"]}          {"id": ["a", "b"]}
    {"keywords": {"contains": "tea"}}   {"text": {"contains": "tea"}}

An application may have metadata of its own called `memory_ids` or `keywords`; that is looked at
too. Invariants: a filter without such words is given back as it is; `app_id`, which no memory has,
is refused and never passed over; `metadata.app_id` is the application's own and as good as any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from memograd.memory.filters.filter import OPERATORS
from memograd.serve.refusals import NotOffered

OURS: Final = {"memory_ids": "id", "keywords": "text"}
_JOINTS: Final = ("AND", "OR", "NOT")


def in_our_words(filters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The filter that means the same. Raises `NotOffered` where it asks for an `app_id`."""
    members = list(_members(filters))
    if members == [{name: value} for name, value in filters.items()]:
        return filters
    return members[0] if len(members) == 1 else {"AND": members}


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
