"""What callers of `Memory` hand over, checked: one sentence that names what is wrong.

Invariant: what passes here can be kept and searched; what does not is BadInput and leaves no trace.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memograd.errors import BadInput
from memograd.memory.records.items import Kind
from memograd.memory.records.scope import check_unicode
from memograd.memory.write.remember import Labels


def checked_labels(
    metadata: Mapping[str, Any] | None, kind: Kind | str | None, categories: Iterable[str]
) -> Labels:
    """What is said about everything that one call adds."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise BadInput(f"metadata must be a dictionary, not {type(metadata).__name__}.")
    names = None if isinstance(categories, str) else tuple(categories)
    if names is None or not all(isinstance(name, str) and name.strip() for name in names):
        raise BadInput(f"categories must be a list of names, not {categories!r}.")
    for name in names:
        check_unicode(name, "a category")
    try:
        known = None if kind is None else Kind(kind)
    except ValueError:
        choices = ", ".join(Kind)
        raise BadInput(f"There is no kind {kind!r}: choose one of {choices}.") from None
    return Labels(metadata=dict(metadata or {}), kind=known, categories=names)


def checked_count(given: int | None, default: int, name: str, *, least: int = 0) -> int:
    """A whole number of at least `least`; `default` where none is given."""
    if given is None:
        return default
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise BadInput(f"{name} must be a whole number of at least {least}, not {given!r}.")
    return given


def checked_number(given: float | None, name: str) -> float | None:
    """A number, or None where none is given."""
    if given is not None and (isinstance(given, bool) or not isinstance(given, int | float)):
        raise BadInput(f"{name} must be a number, not {given!r}.")
    return given


def check_text(text: object, what: str) -> None:
    """Raise BadInput unless `text` is a text that can be kept."""
    if not isinstance(text, str):
        raise BadInput(f"{what} must be a text, not {text!r}.")
    check_unicode(text, what)


def checked_ids(ids: Iterable[str], name: str) -> tuple[str, ...]:
    """Several ids, each once."""
    several = not isinstance(ids, str | bytes | Mapping) and isinstance(ids, Iterable)
    found = list(ids) if several else None
    if found is None or not all(isinstance(one, str) for one in found):
        raise BadInput(
            f"{name} must be a list of ids, as in [hit['id'] for hit in results], not"
            f" {str(ids)[:60]!r}."
        )
    return tuple(dict.fromkeys(found))


def checked_id(memory_id: str) -> str:
    """The id of a memory, which there may or may not be."""
    if not isinstance(memory_id, str):
        raise BadInput(f"The id of a memory must be a text, not {memory_id!r}.")
    check_unicode(memory_id, "the id of a memory")
    return memory_id
