"""What people tell about themselves and each other, as a table without words.

A `FactKind` says who has such an attribute, how it behaves (one value or several at once, one for
each key, dated, an event that happens once) and how much later questions care about it. The words
stand in `english.toml` and `chinese.toml`, under the same names. Invariant: each kind has its
wording in both languages, and kinds that are held out are told in tests only.
"""

from __future__ import annotations

from dataclasses import dataclass

USER, ADULT, CHILD, PET = "user", "adult", "child", "pet"
GROWN = (USER, ADULT)
HUMAN = (USER, ADULT, CHILD)


@dataclass(frozen=True, slots=True)
class FactKind:
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
    FactKind("job", GROWN, 3.0),
    FactKind("home", GROWN, 3.0, excludes="address"),
    FactKind("address", GROWN, 2.5, excludes="home"),
    FactKind("diet", GROWN, 2.0),
    FactKind("medication", GROWN, 2.5),
    FactKind("doctor", GROWN, 1.5),
    FactKind("car", GROWN, 1.0),
    FactKind("commute", GROWN, 0.7),
    FactKind("study", GROWN, 1.2),
    FactKind("school", (CHILD,), 1.5),
    FactKind("lessons", HUMAN, 1.2, many=True),
    FactKind("gym", GROWN, 1.2),
    FactKind("phone_number", GROWN, 2.0),
    FactKind("code", (USER,), 2.0),
    FactKind("place", (USER,), 2.0),
    FactKind("appointment", HUMAN, 2.5, dated=True),
    FactKind("trip_plan", GROWN, 2.0),
    FactKind("contact", (USER,), 1.5),
    FactKind("favourite", HUMAN, 1.5),
    FactKind("savings", GROWN, 1.2),
    FactKind("birthday", HUMAN, 2.0),
    FactKind("team", HUMAN, 0.8),
    FactKind("book", HUMAN, 0.5),
    FactKind("wakes", GROWN, 0.3),
    FactKind("rent", GROWN, 1.2),
    FactKind("boss", GROWN, 1.0),
    FactKind("meeting", GROWN, 1.5),
    FactKind("pet_food", (PET,), 1.5),
    FactKind("pet_bed", (PET,), 0.4),
    FactKind("likes", HUMAN, 1.5, many=True),
    FactKind("dislikes", HUMAN, 1.2, many=True),
    FactKind("allergy", HUMAN, 3.0, many=True),
    FactKind("hobby", HUMAN, 1.2, many=True),
    FactKind("languages", GROWN, 1.0, many=True),
    FactKind("emergency", GROWN, 2.5, held_out=True),
    FactKind("shoe_size", HUMAN, 1.2, held_out=True),
    FactKind("subscription", GROWN, 1.2, many=True, held_out=True),
    FactKind("insurance", GROWN, 1.5, held_out=True),
    FactKind("computer", GROWN, 1.0, held_out=True),
    FactKind("volunteering", GROWN, 1.2, held_out=True),
    FactKind("pet_fear", (PET,), 1.0, many=True, held_out=True),
)

EVENTS = (
    FactKind("visit", GROWN, 1.5, many=True, event=True),
    FactKind("check_up", HUMAN, 1.8, many=True, event=True),
    FactKind("concert", HUMAN, 1.2, many=True, event=True),
    FactKind("purchase", GROWN, 1.2, many=True, event=True),
    FactKind("dinner", GROWN, 0.8, many=True, event=True),
    FactKind("injury", HUMAN, 1.8, many=True, event=True),
    FactKind("interview", GROWN, 1.5, many=True, event=True),
    FactKind("gift", HUMAN, 1.0, many=True, event=True),
    FactKind("lost", HUMAN, 1.0, many=True, event=True),
    FactKind("exam", GROWN, 1.5, many=True, event=True, held_out=True),
    FactKind("repair", GROWN, 1.0, many=True, event=True, held_out=True),
)

KINDS = {kind.name: kind for kind in (*ATTRIBUTES, *EVENTS)}
