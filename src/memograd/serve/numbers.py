"""Numbers of a request, for every door.

pydantic takes `true` for 1. Invariant: whoever sends a truth value where a number is asked for is
told so, and never answered as for 1 or 0.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError


def no_truth_value(value: Any) -> Any:
    """What may be a number, as it stands."""
    if isinstance(value, bool):
        raise PydanticCustomError("number", "Input should be a number, not true or false")
    return value


Whole = Annotated[int, BeforeValidator(no_truth_value)]
Real = Annotated[float, BeforeValidator(no_truth_value)]
