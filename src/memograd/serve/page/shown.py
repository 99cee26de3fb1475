"""How values are shown: days, numbers, the difference between two texts. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import Final, Literal

# A Latin word, a space, or a single character of any other script: what a difference is made of.
_PIECE: Final = re.compile(r"[A-Za-z0-9À-ɏ']+|\s+|.", re.S)
_LEAST_COMMON: Final = 0.75
Change = Literal["same", "gone", "new"]


def day(value: str | datetime | None) -> str:
    """`2024-05-07`, or nothing."""
    return "" if value is None else _moment(value).strftime("%Y-%m-%d")


def moment(value: str | datetime | None) -> str:
    """`2024-05-07 18:30`, in UTC, or nothing."""
    return "" if value is None else _moment(value).astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def second(seconds: float) -> str:
    """`2024-05-07 18:30:05`, in UTC, of seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many digits behind the point; a dash for none."""
    return "–" if value is None else f"{value:,.{digits}f}"


def difference(before: str | None, after: str | None) -> Iterator[tuple[Change, str]]:
    """The pieces of two texts, as what is the same, gone or new, in reading order.

    Texts that have little in common are told one after the other.
    """
    old, new = _PIECE.findall(before or ""), _PIECE.findall(after or "")
    matched = SequenceMatcher(None, old, new, autojunk=False)
    if before and after and matched.ratio() < _LEAST_COMMON:
        yield from (("gone", before), ("same", " "), ("new", after))
        return
    for tag, old_from, old_to, new_from, new_to in matched.get_opcodes():
        if tag == "equal":
            yield "same", "".join(old[old_from:old_to])
            continue
        if old_to > old_from:
            yield "gone", "".join(old[old_from:old_to])
        if new_to > new_from:
            yield "new", "".join(new[new_from:new_to])


def _moment(value: str | datetime) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
