"""Behaviour cases: what is told to a memory, and what it must and must not say afterwards.

A case is a line of JSON (`tests/behaviour/{en,zh}.jsonl`) with an `id` such as "en-s1-001", a
`kind`, and `steps` (a text, chat messages, or `{"messages", "timestamp"}`). Then `ask` searches,
with regular expressions on the joined texts of the first `top` results, and `all_has` and `all_not`
look at all items.

Invariant: the same memory, case and user give the same verdict; an author that no file has is
refused.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memograd.errors import BadInput
from memograd.memory import Memory

DEFAULT_TIME: Final = "2024-05-07T18:30:00+00:00"
Case = Mapping[str, Any]


@dataclass(frozen=True)
class Wrong:
    """why: for people. lost: something that must be said is not."""

    why: str
    lost: bool


def read_cases(paths: Sequence[Path], authors: Sequence[str] = ()) -> list[Case]:
    """The cases of those authors in the files, of all where none is named.

    Raises BadInput for a file that holds no cases, and for an author that none of them has.
    """
    cases: list[Case] = []
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"The behaviour cases {path} cannot be read: {error}.") from error
        for number, line in enumerate(lines, 1):
            try:
                case = json.loads(line)
                _ = author_of(case), language_of(case), case["kind"], case["steps"]
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise BadInput(
                    f"{path}:{number} is no behaviour case: give a line of JSON with id"
                    " (such as en-s1-001), kind and steps."
                ) from error
            cases.append(case)
    known = {author_of(case) for case in cases}
    for author in authors:
        if author not in known:
            names = ", ".join(sorted(known)) or "none"
            raise BadInput(f"No behaviour case is by the author {author!r}; there are {names}.")
    return [case for case in cases if not authors or author_of(case) in authors]


def language_of(case: Case) -> str:
    """en or zh."""
    return str(case["id"][:2])


def author_of(case: Case) -> str:
    """Who wrote it, such as s1."""
    return str(case["id"].split("-")[1])


def play(memory: Memory, case: Case, user: str, *, infer: bool = True) -> list[float]:
    """Tells the memory the steps of a case; returns the milliseconds of each call of `add`."""
    took = []
    for step in case["steps"]:
        said, at = step, DEFAULT_TIME
        if isinstance(step, dict) and "messages" in step:
            said, at = step["messages"], step.get("timestamp", at)
        began = time.perf_counter()
        memory.add(said, user_id=user, timestamp=at, infer=infer)
        took.append(1_000 * (time.perf_counter() - began))
    return took


def what_is_wrong(memory: Memory, case: Case, user: str) -> Wrong | None:
    """What is wrong after the steps of a case, None where nothing is."""
    items = "\n".join(one["memory"] for one in memory.get_all(user_id=user)["results"])
    for ask in case.get("ask", []):
        hits = memory.search(ask["q"], user_id=user, top_k=ask.get("top", 3))["results"]
        found = "\n".join(hit["memory"] for hit in hits)
        if ask.get("has") and not re.search(ask["has"], found, re.I):
            why = f"asked {ask['q']!r}: no {ask['has'][-60:]!r} in {found!r} of {items!r}"
            return Wrong(why, lost=True)
        if ask.get("not") and re.search(ask["not"], found, re.I):
            return Wrong(f"asked {ask['q']!r}: {ask['not'][-60:]!r} in {found!r}", lost=False)
    for want in case.get("all_has", []):
        if not re.search(want, items, re.I):
            return Wrong(f"no {want!r} in {items!r}", lost=True)
    for bad in case.get("all_not", []):
        if found_bad := re.search(bad, items, re.I):
            return Wrong(f"{found_bad[0]!r} in {items!r}", lost=False)
    return None
