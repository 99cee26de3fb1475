"""JSON of anything that a scenario's columns may hold, the same text for the same value.

Columns are free: numbers, texts, dates, arrays, objects of the user's. Invariant: the text is
strict JSON (NaN and infinities become texts) and never depends on an object's address or on the
order of a set or a mapping, so it can be hashed. Proved in `tests/grpo/test_plain_json.py`. May
import numpy.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def plain_json(value: object) -> str:
    """One line of strict JSON; an object of an unknown type is told by its type's name alone."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, sort_keys=True)


def plain(value: object) -> Any:
    """`value` made of dicts, lists, texts, finite numbers, booleans and None only."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case np.ndarray() | np.generic():
            return plain(value.tolist())
        case Mapping():
            return {str(key): plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry) for entry in value]
        case set() | frozenset():
            return sorted((plain(entry) for entry in value), key=plain_json)
        case Path() | datetime.date() | datetime.time():
            return str(value)
        case bytes():
            return value.hex()
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {
                field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
            }
        case _:
            kind = type(value)
            return f"<{kind.__module__}.{kind.__qualname__}>"
