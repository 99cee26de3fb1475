"""Cutting a long text into chunks of limited size, at the best places it offers.

Places in this order: ends of lines, ends of sentences (English and Chinese), spaces, and within a
word only where it alone is too long. Invariants: the chunks joined are the text; none is over the
limit; the work is linear in the length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memograd.errors import BadInput

BYTES_PER_TOKEN: Final = 3  # as in `memory.language.estimate_tokens`
LEAST_TOKENS: Final = 16
_PLACES: Final = (
    re.compile(r"(?<=\n)"),
    re.compile(r"(?<=[.!?] )|(?<=[。！？；])"),
    re.compile(r"(?<=\s)"),
    re.compile(r"(?<=.)", re.DOTALL),
)


def text_chunks(text: str, tokens: int) -> list[str]:
    """The text in chunks of at most `tokens` tokens, estimated; raises BadInput under 16."""
    if tokens < LEAST_TOKENS:
        raise BadInput(f"A chunk of {tokens} tokens is too small: give at least {LEAST_TOKENS}.")
    limit = tokens * BYTES_PER_TOKEN
    chunks: list[str] = []
    parts: list[str] = []
    filled = 0
    for part, cost in _parts(text, limit, 0):
        if filled + cost > limit:
            chunks.append("".join(parts))
            parts, filled = [], 0
        parts.append(part)
        filled += cost
    return [*chunks, "".join(parts)] if parts else chunks


def _parts(text: str, limit: int, level: int) -> Iterator[tuple[str, int]]:
    """Pieces of the text with their bytes, each within the limit, cut no finer than needed."""
    cost = len(text.encode("utf-8", "surrogatepass"))
    if cost <= limit:
        if text:
            yield text, cost
        return
    for part in _PLACES[level].split(text):
        yield from _parts(part, limit, level + 1)
