"""What a reward function asks for, read from its signature.

Invariant: a function is called with what it names and nothing else, so one that takes only
`completions` works as well as one that takes `**kwargs`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

_BATCH = ("prompts", "completions")


def taken_by(function: Callable[..., Any], available: Iterable[str]) -> list[str]:
    """Those of the `available` arguments that the function names, or all if it takes `**kwargs`."""
    parameters = _parameters(function)
    if parameters is None or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return list(available)
    return [name for name in available if name in parameters]


def needed_columns(function: Callable[..., Any]) -> list[str]:
    """The columns without which the function cannot be called, in the order it names them."""
    parameters = _parameters(function) or {}
    needed = {
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    return [name for name in parameters if name in needed and name not in _BATCH]


def source_of(function: Callable[..., Any]) -> str | None:
    """The file that the function is written in, if it is a Python function."""
    code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", None)
    return None if code is None else str(code.co_filename)


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter] | None:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return None
