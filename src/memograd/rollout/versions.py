"""Which version of the policy drew which tokens.

A version is a number that training gives to the weights: how many steps they have learnt. A turn's
tokens are drawn one after the other, and a server may exchange the weights in between, so a turn
carries *spans*: so many tokens under this version, then so many under that one.

Invariant: the spans of a turn have as many tokens as the turn, or there are none, and then the
weights that are about to learn drew it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

UNSAID = -1
"""In arrays of versions: the weights that are about to learn drew the token, or nobody did."""


@dataclass(frozen=True)
class VersionSpan:
    """`tokens` neighbouring tokens that one version drew."""

    version: int
    tokens: int


def one_span(version: int, tokens: int) -> tuple[VersionSpan, ...]:
    """The spans of `tokens` tokens that one version drew; none of none."""
    return (VersionSpan(version, tokens),) if tokens else ()


def spans_of(versions: Sequence[int]) -> tuple[VersionSpan, ...]:
    """The spans of tokens of these versions, one for each token."""
    spans: list[VersionSpan] = []
    for version in versions:
        if spans and spans[-1].version == version:
            spans[-1] = VersionSpan(version, spans[-1].tokens + 1)
        else:
            spans.append(VersionSpan(version, 1))
    return tuple(spans)


def versions_of(spans: Sequence[VersionSpan], tokens: int) -> np.ndarray:
    """The version of each of `tokens` tokens [C] int64; `UNSAID` where there are no spans.

    Raises `ValueError` if the spans have another number of tokens.
    """
    if not spans:
        return np.full(tokens, UNSAID, dtype=np.int64)
    if sum(span.tokens for span in spans) != tokens:
        raise ValueError(f"spans {spans} are not of {tokens} tokens")
    return np.repeat(
        np.array([span.version for span in spans], dtype=np.int64),
        [span.tokens for span in spans],
    )
