"""Reciprocal rank fusion: one ranking out of several whose scores cannot be compared.

Cormack, Clarke and Büttcher, *Reciprocal Rank Fusion outperforms Condorcet and individual Rank
Learning Methods*, SIGIR 2009: a record scores the sum of 1 / (k + rank) over the rankings that hold
it. The paper has k = 60; with the few hundred records of a person's memory the first ranks deserve
more, and k = 20 finds more evidence (chosen on LoCoMo's conversation 26, `docs/log.md`). The sum is
divided by the most that can be had, so that first in every ranking is 1.0. Invariant: agrees with
that formula, and the order of the rankings changes no score (`tests/memory/test_fusion.py`). Pure;
standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

K: Final = 20


def fuse(rankings: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """The score in (0, 1] of every id in any ranking (id to rank, 1 is first).

    Ids come in the order of the rankings and within them. An empty ranking, which had nothing to
    say, counts as not asked.
    """
    used = [ranks for ranks in rankings if ranks]
    ids = dict.fromkeys(id for ranks in used for id in ranks)
    return {
        id: math.fsum((K + 1) / (K + ranks[id]) for ranks in used if id in ranks) / len(used)
        for id in ids
    }
