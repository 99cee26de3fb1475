"""The user's own `calculate_reward(action, new_fact, retrieved_facts)`, from a Python file.

    my_rewards.py                  its function calculate_reward
    my_rewards.py:gentle           another function of it
    my_package.rewards:gentle      a function of a module

Invariant: a function that could not be called with these three arguments is refused when it is
loaded, in one sentence, and not in the middle of a run (`tests/rewards/test_operation_code.py`).
May import: errors, rewards.operations, rewards.user_code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path

from memograd.errors import BadInput
from memograd.rewards.operations import OperationReward, opportunity_cost
from memograd.rewards.user_code import function_of, load_file, load_module

NAME = "calculate_reward"
"""The function that is taken where the specification names none; the Memory-Agent guide's name."""

SIGNATURE = f"{NAME}(action, new_fact, retrieved_facts) -> number"

OPERATION_REWARDS: dict[str, OperationReward] = {"opportunity_cost": opportunity_cost}
"""The built-in rewards of single operations, by name."""

_FILE = re.compile(r"(?P<source>.+\.py)\s*(?::\s*(?P<name>\w+))?", re.DOTALL)
_MODULE = re.compile(r"(?P<source>[^\W\d][\w.]*)\s*:\s*(?P<name>\w+)")


def operation_reward(spec: str, *, also: Sequence[str] = ()) -> OperationReward:
    """The built-in reward of that name, or the user's function that `spec` names.

    also: other names that the caller knows, for the message. Raises BadInput when there is none,
    its file cannot be loaded, or it does not take the three arguments; an `async def` function is
    refused too, because operations are scored one by one.
    """
    if spec.strip() in OPERATION_REWARDS:
        return OPERATION_REWARDS[spec.strip()]
    match = _FILE.fullmatch(spec.strip()) or _MODULE.fullmatch(spec.strip())
    if match is None:
        raise BadInput(
            f'There is no operation reward "{spec}"; use {", ".join([*also, *OPERATION_REWARDS])}'
            ", or a file "
            f"with {SIGNATURE} (path/to/file.py or path/to/file.py:function)."
        )
    source, name = match["source"].strip(), match["name"] or NAME
    module = load_file(Path(source)) if source.endswith(".py") else load_module(source)
    function: OperationReward = function_of(module, name)
    check_signature(function, f"{name} in {source}")
    return function


def with_absolute_file(spec: str) -> str:
    """The same specification for any working directory."""
    match = _FILE.fullmatch(spec.strip())
    if match is None:
        return spec.strip()
    path = str(Path(match["source"].strip()).resolve())
    return f"{path}:{match['name']}" if match["name"] else path


def check_signature(function: OperationReward, named: str) -> None:
    """`BadInput` unless the function can be called with the three arguments; `named` is for it."""
    if inspect.iscoroutinefunction(function):
        raise BadInput(f"{named} is an async function; an operation reward is a plain one.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have none; they are tried
        return
    try:
        signature.bind("ADD", "", [])
    except TypeError as error:
        raise BadInput(
            f"{named} takes {signature}, which does not fit ({error}); write {SIGNATURE}."
        ) from None
