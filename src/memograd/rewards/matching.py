"""Is the answer right: as a text, or as a number.

Both compare the `answer_part` of a completion with the row's `answer` (one, or a list of which each
is right) and give 1 or 0. Invariant: writing the same answer in another width, case or spacing, or
the same number in Arabic, full-width or Chinese digits, never changes the score.
"""

from __future__ import annotations

import math

from memograd.errors import BadInput
from memograd.rewards.answer_part import accepted_answers, answer_part
from memograd.rewards.numbers import last_number
from memograd.rewards.words import folded

_OUTER_PUNCTUATION = " .。!?,;:\"'“”‘’「」"  # folding has made full-width ones half width


def exact_match(completion: str, answer: str | float | list[str | float]) -> float:
    """1 if the completion's answer is the row's `answer`, else 0.

    Compared without case, width, extra blanks and punctuation around it; punctuation inside counts.
    """
    said = _bare(answer_part(completion))
    return float(any(said == _bare(gold) for gold in accepted_answers(answer)))


def numeric_match(
    completion: str, answer: str | float | list[str | float], *, tolerance: float = 1e-6
) -> float:
    """1 if the last number of the completion's answer is the last number of `answer`, else 0.

    `tolerance`: allowed difference, as a share of the right number (of 1 if that is smaller).
    Reads 1,234.5, １２３, 3.5万, 三百二十五; see `last_number`. A completion without a number
    scores 0; a gold without one is a `BadInput`.
    """
    golds = [last_number(gold) for gold in accepted_answers(answer)]
    if None in golds:
        raise BadInput(f"the column answer must have a number for numeric_match, not {answer!r}")
    said = last_number(answer_part(completion))
    if said is None:
        return 0.0
    return float(
        any(
            math.isclose(said, gold, rel_tol=tolerance, abs_tol=tolerance)
            for gold in golds
            if gold is not None
        )
    )


def _bare(text: str) -> str:
    return folded(text).strip(_OUTER_PUNCTUATION)
