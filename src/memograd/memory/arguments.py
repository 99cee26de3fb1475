"""What callers of `Memory` hand over, checked: one sentence that names what is wrong.

Invariant: what passes here can be kept and searched; what does not is BadInput and leaves no trace.
Pure.
"""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from memograd.errors import BadInput
from memograd.memory.records.documents import NAME, SHELF, VALUE, says_document
from memograd.memory.records.items import Kind, to_expiry
from memograd.memory.records.scope import check_unicode
from memograd.memory.write.changes import Labels

PROCEDURAL_IN_MEM0: Final = "procedural_memory"


def checked_labels(
    metadata: Mapping[str, Any] | None,
    kind: Kind | str | None,
    categories: Iterable[str],
    expiration_date: object = None,
) -> Labels:
    """What is said about everything that one call adds."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise BadInput(f"metadata must be a dictionary, not {type(metadata).__name__}.")
    if metadata is not None and says_document(metadata):
        raise BadInput(
            f"metadata with {SHELF}, {NAME} and {VALUE} is that of a framework's document: name one"
            " of them differently."
        )
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
    return Labels(dict(metadata or {}), known, names, to_expiry(expiration_date))


def one_of(name: str, given: Any, other_name: str, other: Any) -> Any:
    """What is given under one of two names that mean the same; None under none of them."""
    if given is not None and other is not None and given != other:
        raise BadInput(f"{name} and {other_name} mean the same: give one of them.")
    return other if given is None else given


def kind_of(kind: Kind | str | None, memory_type: str | None) -> Kind | str | None:
    """The kind, also by mem0's word for the one kind that it knows."""
    if memory_type is None:
        return kind
    if memory_type != PROCEDURAL_IN_MEM0:
        raise BadInput(
            f"There is no memory_type {memory_type!r}: mem0 has {PROCEDURAL_IN_MEM0} alone, and"
            " kind names all four kinds."
        )
    if kind not in (None, Kind.PROCEDURAL):
        raise BadInput(f"kind is {kind!r} and memory_type {memory_type!r}: give one of them.")
    return Kind.PROCEDURAL


def checked_days(given: timedelta | float | None, name: str) -> timedelta | None:
    """A stretch of time above zero; a number counts days."""
    if given is None or isinstance(given, timedelta):
        return given
    days = checked_number(given, name)
    try:
        return timedelta(days=days or 0)
    except (OverflowError, ValueError):
        raise BadInput(f"{name} is {given!r} days: that is longer than time is.") from None


def warn_unknown(method: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Name the keywords that a method of `Memory` does not have, and goes on without."""
    known = list(inspect.signature(method).parameters) if given else []
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f": did you mean {close[0]}?" if close else "."
            warnings.warn(
                f"Memory.{method.__name__} has no {name}, which changes nothing here{hint}",
                stacklevel=3,
            )


def checked_count(given: int | None, default: int, name: str, *, least: int = 0) -> int:
    """A whole number of at least `least`; `default` where none is given."""
    if given is None:
        return default
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise BadInput(f"{name} must be a whole number of at least {least}, not {given!r}.")
    return given


def checked_number(given: float | None, name: str) -> float | None:
    """A number, or None where none is given; NaN, which nothing is at least, is none."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given:
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
