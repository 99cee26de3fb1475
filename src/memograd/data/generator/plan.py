"""The plan of a generated conversation: who tells what, in which session, with which values.

Invariant: the values of a state (job, city,...) are told in the order of sessions, so the last
telling holds the current value.

How people point at a day, and the absolute date that it means.

Answers are worded as in LoCoMo: exact days (`7 May 2023`), months (`June 2023`), and for a vague
pointer the pointer anchored at the day of speaking (`The week before 9 June 2023`). Invariant: each
answer follows from the phrase and the day alone. Pure functions.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

from memograd.data.generator import vocabulary
from memograd.data.generator.topics import STATES, TOPICS, WHEN, Ask, Topic
from memograd.memory import MONTHS, format_date

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class When:
    """A pointer as it is spoken (`last Friday`) and what it means (`The Friday before ...`)."""

    phrase: str
    answer: str


def recent_days(day: date) -> list[When]:
    """Pointers to one of the last days before `day`."""
    # "Last Sunday", said on a Sunday or a day later, could be two different days: leave it out.
    clear = [WEEKDAYS[(day - timedelta(days=back)).weekday()] for back in range(2, 7)]
    return [
        When("yesterday", format_date(day - timedelta(days=1))),
        When("two days ago", format_date(day - timedelta(days=2))),
        When("three days ago", format_date(day - timedelta(days=3))),
        *(When(f"last {name}", f"The {name} before {format_date(day)}") for name in clear),
    ]


def past_spans(day: date) -> list[When]:
    """Pointers to a stretch of time before `day`, for what takes longer than a day."""
    month_before = day.replace(day=1) - timedelta(days=1)
    return [
        When("last week", f"The week before {format_date(day)}"),
        When("two weeks ago", f"Two weeks before {format_date(day)}"),
        When("last month", _month(month_before)),
        When("last weekend", f"The weekend before {format_date(day)}"),
    ]


def future_spans(day: date) -> list[When]:
    """Pointers to what is planned after `day`."""
    month_after = day.replace(day=28) + timedelta(days=4)
    return [
        When("tomorrow", format_date(day + timedelta(days=1))),
        When("next week", f"The week after {format_date(day)}"),
        When("next month", _month(month_after)),
        When("in two weeks", f"Two weeks after {format_date(day)}"),
    ]


def _month(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.year}"


STATES_EACH = 3

T = TypeVar("T")


@dataclass(frozen=True)
class Telling:
    """One topic, told once. owner: index of the speaker; slots: what fills the wording."""

    owner: int
    kind: str
    topic: Topic
    session: int
    slots: dict[str, str]
    asks: tuple[Ask, ...]


class Decks:
    """The pools of the vocabulary as decks of cards: nothing is drawn twice."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._decks: dict[tuple[Any, ...], list[Any]] = {}

    def draw(self, pool: tuple[T, ...]) -> T:
        """A value of the pool that was not drawn before."""
        if pool not in self._decks:
            self._decks[pool] = self._rng.sample(pool, len(pool))
        card: T = self._decks[pool].pop()
        return card


def make_plan(
    rng: random.Random, decks: Decks, names: tuple[str, str], times: list[datetime]
) -> list[Telling]:
    """All tellings of both people, in no particular order."""
    shared_place = decks.draw(vocabulary.PLACES) if rng.random() < 0.5 else None
    shared_habit = decks.draw(vocabulary.HABITS) if rng.random() < 0.5 else None
    plan: list[Telling] = []
    for owner in (0, 1):
        mine = _Planner(rng, decks, names, times, owner)
        mine.add_states()
        mine.add_events(shared_place, shared_habit)
        plan += mine.tellings
    return plan


