"""The length penalty by hand, and its shape."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memograd.grpo.batch import overlong_penalty


def test_the_papers_own_lengths() -> None:
    """20,480 tokens with a buffer of 4,096: free up to 16,384."""
    lengths = np.array([0, 16_384, 18_432, 20_480, 30_000])
    penalties = overlong_penalty(lengths, longest=20_480, share=0.2)
    np.testing.assert_allclose(penalties, [0, 0, -0.5, -1, -1])


@given(st.integers(1, 5000), st.floats(0.01, 1.0))
def test_it_never_rises_and_stays_in_its_range(longest: int, share: float) -> None:
    penalties = overlong_penalty(np.arange(0, longest + 2), longest=longest, share=share)
    assert (np.diff(penalties) <= 0).all()
    assert penalties[0] == 0 and penalties.min() == penalties[-1] == -1
