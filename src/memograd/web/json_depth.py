"""How deep JSON may be nested, wherever it is read or kept.

Readers and writers of JSON give up at some depth, each at its own. What one of them took and
another one cannot write would then stand in the way of everything that is told together with it.
"""

from __future__ import annotations

from typing import Any, Final

DEEPEST: Final = 100
"""Objects and lists within each other."""


def too_deep(value: Any) -> bool:
    """Whether more than `DEEPEST` objects and lists of a JSON value stand within each other."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return False
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return True
