"""A life, told step by step: at each step something new, changed, repeated, wrong, or nothing.

Every step knows what is true so far (`world`), so it knows what a careful keeper of the memory does
with the statement: the gold operation. Invariant: an UPDATE or DELETE aims at the statement that
carries the old value at that moment; a NONE that repeats, at the one that said it already.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from memograd.data.lifelog.forms import FormWording, Said
from memograd.data.lifelog.scribe import Scribe, ToldClause, Written
from memograd.data.lifelog.settings import LifelogSettings
from memograd.data.lifelog.types import GoldOp
from memograd.data.lifelog.world import (
    PET,
    CalendarValue,
    CarriedValue,
    CastMember,
    FactKind,
    LifeWorld,
    Slot,
    coming_day,
    past_day,
)
from memograd.memory.records.operations import OpKind

RECENT = 4  # statements within which a slip is corrected
MOST_CHANGES = 3  # of one value
EVENT_SHARE = 0.3
TRIFLE_SHARE = 0.4
SHARED_VALUE = 0.08  # share of new values that somebody else has too
CHANGE_WEIGHTS = (0.5, 0.18, 0.16, 0.16)  # a new value, more detail, a correction, an end


class Life:
    """Tells one thing at each `step`. Every way of telling says whether there was occasion."""

    def __init__(
        self, rng: random.Random, world: LifeWorld, scribe: Scribe, settings: LifelogSettings
    ) -> None:
        self._rng, self._world, self._scribe = rng, world, scribe
        self._frames = world.language.frames
        self._talk = self._shuffled(world.language.small_talk.of(world.split))
        self._ways = {
            self.chat: settings.small_talk,
            self.change: settings.changes,
            self.hearsay: settings.hearsay,
            self.repeat: settings.repeats,
            self.forget: settings.forgets,
        }
        self._new_share = 1 - sum(self._ways.values())

    def step(self) -> None:
        """Tell one thing; what has no occasion yet gives way to something new, or to small talk."""
        ways = [*self._ways, self.new]
        weights = [*self._ways.values(), self._new_share]
        way = self._rng.choices(ways, weights)[0]
        if not way() and not self.new():
            self.chat()

    def chat(self) -> bool:
        """Small talk, questions, and trifles: true, but worth nothing."""
        rng, world, none = self._rng, self._world, GoldOp(OpKind.NONE)
        if rng.random() < TRIFLE_SHARE:
            trifle = rng.choice(world.language.trifles.of(world.split))
            person = world.user if rng.random() < 0.7 else self._someone()
            person = world.user if person.group == PET else person
            slots = {"v": CalendarValue.plain(rng.choice(trifle.pool))} if trifle.pool else {}
            self._scribe.fact(ToldClause(trifle.form, person, slots), none)
            return True
        if not self._talk:
            self._talk = self._shuffled(world.language.small_talk.of(world.split))
        talk = self._talk.pop()
        self._scribe.small_talk(talk, rng.choice(talk.pool) if talk.pool else "", none)
        return True

    def new(self) -> bool:
        """Something not told before: a person, an attribute, an event."""
        rng, world = self._rng, self._world
        strangers = [one for one in world.cast[1:] if one.introduced is None]
        if strangers and rng.random() < 0.3:
            return self._introduce(strangers[0])
        for _ in range(6):
            person = self._someone()
            event = rng.random() < EVENT_SHARE
            kinds = [kind for kind in person.kinds if kind.event == event]
            if not kinds:
                continue
            weights = [1 + kind.interest for kind in kinds]
            kind = rng.choices(kinds, weights)[0]
            if self._tell_new(person, kind):
                return True
        return self._introduce(strangers[0]) if strangers else False

    def change(self) -> bool:
        """A new value, a correction, more detail, or the end of something."""
        ways = (self._new_value, self._refine, self._correct, self._end)
        return any(way() for way in self._rng.choices(ways, CHANGE_WEIGHTS, k=3))

    def hearsay(self) -> bool:
        """Somebody gets it wrong, about what was told or about what never was."""
        rng, world = self._rng, self._world
        for _ in range(6):
            person = rng.choice(world.known())
            kind = rng.choice(person.kinds)
            if kind.many or kind.dated:
                continue
            wording = world.wording(kind)
            key = rng.choice(list(wording.keys)) if wording.keys else ""
            slot = world.slot(person, kind, key)
            if slot is not None and slot.held is None:
                continue
            value = self._draw(person, kind, key)
            if value is None:
                continue
            slot = world.open_slot(person, kind, key)
            slots = self._slots(key, value)
            clause = ToldClause(world.form(wording.tell), person, slots)
            frame = rng.choice(self._frames.hearsay.of(world.split))
            gossip = world.form(self._frames.gossip)
            written = self._scribe.fact(clause, GoldOp(OpKind.NONE), frame=frame, gossip=gossip)
            slot.stale.append((written.id, value.answer))
            slot.told.append(value.answer)
            return True
        return False

    def repeat(self) -> bool:
        """What is known, in other words."""
        found = self._settled(lambda kind, wording: bool(wording.tell))
        if found is None:
            return False
        slot, held = found
        world = self._world
        form = world.form(world.wording(slot.kind).tell, without=held.form)
        if slot.kind.event and held.when is None:
            return False
        slots = self._slots(slot.key, _absolute(held.value))
        if held.when:
            slots["when"] = _absolute(held.when)
        if held.detail:
            slots["d"] = held.detail
        lead = world.form(self._frames.again) if self._rng.random() < 0.4 else None
        gold = GoldOp(OpKind.NONE, held.carrier)
        written = self._scribe.fact(ToldClause(form, slot.person, slots), gold, lead=lead)
        held.mentions.append(written.id)
        return True

    def forget(self) -> bool:
        """Somebody wants something forgotten."""
        found = self._settled(
            lambda kind, wording: bool(wording.topic) or (kind.many and not kind.event)
        )
        if found is None:
            return False
        slot, held = found
        rng, world = self._rng, self._world
        wording = world.wording(slot.kind)
        gold = GoldOp(OpKind.DELETE, held.carrier)
        slots = self._slots(slot.key, _absolute(held.value))
        if wording.topic and rng.random() < 0.7:
            frame = rng.choice(self._frames.forget_topic.of(world.split))
            topic = ToldClause(world.form(wording.topic), slot.person, slots)
            self._scribe.forget_topic(topic, frame, gold)
        else:
            frame = rng.choice(self._frames.forget_clause.of(world.split))
            clause = ToldClause(world.form(wording.tell), slot.person, slots)
            self._scribe.fact(clause, gold, frame=frame, retracts=True)
        slot.retire()
        slot.ended = True
        return True

    def _introduce(self, person: CastMember) -> bool:
        world = self._world
        slots = {"role": CalendarValue.plain(person.role), "name": CalendarValue.plain(person.name)}
        clause = ToldClause(world.form(self._frames.introduced), world.user, slots)
        person.introduced = self._scribe.fact(clause, GoldOp(OpKind.ADD)).id
        return True

    def _tell_new(self, person: CastMember, kind: FactKind) -> bool:
        world, wording = self._world, self._world.wording(kind)
        key = self._rng.choice(list(wording.keys)) if wording.keys else ""
        if kind.event and self._rng.random() < self._told_of(person, kind) / 3:
            return False  # nobody has an interview every week
        slot = None if kind.many else world.slot(person, kind, key)
        if slot is not None and (slot.held is not None or slot.ended):
            return False
        value = self._draw(person, kind, key)
        if value is None:
            return False
        slots = self._slots(key, value)
        detail = when = None
        if kind.event:
            when = past_day(self._rng, self._scribe.time.date(), world.language.code)
            detail = CalendarValue.plain(self._rng.choice(wording.details))
            slots |= {"when": when, "d": detail}
        form = world.form(wording.tell)
        written = self._scribe.fact(ToldClause(form, person, slots), GoldOp(OpKind.ADD))
        slot = world.open_slot(person, kind, value.answer if kind.many else key)
        self._hold(slot, written, form, value, detail=detail, when=when)
        return True

    def _new_value(self) -> bool:
        found = self._settled(lambda kind, wording: bool(wording.change))
        if found is None or found[0].changes == MOST_CHANGES:
            return False
        slot, held = found
        value = self._draw(slot.person, slot.kind, slot.key)
        if value is None:
            return False
        world = self._world
        form = world.form(world.wording(slot.kind).change)
        slots = self._slots(slot.key, value) | {"old": _absolute(held.value)}
        when = past_day(self._rng, self._scribe.time.date(), world.language.code)
        clause = ToldClause(form, slot.person, slots | {"when": when})
        written = self._scribe.fact(clause, GoldOp(OpKind.UPDATE, held.carrier))
        before = held.value if "{old}" in form or "{a_old}" in form else None
        slot.retire()
        slot.changes += 1
        told_when = when if "{when}" in form else None
        self._hold(slot, written, form, value, when=told_when, before=before)
        return True

    def _refine(self) -> bool:
        found = self._settled(
            lambda kind, wording: bool(wording.more),
            lambda held: held.detail is None and held.when is None and held.before is None,
        )
        if found is None:
            return False
        slot, held = found
        world, wording = self._world, self._world.wording(slot.kind)
        form = world.form(wording.more)
        detail = CalendarValue.plain(self._rng.choice(wording.details))
        slots = self._slots(slot.key, _absolute(held.value)) | {"d": detail}
        clause = ToldClause(form, slot.person, slots)
        written = self._scribe.fact(clause, GoldOp(OpKind.UPDATE, held.carrier))
        held.carrier, held.said_at, held.by_name = written.id, written.place, written.by_name
        held.form, held.detail = form, detail
        held.mentions.append(written.id)
        return True

    def _correct(self) -> bool:
        """A slip of a moment ago is put right."""
        world, rng = self._world, self._rng
        recent = [
            (slot, held)
            for slot, held in world.held()
            if len(self._scribe.statements) - held.said_at <= RECENT
            and held.said_at >= self._scribe.session_began_at
            and slot.slips == 0
            and (slot.kind.event or not slot.kind.many)
            and (slot.kind.event or held.detail is None)
        ]
        if not recent:
            return False
        slot, held = rng.choice(recent)
        wording = world.wording(slot.kind)
        value, when, old = held.value, held.when, held.value
        if slot.kind.event:
            if held.when is None:
                return False
            when = past_day(rng, self._scribe.time.date(), world.language.code)
            old = held.when
            if when.answer == old.answer:
                return False
        else:
            drawn = self._draw(slot.person, slot.kind, slot.key)
            if drawn is None:
                return False
            value, when = drawn, None
        slots = self._slots(slot.key, value)
        if slot.kind.event and when and held.detail:
            slots |= {"when": when, "d": held.detail}
        form = world.form(wording.tell)
        frame = rng.choice(self._frames.corrected.of(world.split))
        gold = GoldOp(OpKind.UPDATE, held.carrier)
        written = self._scribe.fact(
            ToldClause(form, slot.person, slots), gold, frame=frame, old=old
        )
        detail = held.detail
        slot.slips += 1
        slot.retire()
        self._hold(slot, written, form, value, detail=detail, when=when)
        return True

    def _end(self) -> bool:
        found = self._settled(lambda kind, wording: bool(wording.end))
        if found is None:
            return False
        slot, held = found
        slots = self._slots(slot.key, _absolute(held.value))
        clause = ToldClause(
            self._world.form(self._world.wording(slot.kind).end), slot.person, slots
        )
        self._scribe.fact(clause, GoldOp(OpKind.DELETE, held.carrier))
        slot.retire()
        slot.ended = True
        return True

    def _hold(
        self,
        slot: Slot,
        written: Written,
        form: str,
        value: CalendarValue,
        *,
        detail: CalendarValue | None = None,
        when: CalendarValue | None = None,
        before: CalendarValue | None = None,
    ) -> None:
        slot.told.append(value.answer)
        slot.held = CarriedValue(
            value,
            written.id,
            written.place,
            form,
            written.by_name,
            [written.id],
            detail,
            when,
            before,
        )

    def _settled(
        self,
        kind_fits: Callable[[FactKind, FormWording], bool],
        held_fits: Callable[[CarriedValue], bool] = lambda held: True,
    ) -> tuple[Slot, CarriedValue] | None:
        """Something true that an earlier session told; what matters more is talked about more."""
        world, now = self._world, self._scribe.session_began_at
        usable = [
            (slot, held)
            for slot, held in world.held()
            if held.said_at < now
            and kind_fits(slot.kind, world.wording(slot.kind))
            and held_fits(held)
        ]
        if not usable:
            return None
        # Whatever was talked about often is talked about less from now on.
        weights = [
            (0.5 + slot.kind.interest) / (slot.changes + len(held.mentions)) ** 2
            for slot, held in usable
        ]
        return self._rng.choices(usable, weights)[0]

    def _someone(self) -> CastMember:
        """Most of all the user, then whoever the user talks with, then the others."""
        known = self._world.known()
        weights = [
            5 if one is self._world.user else 3 if one is self._scribe.partner else 1
            for one in known
        ]
        return self._rng.choices(known, weights)[0]

    def _draw(self, person: CastMember, kind: FactKind, key: str) -> CalendarValue | None:
        """A value that this slot never had; mostly one that nobody else has either."""
        rng, world = self._rng, self._world
        language = world.language.code
        mine = {
            value
            for slot in world.slots
            if slot.person is person and slot.kind is kind and (kind.many or slot.key == key)
            for value in slot.told
        }
        if kind.dated:
            value = coming_day(rng, self._scribe.time.date(), language)
            return None if value.answer in mine else value
        usable = [value for value in world.pool(kind, key) if value not in mine]
        others = {value for slot in world.slots if slot.kind is kind for value in slot.told}
        fresh = [value for value in usable if value not in others]
        pool = usable if not fresh or rng.random() < SHARED_VALUE else fresh
        return CalendarValue.plain(rng.choice(pool)) if pool else None

    def _told_of(self, person: CastMember, kind: FactKind) -> int:
        return sum(slot.person is person and slot.kind is kind for slot in self._world.slots)

    def _slots(self, key: str, value: CalendarValue) -> dict[str, CalendarValue]:
        return {"v": value, "k": CalendarValue.plain(key)} if key else {"v": value}

    def _shuffled(self, talk: Sequence[Said]) -> list[Said]:
        return self._rng.sample(list(talk), len(talk))


def _absolute(value: CalendarValue) -> CalendarValue:
    """The value as one speaks of it later: with the date itself instead of "next Tuesday"."""
    return replace(value, said=value.text)
