"""Overlong reward shaping: an answer that comes near the length limit costs something.

DAPO's soft punishment (arXiv:2503.14476), with L the most tokens an answer may have and a buffer of
`share` * L tokens before it:

    0                                up to L - buffer tokens
    (L - buffer - tokens) / buffer   within the buffer
    -1                               at L, and beyond it

Invariant: continuous, never rising with length, between -1 and 0. Proved in
`tests/grpo/test_overlong.py`. May import numpy only.
"""

from __future__ import annotations

import numpy as np


def overlong_penalty(tokens_K: np.ndarray, *, longest: int, share: float) -> np.ndarray:
    """What is added to each rollout's reward [K]; `share` is above 0 and at most 1."""
    buffer = share * longest
    return np.clip((longest - buffer - tokens_K) / buffer, -1.0, 0.0)
