"""Comparing methods at an equal budget of tokens: what each keeps may cost the same, no more.

A method that keeps more finds more, so "keeps everything" wins every table that does not ask what
it keeps. Here a method gives each statement a score (or an order of preference), and what it likes
best is kept until the budget, a share of all tokens, is full. One that does not fit any more is
skipped and filling goes on, as `fill_budget` of `memory.search.context` does for prompts.

Invariants: the budget is never exceeded; nothing left out would still fit; equal scores are taken
in their order, so no draw decides. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from memograd.errors import BadInput


def share_of_tokens(tokens: Sequence[int], share: float) -> int:
    """The budget: `share` of the sum of `tokens`, rounded down; BadInput outside [0, 1]."""
    if not 0 <= share <= 1:
        raise BadInput(f"A budget is a share of all tokens between 0 and 1, not {share}.")
    if any(count < 0 for count in tokens):
        raise BadInput("A statement cannot cost less than no token.")
    # 0.29 * 100 is 28.999999999999996: rounding must not take a token away.
    return math.floor(share * sum(tokens) + 1e-9)


def keep_preferred(order: Sequence[int], tokens: Sequence[int], budget: int) -> list[int]:
    """The statements that fit, taken in the order of preference, returned by position.

    order: positions in `tokens`, best first, none twice; one that it leaves out is never kept.
    tokens [n]: what each statement costs. Raises BadInput for a position that is missing or twice.
    """
    if len(set(order)) < len(order) or not set(order) <= set(range(len(tokens))):
        raise BadInput(f"The order must name positions below {len(tokens)}, each at most once.")
    left, kept = budget, []
    for position in order:
        if tokens[position] <= left:
            left -= tokens[position]
            kept.append(position)
    return sorted(kept)


def keep_top(scores: Sequence[float], tokens: Sequence[int], share: float) -> list[int]:
    """Positions of the statements with the highest scores that fit `share` of all tokens.

    scores, tokens [n]: one each per statement. Raises BadInput when they differ in number, or a
    score is not finite.
    """
    if len(scores) != len(tokens) or not all(math.isfinite(score) for score in scores):
        raise BadInput(
            f"Each of {len(tokens)} statements needs one finite score; got {len(scores)} scores."
        )
    order = sorted(range(len(scores)), key=lambda position: -scores[position])
    return keep_preferred(order, tokens, share_of_tokens(tokens, share))