class _Planner:
    """Plans what one of the two people tells."""

    def __init__(
        self,
        rng: random.Random,
        decks: Decks,
        names: tuple[str, str],
        times: list[datetime],
        owner: int,
    ) -> None:
        self.rng, self.decks, self.times, self.owner = rng, decks, times, owner
        self.people = {"name": names[owner], "other": names[1 - owner]}
        self.tellings: list[Telling] = []

    def add_states(self) -> None:
        """Some states with one to three values, each told in a later session."""
        for kind in self.rng.sample(sorted(STATES), STATES_EACH):
            state = STATES[kind]
            values = self.rng.choices((1, 2, 3), weights=(2, 6, 1))[0]
            sessions = sorted(self.rng.sample(range(1, len(self.times) + 1), values))
            changed = (Ask(state.changed_when, WHEN, "temporal", only_owner=True),)
            for number, session in enumerate(sessions):
                when = self.rng.choice(recent_days(self.times[session - 1]))
                slots = {
                    "value": self.decks.draw(state.pool),
                    "when": when.phrase,
                    "when_answer": when.answer,
                }
                topic, asks = (state.change, changed) if number else (state.first, ())
                self._add(kind, topic, session, slots, asks)

    def add_events(self, shared_place: str | None, shared_habit: str | None) -> None:
        """What happens once, spread over the sessions that have the least to tell."""
        draw, choice = self.decks.draw, self.rng.choice
        for place in (shared_place or draw(vocabulary.PLACES), draw(vocabulary.PLACES)):
            companion = f"{choice(vocabulary.COMPANIONS)} {draw(vocabulary.NAMES)}"
            self._add_event("trip", {"place": place, "companion": companion})
        for _ in range(2):
            title = f"The {draw(vocabulary.TITLE_FIRST)} {draw(vocabulary.TITLE_SECOND)}"
            recommender = draw(vocabulary.RECOMMENDERS)
            self._add_event("book", {"title": title, "recommender": recommender})
        self._add_event("pet", {"kind": draw(vocabulary.KINDS), "pet": draw(vocabulary.PETS)})
        outing = choice(("market", "contest", "workshop"))
        if outing == "market":
            self._add_event(
                outing, {"event": draw(vocabulary.MARKETS), "item": draw(vocabulary.ITEMS)}
            )
        elif outing == "contest":
            self._add_event(
                outing, {"event": draw(vocabulary.CONTESTS), "rank": draw(vocabulary.RANKS)}
            )
        else:
            event, item = draw(vocabulary.WORKSHOPS)
            self._add_event(outing, {"event": event, "item": item})
        if choice((True, False)):
            self._add_event(
                "gift", {"giver": draw(vocabulary.GIVERS), "item": draw(vocabulary.ITEMS)}
            )
        else:
            relative, person = draw(vocabulary.RELATIVES), draw(vocabulary.NAMES)
            slots = {"relative": relative, "person": person, "subject": draw(vocabulary.SUBJECTS)}
            self._add_event("family", slots)
        self._add_event("plan", {"plan": draw(vocabulary.PLANS)})
        self._add_event("unwind", {"habit": shared_habit or draw(vocabulary.HABITS)})
        statement, question, answer = draw(vocabulary.TRAITS)
        self._add_event(
            "trait",
            {
                "statement": statement,
                "trait_question": question.format(**self.people),
                "trait_answer": answer,
            },
        )

    def _add_event(self, kind: str, slots: dict[str, str]) -> None:
        load = Counter(telling.session for telling in self.tellings)
        taken = {telling.session for telling in self.tellings if telling.kind == kind}
        free = [number for number in range(1, len(self.times) + 1) if number not in taken]
        session = min(free, key=lambda number: (load[number], self.rng.random()))
        day = self.times[session - 1].date()
        pointers = {
            "trip": past_spans(day),
            "plan": future_spans(day),
            "pet": recent_days(day),
            "gift": recent_days(day),
        }.get(kind, recent_days(day) + past_spans(day)[:1])
        when = self.rng.choice(pointers)
        slots = slots | {"when": when.phrase, "when_answer": when.answer}
        self._add(kind, TOPICS[kind], session, slots, TOPICS[kind].asks)

    def _add(
        self, kind: str, topic: Topic, session: int, slots: dict[str, str], asks: tuple[Ask, ...]
    ) -> None:
        slots = with_variants(slots) | self.people
        self.tellings.append(Telling(self.owner, kind, topic, session, slots, asks))


def with_variants(slots: dict[str, str]) -> dict[str, str]:
    """Each slot also capitalised, with an article, both, and without its first `my` or `a`."""
    variants: dict[str, str] = {}
    for key, value in slots.items():
        article = f"{'an' if value[0].lower() in 'aeio' else 'a'} {value}"
        variants |= {
            key: value,
            key.capitalize(): _capitalise(value),
            f"a_{key}": article,
            f"A_{key}": _capitalise(article),
            f"{key}_plain": value.removeprefix("my "),
        }
    return variants


def _capitalise(text: str) -> str:
    return text[0].upper() + text[1:]
