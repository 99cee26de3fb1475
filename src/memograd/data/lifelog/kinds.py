"""What people tell about themselves and each other, as a table without words.

A `Kind` says who has such an attribute, how it behaves (one value or several at once, one for each
key, dated, an event that happens once) and how much later questions care about it. The words stand
in `english/` and `chinese/`, under the same names. Invariant: each kind has its wording in both
languages, and kinds that are held out are told in tests only.
"""

from __future__ import annotations

from dataclasses import dataclass

USER, ADULT, CHILD, PET = "user", "adult", "child", "pet"
GROWN = (USER, ADULT)
HUMAN = (USER, ADULT, CHILD)


@dataclass(frozen=True, slots=True)
class Kind:
    """One attribute or one sort of event.

    owners: which members of the cast have it. interest: how often it is asked for, relative to the
    others. many: several values at once, each a fact of its own. dated: the value is a day to come.
    event: it happened once, on a day, and stays true. excludes: name of a kind that the same person
    must not have, because one would say something about the other. held_out: only in the split
    `test`.
    """

    name: str
    owners: tuple[str, ...]
    interest: float
    many: bool = False
    dated: bool = False
    event: bool = False
    excludes: str = ""
    held_out: bool = False


ATTRIBUTES = (
    Kind("job", GROWN, 3.0),
    Kind("home", GROWN, 3.0, excludes="address"),
    Kind("address", GROWN, 2.5, excludes="home"),
    Kind("diet", GROWN, 2.0),
    Kind("medication", GROWN, 2.5),
    Kind("doctor", GROWN, 1.5),
    Kind("car", GROWN, 1.0),
    Kind("commute", GROWN, 0.7),
    Kind("study", GROWN, 1.2),
    Kind("school", (CHILD,), 1.5),
    Kind("lessons", HUMAN, 1.2, many=True),
    Kind("gym", GROWN, 1.2),
    Kind("phone_number", GROWN, 2.0),
    Kind("code", (USER,), 2.0),
    Kind("place", (USER,), 2.0),
    Kind("appointment", HUMAN, 2.5, dated=True),
    Kind("trip_plan", GROWN, 2.0),
    Kind("contact", (USER,), 1.5),
    Kind("favourite", HUMAN, 1.5),
    Kind("savings", GROWN, 1.2),
    Kind("birthday", HUMAN, 2.0),
    Kind("team", HUMAN, 0.8),
    Kind("book", HUMAN, 0.5),
    Kind("wakes", GROWN, 0.3),
    Kind("rent", GROWN, 1.2),
    Kind("boss", GROWN, 1.0),
    Kind("meeting", GROWN, 1.5),
    Kind("pet_food", (PET,), 1.5),
    Kind("pet_bed", (PET,), 0.4),
    Kind("likes", HUMAN, 1.5, many=True),
    Kind("dislikes", HUMAN, 1.2, many=True),
    Kind("allergy", HUMAN, 3.0, many=True),
    Kind("hobby", HUMAN, 1.2, many=True),
    Kind("languages", GROWN, 1.0, many=True),
    Kind("emergency", GROWN, 2.5, held_out=True),
    Kind("shoe_size", HUMAN, 1.2, held_out=True),
    Kind("subscription", GROWN, 1.2, many=True, held_out=True),
    Kind("insurance", GROWN, 1.5, held_out=True),
    Kind("computer", GROWN, 1.0, held_out=True),
    Kind("volunteering", GROWN, 1.2, held_out=True),
    Kind("pet_fear", (PET,), 1.0, many=True, held_out=True),
)

EVENTS = (
    Kind("visit", GROWN, 1.5, many=True, event=True),
    Kind("check_up", HUMAN, 1.8, many=True, event=True),
    Kind("concert", HUMAN, 1.2, many=True, event=True),
    Kind("purchase", GROWN, 1.2, many=True, event=True),
    Kind("dinner", GROWN, 0.8, many=True, event=True),
    Kind("injury", HUMAN, 1.8, many=True, event=True),
    Kind("interview", GROWN, 1.5, many=True, event=True),
    Kind("gift", HUMAN, 1.0, many=True, event=True),
    Kind("lost", HUMAN, 1.0, many=True, event=True),
    Kind("exam", GROWN, 1.5, many=True, event=True, held_out=True),
    Kind("repair", GROWN, 1.0, many=True, event=True, held_out=True),
)

KINDS = {kind.name: kind for kind in (*ATTRIBUTES, *EVENTS)}
