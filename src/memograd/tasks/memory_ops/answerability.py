"""Can a question be answered from a memory? Measured by what a search for it brings to light.

    answerability = share of the needed statements among the top k          (1 where none is needed)
                    x (1 - misled_cost) if a misleading one is there        (0 where none is needed)

No model reads anything: a statement that was not found cannot be answered from, and one that was
superseded or should be forgotten spoils the answer. `evidence recall` alone is the share.

Invariants: between 0 and 1; keeping a needed statement never hurts by itself, keeping a misleading
one never helps. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class AnswerStandard:
    """How answers are judged, and what memory costs.

    top_k: items that a question may find. misled_cost: what one misleading item takes of an
    answer. token_cost: what one token more in the memory costs, in answered questions. change_cost:
    what any change of the memory costs.
    """

    top_k: int = 5
    misled_cost: float = 0.5
    token_cost: float = 0.004
    change_cost: float = 0.02


def recalled(found: Collection[int], needed: Collection[int]) -> float:
    """Share of the needed statements that were found; 1 where none is needed."""
    return sum(number in found for number in needed) / len(needed) if needed else 1.0


def answerability(
    found: Collection[int],
    needed: Collection[int],
    misleading: Collection[int],
    misled_cost: float,
) -> float:
    """The formula above; `found` are the statements that the top k items carry."""
    if not any(number in found for number in misleading):
        return recalled(found, needed)
    return recalled(found, needed) * (1 - misled_cost) if needed else 0.0
