"""What is true in a life at a moment, and which statements carry it: the careful keeper's memory.

A `Slot` is one attribute of one person (with a key where the kind has some). While it is `held`,
one statement carries its value; what said the same, and what said something else, is kept apart,
since questions need the one and are misled by the other. Invariant: at any moment the carriers of
all held slots, next to the introductions, are exactly what the gold operations leave in a memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

from memograd.data.lifelog.calendar import CalendarValue
from memograd.data.lifelog.forms import Forms, FormWording, Language, SplitName, Texts, held_apart
from memograd.data.lifelog.kinds import ATTRIBUTES, EVENTS, FactKind


@dataclass(eq=False)
class CastMember:
    """A member of the cast. role: to the user, empty for the user. introduced: by a statement."""

    name: str
    sex: str
    group: str
    role: str = ""
    introduced: str | None = None
    kinds: tuple[FactKind, ...] = ()


@dataclass
class CarriedValue:
    """A value that is true, and the statement that carries it.

    by_name: the carrier calls the person by the bare name. mentions: every statement that gives
    this value. when, before: day and earlier value, where the carrier's text tells them. said_at:
    place of the carrier in the log.
    """

    value: CalendarValue
    carrier: str
    said_at: int
    form: str
    by_name: bool
    mentions: list[str]
    detail: CalendarValue | None = None
    when: CalendarValue | None = None
    before: CalendarValue | None = None

    @property
    def day(self) -> date | None:
        """The day that `when` names."""
        return self.when.day if self.when else None


@dataclass
class Slot:
    """One attribute of one person.

    stale: statements that give a value which is not true, or not any more, with that value. ended:
    it was true and is over, or was asked to be forgotten. told: all values ever given, true or not.
    changes, slips: how often the value was changed, and corrected.
    """

    person: CastMember
    kind: FactKind
    key: str
    held: CarriedValue | None = None
    stale: list[tuple[str, str]] = field(default_factory=list)
    ended: bool = False
    told: list[str] = field(default_factory=list)
    changes: int = 0
    slips: int = 0

    def retire(self) -> None:
        """What is held is true no longer: whoever said it misleads from now on."""
        if self.held is not None:
            self.stale += [(name, self.held.value.answer) for name in self.held.mentions]
            self.held = None


class LifeWorld:
    """The cast, the slots in the order of their first mention, and the pools of a split."""

    def __init__(
        self, rng: random.Random, language: Language, split: SplitName, people: int
    ) -> None:
        self.rng, self.language = rng, language
        self.split: SplitName = split
        self.slots: list[Slot] = []
        self._by_place: dict[tuple[str, str, str], Slot] = {}
        self.cast = self._draw_cast(people)
        self.user = self.cast[0]
        for person in self.cast:
            person.kinds = self._kinds_of(person)

    def wording(self, kind: FactKind) -> FormWording:
        """The tables of a kind."""
        return self.language.kinds[kind.name]

    def form(self, forms: Forms, *, without: str = "") -> str:
        """One of the split's forms, another than `without` if there is a choice."""
        usable = forms.of(self.split)
        return self.rng.choice([form for form in usable if form != without] or list(usable))

    def pool(self, kind: FactKind, key: str) -> Texts:
        """The values of a kind in this split."""
        wording = self.wording(kind)
        pool = wording.keys[key] if wording.keys else wording.pool
        return pool if kind.held_out or len(pool) < 9 else held_apart(pool, self.split)

    def slot(self, person: CastMember, kind: FactKind, key: str) -> Slot | None:
        """The slot, if it was ever mentioned."""
        return self._by_place.get((person.name, kind.name, key))

    def open_slot(self, person: CastMember, kind: FactKind, key: str) -> Slot:
        """The slot; a new one if it was never mentioned."""
        slot = self.slot(person, kind, key)
        if slot is None:
            slot = Slot(person, kind, key)
            self.slots.append(slot)
            self._by_place[person.name, kind.name, key] = slot
        return slot

    def held(self) -> Iterator[tuple[Slot, CarriedValue]]:
        """All slots with a true value."""
        for slot in self.slots:
            if slot.held is not None:
                yield slot, slot.held

    def known(self) -> list[CastMember]:
        """The user and those who were introduced."""
        return [one for one in self.cast if one is self.user or one.introduced is not None]

    def _draw_cast(self, people: int) -> list[CastMember]:
        rng, tables = self.rng, self.language
        women = rng.sample(tables.women.of(self.split), people + 1)
        men = rng.sample(tables.men.of(self.split), people + 1)
        pets = rng.sample(tables.pets.of(self.split), 4)
        sex = rng.choice("fm")
        user = CastMember((women if sex == "f" else men).pop(), sex, "user")
        grown = [role for role in tables.roles if role.group == "adult"]
        others = [role for role in tables.roles if role.group != "adult"]
        few = max(1, people // 3)
        cast = [user]
        for role in (*rng.sample(grown, people - few), *rng.sample(others, few)):
            sex = role.sex or rng.choice("fm")
            names = pets if role.group == "pet" else women if sex == "f" else men
            if role.group == "pet" and tables.code == "zh":
                sex = "pet"
            name = names.pop()
            family = user.name[0] + name[1:]
            if role.surname and family not in {one.name for one in cast}:
                name = family
            cast.append(CastMember(name, sex, role.group, role.name))
        others_cast = cast[1:]
        rng.shuffle(others_cast)
        return [user, *others_cast]

    def _kinds_of(self, person: CastMember) -> tuple[FactKind, ...]:
        """What this person talks about: much of what there is for the user, less for others."""
        rng = self.rng
        usable = [
            kind
            for kind in (*ATTRIBUTES, *EVENTS)
            if person.group in kind.owners and (self.split == "test" or not kind.held_out)
        ]
        share = 0.75 if person is self.user else 0.4
        chosen = [kind for kind in usable if rng.random() < share]
        names = {kind.name for kind in chosen}
        dropped = {
            rng.choice((kind.name, kind.excludes))
            for kind in chosen
            if kind.excludes in names and kind.name < kind.excludes
        }
        return tuple(kind for kind in chosen if kind.name not in dropped) or tuple(usable[:1])
