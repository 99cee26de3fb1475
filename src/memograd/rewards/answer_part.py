"""Which part of a completion is the answer, and which answers a row accepts.

Models that reason first are asked to end with `<answer>...</answer>`; where the last such part
exists, only it is compared. A completion without the tags is an answer as a whole.

Invariants: text outside the last answer tags never changes a comparison; of several right answers
the one that scores best counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from memograd.errors import BadInput

_TAGGED = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.DOTALL)


def answer_part(completion: str) -> str:
    """What stands in the last `<answer>` tags, or all of the completion; without outer blanks."""
    tagged: list[str] = _TAGGED.findall(completion)
    return (tagged[-1] if tagged else completion).strip()


def accepted_answers(answer: object) -> list[str]:
    """The column `answer` as texts: one text or number, or a list of them that are all right."""
    entries = answer if isinstance(answer, list) else [answer]
    if not entries or any(
        isinstance(entry, bool) or not isinstance(entry, str | int | float) for entry in entries
    ):
        raise BadInput(f"the column answer must be a text, a number or a list, not {answer!r}")
    return [str(entry) for entry in entries]


def best_score(score: Callable[[str], float], answer: object) -> float:
    """The greatest `score(gold)` over the answers that the row accepts: one text or several.

    Raises BadInput where one of them is no text.
    """
    given = answer if isinstance(answer, list) else [answer]
    golds = [gold for gold in given if isinstance(gold, str)]
    if not golds or len(golds) < len(given):
        raise BadInput(f"`answer` must hold texts, or lists of texts; it holds {answer!r}.")
    return max(score(gold) for gold in golds)
