"""Memory operations chosen by a language model that writes them down as text.

The rewards are named by this package (`memograd.tasks.memory_ops_text:worth`).
"""

from __future__ import annotations

from typing import Any

REWARDS = ("worth", "well_formed", "gold_operation")


def __getattr__(name: str) -> Any:
    if name in REWARDS:
        from memograd.tasks.memory_ops_text import recipe

        return getattr(recipe, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
