"""What of a message holds a secret, or is asked not to be saved, and what may be kept beside it.

A password has a form, or the relation model tells it by what stands around it. Of a sentence with a
secret the harmless clauses are kept: "wifi密码是happy8866,家里路由器是华硕的" tells of a router.

Invariant: what is given back holds no secret that rules or the model see. Pure functions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from memograd.memory.reader.asked import NOT_SAVED_AHEAD, is_another_matter
from memograd.memory.reader.fact import Said
from memograd.memory.reader.parts import asks, told_apart
from memograd.memory.reader.sentences import has_secret, may_hold_secret

if TYPE_CHECKING:
    import numpy as np

    from memograd.memory.relations import RelationModel

HARMLESS_ABOVE: Final = 0.7
"""How likely a fact a clause is that stands beside a secret, in its message or alone."""
LONGEST: Final = 600  # characters of a sentence; what goes on longer is pasted text
_MAY_BELONG: Final = re.compile(r"(?<![A-Za-z])\d(?:[ .-]?\d){2}")  # a part of the secret
_IN_WORDS: Final = re.compile(
    r"\b(?:(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)[ -]?){3,}\b", re.IGNORECASE
)
_TOLD_CODE: Final = re.compile(r"[:：]\D{0,12}\d{4,}\W*$")


def may_be_code(text: str) -> bool:
    """Whether a sentence behind a secret has a figure that may be another one."""
    return _MAY_BELONG.search(text) is not None or _IN_WORDS.search(text) is not None


def told_by_way_in(
    model: RelationModel, message: str, before: tuple[Said, ...], parts: list[tuple[int, int, str]]
) -> set[tuple[int, int]]:
    """The places of those that hold a secret, as a whole or in a clause, as the model sees it.

    It is asked where rules find none: they know which clause it is and what may stay.
    """
    asked = [
        (place, said)
        for *place, text in parts
        for said in dict.fromkeys([text, *(clause for _, clause in told_apart(text))])
        if may_hold_secret(said)
    ]
    holds = model.holds_secret(message, before, [said for _, said in asked])
    return {(place[0], place[1]) for (place, _), held in zip(asked, holds, strict=True) if held}


def without_secrets(
    model: RelationModel,
    message: str,
    before: tuple[Said, ...],
    sentences: list[tuple[int, int, str]],
    worth: np.ndarray,
    told_by_way: set[tuple[int, int]],
) -> tuple[list[tuple[int, int, str]], np.ndarray, bool]:
    """The sentences, of those with a secret the harmless clauses; whether some were asked not
    to be saved and so are left out: what follows that request, up to another matter.

    "wifi密码是happy8866,家里路由器是华硕的" tells of a router. A clause with a number may be
    a part of the secret.
    """
    import numpy as np

    parts: list[tuple[int, int, str]] = []
    rows: list[np.ndarray] = []
    kept_back = resumed = False
    for (start, end, text), row in zip(sentences, worth, strict=True):
        if NOT_SAVED_AHEAD.search(text):
            kept_back = True
            resumed = _TOLD_CODE.search(text) is not None  # that was all of it
            continue
        resumed = resumed or is_another_matter(text, asks=asks(text))
        if kept_back and not resumed:
            continue
        if kept_back:  # beside "don't save this" everything looks like something not to keep
            row = model.worth(text, (), [text])[0]
        by_form = has_secret(text)
        if not (by_form or (start, end) in told_by_way) or len(text) > LONGEST:
            parts.append((start, end, text))
            rows.append(row)
            continue
        apart = [(start + at, start + at + len(said), said) for at, said in told_apart(text)]
        held = set() if by_form else told_by_way_in(model, message, before, apart)
        clauses = [
            (first - start, said)
            for first, last, said in apart
            if (first, last) not in held and not has_secret(said) and not _MAY_BELONG.search(said)
        ]
        if not clauses or (len(clauses) == len(apart) and not by_form):  # none is the secret
            parts.append((start, end, text))
            rows.append(row)
            continue
        found_worth = model.worth(message, before, [said for _, said in clauses])
        for (at, said), own_row in zip(clauses, found_worth, strict=True):
            # Beside a password and a question a router's make hardly looks like a fact.
            alone = model.worth(said, (), [said])[0]
            own_row = max(own_row, alone, key=_fact)
            if float(own_row[0]) >= HARMLESS_ABOVE:
                parts.append((start + at, start + at + len(said), said))
                rows.append(own_row)
    return parts, np.stack(rows) if rows else worth[:0], kept_back


def _fact(row: np.ndarray) -> float:
    return float(row[0])
