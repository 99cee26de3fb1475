"""Functions and classes of the user's own, from a Python file or a module, and what they ask for.

A file is run once for each reading of a reward specification, under a module name of its own; its
folder is made importable, after everything else, so that it can import what lies beside it. What
the file remembers between calls is the user's affair: it is not in a checkpoint.

Invariants: whatever is wrong with the code (it is not there, not Python, fails while loading, lacks
the name, the name is no function) is one `BadInput` sentence with the file and, where there is one,
the line. A reward function is called with what its signature names and nothing else, so one that
takes only `completions` works as well as one that takes `**kwargs`.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from memograd.errors import RAISED_BY_USERS, BadInput

KINDS = {"reward": "function", "environment": "class", "agent": "function"}
"""What is loaded, and what it is in Python; for error messages."""

_FOLDERS: list[Path] = []
"""The folders that `load_file` made importable in this process."""


def load_file(path: Path, kind: str = "reward") -> ModuleType:
    """Run a Python file as a module; `BadInput` if it cannot be read, parsed or run."""
    path = path.resolve()
    if not path.is_file():
        raise BadInput(f"There is no {kind} file {path}; write path/to/file.py:{KINDS[kind]}.")
    # Two files of the same name must not take each other's place.
    name = f"memograd_{kind}s_{path.stem}_{hashlib.sha256(bytes(path)).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"The {kind} file {path} is no Python file; its name must end with .py.")
    module = importlib.util.module_from_spec(spec)
    _make_importable(path.parent)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise BadInput(
            f"{error.filename or path} line {error.lineno} is not valid Python: {error.msg}."
        ) from error
    except RAISED_BY_USERS as error:
        raise BadInput(f"{_place(path, error)} {_what(error)} while it was loaded.") from error
    return module


def load_module(name: str, kind: str = "reward") -> ModuleType:
    """Import a module by its dotted name; `BadInput` if that fails."""
    try:
        return importlib.import_module(name)
    except RAISED_BY_USERS as error:
        if isinstance(error, ModuleNotFoundError) and name.startswith(error.name or name):
            raise BadInput(
                f"There is no module {name} to take {kind}s from; name an installed module, or a "
                f"file (path/to/file.py:{KINDS[kind]})."
            ) from error
        raise BadInput(f"The {kind} module {name} {_what(error)} while it was loaded.") from error


def function_of(module: ModuleType, name: str, kind: str = "reward") -> Any:
    """The function of that name; `BadInput` if there is none or it cannot be called."""
    where = getattr(module, "__file__", None) or module.__name__
    if not hasattr(module, name):
        own = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        near = difflib.get_close_matches(name, own, n=2, cutoff=0.5) or own
        hint = f"it has {', '.join(near)}" if near else f"it has no {KINDS[kind]} at all"
        raise BadInput(f'{where} has no {kind} {KINDS[kind]} "{name}"; {hint}.')
    value = getattr(module, name)
    if not callable(value):
        wanted = {
            "reward": "a reward is f(prompts, completions, **columns) -> list of numbers",
            "environment": "an environment is a class with reset(**row)",
            "agent": "an agent is async def f(task, base_url, api_key) -> float | None",
        }
        raise BadInput(
            f"{name} in {where} is {type(value).__name__}, not a {KINDS[kind]}; {wanted[kind]}."
        )
    return value


def _make_importable(folder: Path) -> None:
    """Let files of `folder` import each other: after installed modules, before other user folders.

    A helper file that another user folder has too is forgotten, so that each file finds its own
    neighbour and not one of the same name that was imported earlier.
    """
    others = [one for one in _FOLDERS if one != folder]
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or not others or "." in name:
            continue
        place = Path(file)
        if place.parent in others and place.stem == name and (folder / place.name).is_file():
            del sys.modules[name]
    here = str(folder)
    if here in sys.path and folder not in _FOLDERS:
        return  # It was importable before: its place is not ours to change.
    if here in sys.path:
        sys.path.remove(here)
    first = min((sys.path.index(str(one)) for one in others if str(one) in sys.path), default=None)
    sys.path.insert(len(sys.path) if first is None else first, here)
    if folder not in _FOLDERS:
        _FOLDERS.append(folder)


def _place(path: Path, error: BaseException) -> str:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f"{path} line {lines[-1]}" if lines else str(path)


def _what(error: BaseException) -> str:
    return f"raised {type(error).__name__}: {error}"


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
