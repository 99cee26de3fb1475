"""Questions about a life, right at the moment when they are asked.

An exam takes a few questions of each category about what is true now. What matters more is asked
more often (`Kind.interest`), what changed most of all. Invariants: a question needs only statements
that the careful keeper holds, and is misled only by what that keeper does not hold; nobody else's
fact misleads, since a memory has to hold those too.

Categories: `single-hop`, `multi-hop` (two facts, or all values of a list), `temporal` (days),
`knowledge-update` (a value that changed), `abstention` (never told, at most rumoured), `deletion`
(over, or to be forgotten; nothing is known).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memograd.data.conversation import Question
from memograd.data.lifelog.forms import Forms, by_name, fill, lower_first, sentence
from memograd.data.lifelog.scribe import Scribe
from memograd.data.lifelog.types import Probe
from memograd.data.lifelog.world import (
    KINDS,
    CalendarValue,
    CarriedValue,
    CastMember,
    LifeWorld,
    Slot,
)

# How often an exam tries each category.
CATEGORIES = {
    "single-hop": 0.26,
    "multi-hop": 0.18,
    "temporal": 0.15,
    "knowledge-update": 0.21,
    "abstention": 0.1,
    "deletion": 0.1,
}
TRIES = 6
WHOLE_PHRASE = 0.3  # share of people called "Ann's sister Mary" instead of "Mary"
# Several values at once whose absence says something; what people like could be told in other ways.
LISTS_ASKED_IN_VAIN = ("allergy", "languages")

Known = tuple[Slot, CarriedValue]


@dataclass(frozen=True, slots=True)
class QuestionDraft:
    """A question before it has its place. answer: None where nothing is known."""

    text: str
    answer: str | None
    category: str
    needed: tuple[str, ...]
    misleading: tuple[str, ...] = ()
    tempting: str | None = None


class Examiner:
    """Asks about the world as it is; keeps all probes in the order of asking."""

    def __init__(self, rng: random.Random, world: LifeWorld, scribe: Scribe, identity: str) -> None:
        self.probes: list[Probe] = []
        self._rng, self._world, self._scribe, self._identity = rng, world, scribe, identity
        self._language = world.language.code
        self._held: list[Known] = []
        self._frames = world.language.frames
        self._ways: dict[str, Sequence[Callable[[], QuestionDraft | None]]] = {
            "single-hop": (self._value, self._value, self._value, self._detail, self._name),
            "multi-hop": (self._list, self._list, self._relation, self._pair),
            "temporal": (self._day, self._day, self._on_day, self._first, self._appointment),
            "knowledge-update": (self._changed, self._changed, self._changed, self._before),
            "abstention": (self._never_told,),
            "deletion": (self._over,),
        }

    def exam(self, time: datetime, count: int) -> None:
        """Up to `count` different questions, asked at that time."""
        self._held = list(self._world.held())
        asked: set[tuple[object, ...]] = set()
        for category in self._rng.choices(list(CATEGORIES), list(CATEGORIES.values()), k=2 * count):
            if len(asked) == count:
                return
            for _ in range(TRIES):
                draft = self._rng.choice(self._ways[category])()
                if draft is None:
                    continue
                # In other words it would be the same question.
                same = (draft.answer, draft.needed, draft.misleading or draft.text)
                if same not in asked:
                    asked.add(same)
                    self._ask(draft, time)
                    break

    def _ask(self, draft: QuestionDraft, time: datetime) -> None:
        answer = self._world.language.unknown if draft.answer is None else draft.answer
        question = Question(
            id=f"{self._identity}/q{len(self.probes)}",
            text=draft.text,
            answer=answer,
            category=draft.category,
            evidence=tuple(self._scribe.turn_of[name] for name in draft.needed),
            adversarial=draft.answer is None,
            adversarial_answer=draft.tempting if draft.answer is None else None,
            asked_at=time,
        )
        self.probes.append(Probe(question, draft.needed, draft.misleading))

    # One fact

    def _value(self) -> QuestionDraft | None:
        found = self._pick(lambda slot, held: not slot.kind.many and slot.changes == 0)
        return found and self._about_value(*found)

    def _changed(self) -> QuestionDraft | None:
        found = self._pick(lambda slot, held: slot.changes > 0)
        return found and self._about_value(*found)

    def _appointment(self) -> QuestionDraft | None:
        found = self._pick(lambda slot, held: slot.kind.dated)
        return found and self._about_value(*found)

    def _about_value(self, slot: Slot, held: CarriedValue) -> QuestionDraft:
        category = "single-hop"
        if slot.changes:
            category = "knowledge-update"
        elif slot.kind.dated:
            category = "temporal"
        text = self._worded(self._world.wording(slot.kind).ask, slot, held)
        return QuestionDraft(text, held.value.answer, category, (held.carrier,), _ids(slot.stale))

    def _detail(self) -> QuestionDraft | None:
        found = self._pick(
            lambda slot, held: (
                held.detail is not None and bool(self._world.wording(slot.kind).ask_more)
            )
        )
        if found is None:
            return None
        slot, held = found
        text = self._worded(self._world.wording(slot.kind).ask_more, slot, held)
        # The slip about an event's day had the detail right.
        misleading = () if slot.kind.event else _ids(slot.stale)
        answer = held.detail.answer if held.detail else None
        return QuestionDraft(text, answer, "single-hop", (held.carrier,), misleading)

    def _name(self) -> QuestionDraft | None:
        known = [one for one in self._world.cast if one.introduced is not None]
        if not known:
            return None
        person = self._rng.choice(known)
        text = self._filled(
            self._world.form(self._frames.ask_name),
            self._world.user,
            {"role": CalendarValue.plain(person.role)},
        )
        return QuestionDraft(text, person.name, "single-hop", (person.introduced or "",))

    # Days

    def _day(self) -> QuestionDraft | None:
        found = self._pick(
            lambda slot, held: (
                held.when is not None and bool(self._world.wording(slot.kind).ask_when)
            )
        )
        if found is None:
            return None
        slot, held = found
        text = self._worded(self._world.wording(slot.kind).ask_when, slot, held)
        answer = held.when.answer if held.when else None
        return QuestionDraft(text, answer, "temporal", (held.carrier,), _ids(slot.stale))

    def _on_day(self) -> QuestionDraft | None:
        """What happened on a day, if only one such thing did."""
        found = self._pick(lambda slot, held: slot.kind.event and held.when is not None)
        if found is None:
            return None
        slot, held = found
        same = [
            other
            for one, other in self._held
            if one.kind is slot.kind and one.person is slot.person and _same_day(other, held)
        ]
        if len(same) > 1:
            return None
        text = self._worded(self._world.wording(slot.kind).ask, slot, held)
        return QuestionDraft(text, held.value.answer, "temporal", (held.carrier,), ())

    def _first(self) -> QuestionDraft | None:
        """Which of two events came first."""
        pair = [
            self._pick(lambda slot, held: slot.kind.event and held.day is not None)
            for _ in range(2)
        ]
        if pair[0] is None or pair[1] is None:
            return None
        (one, one_held), (two, two_held) = pair[0], pair[1]
        if one_held.day is None or two_held.day is None or one_held.day == two_held.day:
            return None
        nouns = [self._noun(slot, held) for slot, held in ((one, one_held), (two, two_held))]
        frame = self._world.form(self._frames.ask_first)
        answer = nouns[0] if one_held.day < two_held.day else nouns[1]
        misleading = (*_ids(one.stale), *_ids(two.stale))
        return QuestionDraft(
            self._finished(frame.format(one=nouns[0], two=nouns[1])),
            answer,
            "temporal",
            (one_held.carrier, two_held.carrier),
            misleading,
        )

    # Several facts

    def _before(self) -> QuestionDraft | None:
        found = self._pick(
            lambda slot, held: (
                held.before is not None and bool(self._world.wording(slot.kind).ask_before)
            )
        )
        if found is None or found[1].before is None:
            return None
        slot, held = found
        answer = found[1].before.answer
        text = self._worded(self._world.wording(slot.kind).ask_before, slot, held)
        wrong = tuple(name for name, value in slot.stale if value != answer)
        return QuestionDraft(text, answer, "knowledge-update", (held.carrier,), wrong)

    def _list(self) -> QuestionDraft | None:
        """All values of what one can have several of."""
        found = self._pick(lambda slot, held: slot.kind.many and not slot.kind.event)
        if found is None:
            return None
        slot, held = found
        mine = [
            one for one in self._world.slots if one.person is slot.person and one.kind is slot.kind
        ]
        holds = [one.held for one in mine if one.held is not None]
        text = self._worded(self._world.wording(slot.kind).ask, slot, held)
        return QuestionDraft(
            text,
            self._world.language.comma.join(one.value.answer for one in holds),
            "multi-hop" if len(holds) > 1 else "single-hop",
            tuple(one.carrier for one in holds),
            tuple(name for one in mine for name in _ids(one.stale)),
        )

    def _relation(self) -> QuestionDraft | None:
        """A fact told of Mary, asked of Ann's sister."""
        found = self._pick(
            lambda slot, held: slot.person.introduced is not None and not slot.kind.many
        )
        if found is None:
            return None
        slot, held = found
        name = self._scribe.relation(slot.person)
        text = self._worded(self._world.wording(slot.kind).ask, slot, held, name)
        known_by = (slot.person.introduced or "",) if held.by_name else ()
        return QuestionDraft(
            text,
            held.value.answer,
            "multi-hop" if known_by else "single-hop",
            (*known_by, held.carrier),
            _ids(slot.stale),
        )

    def _pair(self) -> QuestionDraft | None:
        """Two facts in one question."""
        drafts = [self._value() or self._changed(), self._changed() or self._value()]
        one, two = drafts
        if one is None or two is None or one.needed == two.needed:
            return None
        second = two.text
        if self._language == "en":
            second = lower_first(second)
        text = self._world.form(self._frames.ask_both).format(one=one.text, two=second)
        answer = self._world.language.comma.join((one.answer or "", two.answer or ""))
        misleading = tuple(dict.fromkeys((*one.misleading, *two.misleading)))
        return QuestionDraft(text, answer, "multi-hop", (*one.needed, *two.needed), misleading)

    # Nothing known

    def _never_told(self) -> QuestionDraft | None:
        """What was told of others, or rumoured, but never told of this person."""
        rng, world = self._rng, self._world
        person = rng.choice(world.known())
        touched = {slot.kind.name for slot in world.slots if slot.person is person}
        usable = [
            kind
            for kind in KINDS.values()
            if person.group in kind.owners
            and (world.split == "test" or not kind.held_out)
            and (not kind.many or kind.name in LISTS_ASKED_IN_VAIN)
            and kind.excludes not in touched
        ]
        kind = rng.choices(usable, [one.interest for one in usable])[0]
        wording = world.wording(kind)
        key = rng.choice(list(wording.keys)) if wording.keys else ""
        if kind.many and kind.name in touched:
            return None
        slot = world.slot(person, kind, key) or Slot(person, kind, key)
        if slot.held is not None or slot.ended:
            return None
        others = [
            held.value.answer for one, held in self._held if one.kind is kind and one.key == key
        ]
        if not others and not slot.stale and rng.random() < 0.7:
            return None  # prefer what is easy to mistake
        text = self._worded(wording.ask, slot, None)
        tempting = [value for _, value in slot.stale] or others
        return QuestionDraft(
            text,
            None,
            "abstention",
            (),
            _ids(slot.stale),
            rng.choice(tempting) if tempting else None,
        )

    def _over(self) -> QuestionDraft | None:
        """What ended or was to be forgotten."""
        world = self._world
        ended = [slot for slot in world.slots if slot.ended]
        if not ended:
            return None
        slot = self._rng.choices(ended, [one.kind.interest for one in ended])[0]
        if slot.kind.many and any(
            one.person is slot.person and one.kind is slot.kind for one, _ in self._held
        ):
            return None  # the list still has other values
        text = self._worded(world.wording(slot.kind).ask, slot, None)
        mine = [
            one
            for one in world.slots
            if one.person is slot.person
            and one.kind is slot.kind
            and (slot.kind.many or one.key == slot.key)
        ]
        misleading = tuple(name for one in mine for name in _ids(one.stale))
        return QuestionDraft(text, None, "deletion", (), misleading, slot.told[-1])

    # Help

    def _pick(self, fits: Callable[[Slot, CarriedValue], bool]) -> Known | None:
        usable = [(slot, held) for slot, held in self._held if fits(slot, held)]
        if not usable:
            return None
        return self._rng.choices(usable, [slot.kind.interest for slot, _ in usable])[0]

    def _worded(self, forms: Forms, slot: Slot, held: CarriedValue | None, name: str = "") -> str:
        slots = {"k": CalendarValue.plain(slot.key)}
        if held is not None:
            slots |= {"v": held.value}
            if held.when is not None:
                slots["day"] = CalendarValue.plain(held.when.answer)
        return self._filled(self._world.form(forms), slot.person, slots, name)

    def _noun(self, slot: Slot, held: CarriedValue) -> str:
        forms = self._world.wording(slot.kind).noun
        naming = by_name(self._language, slot.person.name, slot.person.sex)
        return fill(self._world.form(forms), naming, {"v": held.value.answer})

    def _filled(
        self, form: str, person: CastMember, slots: dict[str, CalendarValue], name: str = ""
    ) -> str:
        if not name:
            whole = person.role != "" and self._rng.random() < WHOLE_PHRASE
            name = self._scribe.whole_phrase(person) if whole else person.name
        naming = by_name(self._language, name, person.sex)
        texts = {key: one.answer for key, one in slots.items()}
        return self._finished(fill(form, naming, texts))

    def _finished(self, text: str) -> str:
        return sentence(text) if self._language == "en" else text


def _ids(stale: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(name for name, _ in stale)


def _same_day(one: CarriedValue, other: CarriedValue) -> bool:
    return one.when is not None and other.when is not None and one.when.answer == other.when.answer
