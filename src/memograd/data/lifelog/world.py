"""What is true in a life at a moment, and which statements carry it: the careful keeper's memory.

A `FactKind` is what people tell about themselves and each other, without words: who has such an
attribute, how it behaves (one value or several at once, one for each key, dated, an event that
happens once) and how much later questions care about it. The words stand in `english.toml` and
`chinese.toml`, under the same names. A day is told as people point at it, in either language, and
kept as the date that a reader writes instead.

A `Slot` is one attribute of one person (with a key where the kind has some). While it is `held`,
one statement carries its value; what said the same, and what said something else, is kept apart,
since questions need the one and are misled by the other.

Invariants: each kind has its wording in both languages, and kinds that are held out are told in
tests only; a date follows from the words and the day of speaking alone; at any moment the carriers
of all held slots, next to the introductions, are exactly what the gold operations leave in a
memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta

from memograd.data.lifelog.forms import Forms, FormWording, Language, SplitName, Texts, held_apart
from memograd.memory import format_date

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


ENGLISH_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CHINESE_DAYS = "一二三四五六日"
CHINESE_AGO = {2: "前天", 3: "三天前", 4: "四天前", 5: "五天前", 6: "六天前"}


@dataclass(frozen=True, slots=True)
class CalendarValue:
    """What fills a slot: as it is said, as a reader writes it, and as the answer to a question.

    day: where it is one.
    """

    said: str
    text: str
    answer: str
    day: date | None = None

    @classmethod
    def plain(cls, text: str) -> CalendarValue:
        """A value that is the same everywhere."""
        return cls(text, text, text)


def write_date(day: date, language: str) -> str:
    """`7 May 2023`, `2023年5月7日`."""
    if language == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    return format_date(day)


def dated(day: date, said: str, language: str) -> CalendarValue:
    """`said`, written as the absolute date."""
    written = write_date(day, language)
    return CalendarValue(said, written if language == "zh" else f"on {written}", written, day)


def past_day(rng: random.Random, today: date, language: str) -> CalendarValue:
    """A day of the last three weeks, as people point back at it."""
    back = rng.choice((1, 1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 16, 20))
    day = today - timedelta(days=back)
    return dated(day, past_words(day, today, language, rng.random() < 0.5), language)


def past_words(day: date, today: date, language: str, by_weekday: bool) -> str:
    """`yesterday`, `last Friday`, `on 5 May`: the words for a day before today."""
    back = (today - day).days
    if language == "zh":
        if back == 1:
            return "昨天"
        if back in (7, 14):
            return "一周前" if back == 7 else "两周前"
        # 上周五 is the Friday of the calendar week before, whatever today is.
        monday = today - timedelta(days=today.weekday())
        if by_weekday and monday - timedelta(days=7) <= day < monday:
            return f"上周{CHINESE_DAYS[day.weekday()]}"
        return CHINESE_AGO.get(back, f"{day.month}月{day.day}日")
    if back in (1, 7, 14):
        return {1: "yesterday", 7: "a week ago", 14: "two weeks ago"}[back]
    if back < 7:
        # "Last Friday", said on a Saturday, could be two different days.
        if by_weekday and back > 1:
            return f"last {ENGLISH_DAYS[day.weekday()]}"
        return {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}[back] + " days ago"
    return f"on {format_date(day).rpartition(' ')[0]}"


def coming_day(rng: random.Random, today: date, language: str) -> CalendarValue:
    """A day of the next nine weeks, as people point ahead at it."""
    day = today + timedelta(days=rng.randint(2, 60))
    ahead = (day - today).days
    monday = today - timedelta(days=today.weekday())
    by_weekday = rng.random() < 0.6
    if language == "zh":
        if by_weekday and monday + timedelta(days=7) <= day < monday + timedelta(days=14):
            return dated(day, f"下周{CHINESE_DAYS[day.weekday()]}", language)
        said = "后天" if ahead == 2 else "两周后" if ahead == 14 else f"{day.month}月{day.day}日"
        return dated(day, said, language)
    if by_weekday and ahead < 7:
        return dated(day, f"this coming {ENGLISH_DAYS[day.weekday()]}", language)
    if ahead in (2, 14):
        return dated(day, {2: "in two days", 14: "in two weeks"}[ahead], language)
    return dated(day, f"on {format_date(day).rpartition(' ')[0]}", language)


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
