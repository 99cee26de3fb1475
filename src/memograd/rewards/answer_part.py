"""Which part of a completion is the answer, and which answers a row accepts.

Models that reason first are asked to end with `<answer>...</answer>`; where the last such part
exists, only it is compared. A completion without the tags is an answer as a whole.

Invariant: text outside the last answer tags never changes a comparison. Tested in
`tests/rewards/test_matching.py`. May import: errors.
"""

from __future__ import annotations

import re

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
