"""Which tokens could be drawn where an answer was held to a grammar: a bit for each there is.

A token drawn under a grammar comes from the model's distribution over the allowed tokens alone, so
its log-probability can be computed again only by who knows them. They are kept as they were, one
mask a token and None where everything was allowed, and not as the grammar, so that learning needs
neither the grammar nor the library that read it. Invariant: `unpacked(packed(masks)) == masks`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

TokenMask: TypeAlias = bytes
"""Bit `id` (the least significant first) says whether that token could be drawn."""
TokenMasks: TypeAlias = tuple[TokenMask | None, ...]
"""Of the tokens of an answer, in order; None: all."""


def packed(masks: Sequence[TokenMask | None]) -> bytes:
    """A short form: an answer has many equal masks, and masks have many equal bytes."""
    distinct = list(dict.fromkeys(mask for mask in masks if mask is not None))
    place = {mask: number for number, mask in enumerate(distinct)}
    which = [-1 if mask is None else place[mask] for mask in masks]
    head = np.asarray([len(which), len(distinct), *which], dtype="<i4").tobytes()
    return zlib.compress(head + b"".join(distinct))


def unpacked(data: bytes) -> TokenMasks:
    """The masks that `data` was made of."""
    plain = zlib.decompress(data)
    count, kinds = np.frombuffer(plain[:8], dtype="<i4").tolist()
    which = np.frombuffer(plain[8 : 8 + 4 * count], dtype="<i4").tolist()
    body = plain[8 + 4 * count :]
    size = len(body) // kinds if kinds else 0
    distinct = [body[size * number : size * (number + 1)] for number in range(kinds)]
    return tuple(None if number < 0 else distinct[number] for number in which)
