"""How much the age of a memory takes off its score: half of it with every half-life.

The factor multiplies the fused score. A third ranking by age would not do: ranks know who is older,
not by how much, so the half-life would make no difference to them. Invariant: 1 at age 0, 1/2 at
one half-life, never rising with age (`tests/memory/test_fusion.py`). Pure; may import errors.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from memograd.errors import BadInput


def recency_factor(moment: datetime | None, *, now: datetime, half_life: timedelta) -> float:
    """2 to the power of -age / half_life, in [0, 1].

    What is yet to come, or has no date, keeps its score: the factor is 1. Times without a zone
    count as UTC. Raises BadInput for a half-life that is not positive.
    """
    if half_life <= timedelta(0):
        raise BadInput(f"The half-life of recency must be positive, not {half_life}.")
    if moment is None:
        return 1.0
    age = _utc(now) - _utc(moment)
    return math.exp2(-(max(age, timedelta(0)) / half_life))


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
