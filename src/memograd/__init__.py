"""memograd: train the memory of language-model agents by reinforcement learning.

Importing the package costs next to nothing: no torch, no database, no model. Each room
(`memograd.memory`, `memograd.rollout`, `memograd.grpo`, ...) is imported by its own name, and
`tests/test_package.py` holds both that and the order in which rooms may import each other.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
