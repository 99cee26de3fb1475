"""The people and animals that a text speaks of, and which of them a pronoun may mean.

A reader of one language finds them with their places (`people_english.py`, `people_chinese.py`);
what follows from that is the same in both. A pronoun behind somebody tells their sex where it can
mean nobody else, and one that can mean nobody here speaks of somebody who was not named:

    Owen got the job. He's moving to Derby, Isla stays.      he: Owen, she: Isla
    she said Garth called                                    she: somebody else

Invariant: nobody is meant where two may be. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

Sex = Literal["her", "him", "it"]
UNNAMED: Final = ""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody, as the speaker words it, and where the text does so.

    name: what tells them from others. her, him, it: which pronouns fit. sure: whether it is surely
    a person or an animal; what is not ("Vellore") may only stand in the way.
    """

    said: str
    name: str
    at: int
    end: int
    her: bool = True
    him: bool = True
    it: bool = False
    sure: bool = True

    def fits(self, sex: Sex) -> bool:
        return self.her if sex == "her" else self.him if sex == "him" else self.it


def one_each(people: Iterable[Person]) -> list[Person]:
    """Each once, as they are worded first, in the order of the text."""
    kept: list[Person] = []
    for one in people:
        if not any(_is_same(one, other) for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda one: one.at)


def _is_same(one: Person, other: Person) -> bool:
    overlaps = one.at < other.end and other.at < one.end
    return overlaps or (one.name != UNNAMED and one.name in [other.name, *other.name.split()])


def bound(
    people: Sequence[Person], pronouns: Iterable[tuple[int, Sex]], known: Sequence[Person] = ()
) -> list[Person]:
    """The people, each with the sex that a pronoun gives them, and whoever it means of the known.

    pronouns: places and sexes, in the order of the text. known: who was spoken of before it.
    """
    found = list(people)
    for at, sex in pronouns:
        able = [n for n, one in enumerate(found) if one.at < at and one.fits(sex)]
        if len(able) == 1:
            one = found[able[0]]
            only = one.it if sex == "it" else False
            found[able[0]] = replace(one, her=sex == "her", him=sex == "him", it=only)
        elif not able:
            before = [one for one in known if one.fits(sex)]
            who = before[0] if len(before) == 1 else _somebody(sex)
            found.append(replace(who, at=at, end=at))
    return found


def _somebody(sex: Sex) -> Person:
    return Person(UNNAMED, UNNAMED, 0, 0, sex == "her", sex == "him", sex == "it", sure=False)


def the_one(people: Sequence[Person], sex: Sex) -> str | None:
    """How the speaker words whom the pronoun means; None where it is nobody, or may be two."""
    able = [one for one in people if one.fits(sex)]
    names = {one.name for one in able}
    return able[0].said if len(names) == 1 and able[0].sure else None
