"""Holding an answer to a grammar while it is drawn, and scoring it as it was drawn.

What may come next is a `Constraint`'s to say, token after token; the sampler draws from
softmax(logits / temperature) over the allowed tokens and keeps the masks, and the learner's forward
computes with the same masks. Invariant: under the weights that drew an answer its log-probabilities
are the drawn ones, so the ratio of on-policy learning is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch

from memograd.rollout.allowed_tokens import TokenMask


class Constraint(Protocol):
    """Where an answer stands in its grammar."""

    def fork(self) -> Constraint:
        """An answer of its own, from here on."""
        ...

    def allowed(self) -> TokenMask | None:
        """The tokens that may come next; None: all. Raises MemogradError where that is not
        known."""
        ...

    def advance(self, token: int) -> None:
        """This token has come."""
        ...


def restricted(scores_NV: torch.Tensor, masks: Sequence[TokenMask | None]) -> torch.Tensor:
    """The scores with those of forbidden tokens so low that their probability is 0; row n is held
    to `masks[n]`. Not minus infinity: an entropy multiplies it by 0."""
    held = [row for row, mask in enumerate(masks) if mask is not None]
    if not held:
        return scores_NV
    size = scores_NV.shape[-1]
    forbidden = np.ones((len(held), size), dtype=bool)
    for line, row in enumerate(held):
        bits = np.frombuffer(masks[row] or b"", dtype=np.uint8)
        known = np.unpackbits(bits, bitorder="little", count=min(size, 8 * len(bits)))
        forbidden[line, : len(known)] = known == 0
    rows = torch.tensor(held, device=scores_NV.device)
    lowest = torch.finfo(scores_NV.dtype).min
    mask_HV = torch.from_numpy(forbidden).to(scores_NV.device)
    return scores_NV.index_copy(0, rows, scores_NV[rows].masked_fill(mask_HV, lowest))
