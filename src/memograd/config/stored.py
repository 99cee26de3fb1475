"""Reading back what a run was told, from the `config.json` of its folder.

Invariant: what a run wrote is read back equal. Runs that were made while all tasks shared one list
of settings hold sections of other tasks too; those, and only those, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from memograd.config.settings import LoraConfig, Settings

S = TypeVar("S", bound=Settings)

_ONCE_SHARED: Final = {"train", "eval", "memory", "text", "episodes", "sql", "served", "build"}


@dataclass(frozen=True)
class Begun:
    """What another run needs to know to begin with a run's adapter.

    recipe: sft, dpo or reward-model; empty for runs of a task.
    """

    model: str
    lora: LoraConfig
    recipe: str


def stored_values(config_json: str) -> dict[str, Any]:
    """The settings as they stand in the file.

    Raises ValueError where that is no JSON object.
    """
    values = json.loads(config_json)
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")
    return values


def stored_settings(config_json: str, kind: type[S]) -> S:
    """The settings of that kind in a run's `config.json`.

    Raises pydantic's ValidationError for settings that do not fit this version, and ValueError for
    what is no JSON object.
    """
    return kind.model_validate_json(json.dumps(values_of_kind(stored_values(config_json), kind)))


def values_of_kind(values: Mapping[str, Any], kind: type[Settings]) -> dict[str, Any]:
    """Those of a run's stored values that are settings of that kind, and what nobody knows."""
    known = {key: value for key, value in values.items() if _belongs(kind, key)}
    known.pop("recipe", None)
    for key in _ONCE_SHARED & known.keys():
        section = kind.model_fields[key].default
        if isinstance(section, Settings) and isinstance(known[key], Mapping):
            fields = type(section).model_fields
            known[key] = {name: value for name, value in known[key].items() if name in fields}
    return known


def begun_with(config_json: str) -> Begun:
    """Model and adapter of a run, whatever made it. Raises as `stored_settings`."""
    values = stored_values(config_json)
    lora = LoraConfig.model_validate(values.get("lora", {}))
    return Begun(str(values.get("model", "")), lora, str(values.get("recipe", "")))


def _belongs(kind: type[Settings], key: str) -> bool:
    return key in kind.model_fields or key not in _ONCE_SHARED
