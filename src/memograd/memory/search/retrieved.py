"""From ranked turns to the text in a prompt: fill a token budget, then tell the story in order.

Invariant: the budget is filled by relevance and never exceeded, and what was chosen is returned in
chronological order. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from memograd.memory.records.turns import RawTurn


@dataclass(frozen=True)
class RetrievedTurn:
    """A turn with the reason it is here.

    score: cosine similarity to the query (0.0 where turns were chosen by recency). rank: 1 is the
    most relevant, or the most recent. position: how many turns its scope held when it was stored,
    which orders the turns of one session.
    """

    turn: RawTurn
    score: float
    rank: int
    position: int = 0


def fill_budget(
    ranked: Iterable[RetrievedTurn], *, token_budget: int, count_tokens: Callable[[str], int]
) -> list[RetrievedTurn]:
    """The turns that fit, taken in the given order, returned in chronological order.

    A turn costs the tokens of its rendered line with its line break. One that exceeds what is left
    of the budget is skipped and filling goes on: a long turn must not shut out the short ones
    behind it.
    """
    left = token_budget
    kept = []
    for found in ranked:
        cost = count_tokens(found.turn.render() + "\n")
        if cost <= left:
            left -= cost
            kept.append(found)
    return sorted(kept, key=lambda found: (found.turn.session, found.position))


def render_memory(turns: Sequence[RetrievedTurn]) -> str:
    """One dated line a turn, in the given order; an empty string for no turns."""
    return "\n".join(found.turn.render() for found in turns)
