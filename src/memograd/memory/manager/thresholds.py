"""How sure the relation model must be, for everything that the manager makes of a message.

Each is a probability, chosen on the authors of `tests/behaviour` that were read, with the weights
that ship: other weights want them chosen again (`docs/relations.md`). Invariant: numbers only;
`relations.py` says what each of them decides.
"""

from __future__ import annotations

from typing import Final

CLOSE_ABOVE: Final = 0.75  # what it replaces or ends becomes past
DOUBT_ABOVE: Final = 0.4  # below that, but from here on, the item says that it is in doubt
UNTOLD_ABOVE: Final = 0.78  # a correction that nothing in the words sounds like
VALUE_ABOVE: Final = 0.4  # but that gives a value of the same type
BARE_VALUE_ABOVE: Final = 0.6  # or a bare value
BARE_LENGTH: Final = 8  # characters of a Chinese message that may be nothing but a value
REMARK_ABOVE: Final = 0.5
ADDED_ABOVE: Final = 0.97  # where the words say that something comes on top
CORRECT_VALUE_ABOVE: Final = 0.1  # where they also give a value of the same type
CORRECT_ABOVE: Final = 0.3  # of what was just said, where the words sound like a correction
RETRACT_ABOVE: Final = 0.6
UNRELATED_ABOVE: Final = 0.5
FORGET_ABOVE: Final = 0.35
MEANT_SHARE: Final = 0.6  # of the item that it means most
LINK_ABOVE: Final = 0.25
SAME_ABOVE: Final = 0.85
