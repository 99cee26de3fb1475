"""What the relation model can say: how a message relates to an item, and what a clause is worth.

Invariant: the order of these names is the order of the columns of every model file.
"""

from __future__ import annotations

from typing import Final

RELATIONS: Final = (
    "unrelated",
    "same",
    "detail",
    "comment",
    "beside",
    "replace",
    "correct",
    "end",
    "retract",
)
"""How a message relates to an item.

unrelated: it does not speak of it. same: says it again. detail: says more; both hold. comment: a
remark that changes nothing. beside: looks alike but is another fact. replace: a new value takes its
place. correct: the item was wrong, and here is what is right. end: it is no longer true, and
nothing stands in its place. retract: the speaker takes it back or asks to forget it.
"""

CLOSING: Final = ("replace", "correct", "end", "retract")
"""The relations after which the item no longer holds."""

WORTHS: Final = ("fact", "nothing", "forget")
"""What a clause of a message is worth: it holds something to keep, or nothing, or it asks to forget
or not to save."""
