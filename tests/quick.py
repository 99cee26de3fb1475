"""Which of a test's cases `make test` runs, where each takes seconds: the others prove nearly the
same, and are slow."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], places: Container[int]) -> list[Any]:
    """`cases` for `pytest.mark.parametrize`: those that do not stand at these places are slow.

    A case of several arguments is a tuple.
    """
    return [case if place in places else _slow(case) for place, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)
