"""Which sequences go through the model together.

Invariant: every index appears exactly once; a batch of more than one stays within the limit.
"""

from __future__ import annotations

from collections.abc import Sequence


def batches_by_sum(lengths: Sequence[int], limit: int) -> list[list[int]]:
    """Group indices of similar length so that `sum <= limit` (at least one each): no padding."""
    batches: list[list[int]] = []
    total = 0
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        if batches and total + lengths[index] <= limit:
            batches[-1].append(index)
            total += lengths[index]
        else:
            batches.append([index])
            total = lengths[index]
    return batches


def batches_by_tokens(lengths: Sequence[int], limit: int) -> list[list[int]]:
    """Group indices of similar length so that `members x longest <= limit`, for what is padded to
    its longest member (at least one each)."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        # Ascending order: the sequence at hand is the longest of its batch.
        if batches and (len(batches[-1]) + 1) * lengths[index] <= limit:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches
