"""How sure a relation model must be, for everything that a memory makes of what it says.

How sure a model is depends on its weights, so these numbers belong to them: they stand in the
weights' file and are fitted after training (`tasks.relations.fit`). The defaults were chosen by
hand, with the weights that ship, on the authors of `tests/behaviour` that were read and on talk of
months (`benchmarks/months_of_talk.py`); a file without thresholds means them.

Invariants: each is above 0 and below 1, and what is closed is surer than what is doubted; a
dictionary that lacks one that it must have, or knows another, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from memograd.errors import BadInput


@dataclass(frozen=True)
class Thresholds:
    """Probabilities, but for two shares; `memory.manager.relations` and `memory.reader.trained`
    say where each is used. What closes is the sum of all closing relations."""

    # The manager: what a message does to an item.
    close_above: float = 0.8
    """What it replaces or ends becomes past."""
    doubt_above: float = 0.4
    """Below that, but from here on, the item says that it is in doubt."""
    crowded_doubt_above: float = 0.74
    """The same, where the item is one of many that lie near the message: some always looks so."""
    weighed_close_above: float = 0.6
    """What becomes past of many items, where all that is known of them is weighed."""
    weighed_doubt_above: float = 0.5
    """What is in doubt then."""
    few_close_above: float = 0.6
    """What becomes past of a few items, where all that is known of them is weighed; below it an
    item is doubted at most, unless the message corrects what was just said."""
    few_correct_above: float = 0.05
    """A message that says that it corrects what was just said speaks of it from here on, also where
    the bound of the function for few items is higher."""
    added_above: float = 0.97
    """Closes an item where the words say that something comes on top."""
    unrelated_above: float = 0.5
    """The item is not what is spoken of."""
    remark_above: float = 0.5
    """A remark or a detail, so rules change nothing either."""
    link_above: float = 0.25
    """The new item says which one it may change."""
    same_above: float = 0.85
    """The item says it already."""

    # What a message corrects or takes back.
    correct_above: float = 0.3
    """Of what was just said, where the words sound like a correction."""
    correct_value_above: float = 0.1
    """Where they also give a value of the same type."""
    value_above: float = 0.4
    """Nothing sounds like a correction, but a value of the same type is given."""
    bare_value_above: float = 0.6
    """Or a bare value."""
    untold_above: float = 0.78
    """Neither: nothing in the words says so."""
    retract_above: float = 0.6
    """Taken back, where no word denies it."""

    # What a request to forget means.
    asks_above: float = 0.4
    """What sounds a little like a request, taking an item back by the second reading."""
    meant_above: float = 0.4
    """A part of an item that is meant."""
    meant_unnamed_above: float = 0.75
    """Among many one that was not just told and has no word of the request."""
    part_above: float = 0.2
    """A part of a list that a message takes back."""
    part_share: float = 0.75
    """Of the part that is meant most, from which others are meant too."""

    # The reader: what of a message is worth keeping.
    keep_above: float = 0.36
    """A sentence."""
    keep_clause_above: float = 0.75
    """A clause by itself."""
    keep_answer_above: float = 0.25
    """A short answer to a question."""
    keep_question_above: float = 0.45
    """A question that does not speak of the speaker."""
    keep_asked_above: float = 0.2
    """A question beside a fact: "What do coeliacs eat in Seoul? We fly on the 19th"."""
    keep_assistant_above: float = 0.3
    """A sentence of an assistant."""
    wish_above: float = 0.5
    """A sentence that asks to forget, or not to save."""
    wish_unsaid_above: float = 0.55
    """One without any word that such requests have."""

    def __post_init__(self) -> None:
        for name in NAMES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise BadInput(f"The threshold {name} is {value!r}: give a number.")
            if not 0 < float(value) < 1:
                raise BadInput(
                    f"The threshold {name} is {value!r}: give a number above 0 and below 1."
                )
        for doubt, close in (
            ("doubt_above", "close_above"),
            ("crowded_doubt_above", "close_above"),
            ("weighed_doubt_above", "weighed_close_above"),
        ):
            if float(getattr(self, doubt)) >= float(getattr(self, close)):
                raise BadInput(
                    f"The threshold {doubt} is {getattr(self, doubt)!r} and {close}"
                    f" {getattr(self, close)!r}: what is doubted must be less sure than what is"
                    " closed."
                )


NAMES = tuple(field.name for field in fields(Thresholds))
"""Of all thresholds, in their order."""


_LATER = frozenset(
    {
        *("weighed_close_above", "weighed_doubt_above", "few_close_above", "few_correct_above"),
        *("asks_above", "meant_above", "meant_unnamed_above"),
    }
)
"""What files that were written before do not have; they mean the defaults."""
_FORMER = frozenset({"faint_above", "forget_above", "meant_share"})
"""What files that were written before have, and nothing reads any more."""


def thresholds_of(values: Any) -> Thresholds:
    """The thresholds that a dictionary of all of them says, as `asdict` gives them."""
    if not isinstance(values, Mapping):
        raise BadInput(f"Thresholds are a dictionary of numbers by name, not {values!r}.")
    for name in NAMES:
        if name not in values and name not in _LATER:
            raise BadInput(f"The threshold {name} is missing: give all {len(NAMES)} of them.")
    for name in values:
        if name not in NAMES and name not in _FORMER:
            raise BadInput(f"There is no threshold {name!r}: they are {', '.join(NAMES)}.")
    return Thresholds(**{name: values[name] for name in NAMES if name in values})


def changed(thresholds: Thresholds, values: Mapping[str, float]) -> Thresholds:
    """The thresholds with some others in their place. Raises BadInput for a name unknown."""
    if former := _FORMER & values.keys():
        raise BadInput(f"The threshold {min(former)} decides nothing any more: leave it out.")
    return thresholds_of(asdict(thresholds) | dict(values))
