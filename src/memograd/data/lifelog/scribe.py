"""Writing it down: a clause becomes a turn, in the speaker's words, and a statement, in a reader's.

Invariant: turn and statement come from the same form and differ in who is named how, in the frame
around it, and in dates: as spoken in the turn, absolute in the statement.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from memograd.data.lifelog.forms import (
    Naming,
    Said,
    by_name,
    fill,
    first_person,
    pronoun,
    sentence,
    with_articles,
)
from memograd.data.lifelog.types import GoldOp, ToldStatement
from memograd.data.lifelog.world import CalendarValue, CastMember, LifeWorld
from memograd.memory import RawTurn

BARE = 0.55  # share of facts that stand alone, without a frame around them
CHATTY = 0.25  # share of facts with chatter before them
ANSWERS = 0.4  # share of small talk that comes from the other side
WHOLE_PHRASE = 0.45  # share of mentions as "Ann's sister Mary" instead of "Mary"


@dataclass(frozen=True, slots=True)
class ToldClause:
    """A form with its slots, about somebody."""

    form: str
    person: CastMember
    slots: dict[str, CalendarValue]


@dataclass(frozen=True, slots=True)
class Written:
    """The statement that was written. by_name: it calls the person by the bare name."""

    id: str
    place: int
    by_name: bool


class Scribe:
    """Collects turns and statements, and which turn says which statement.

    partner: a member of the cast, or None for the assistant.
    """

    def __init__(self, rng: random.Random, world: LifeWorld, partner: CastMember | None) -> None:
        self.turns: list[RawTurn] = []
        self.statements: list[ToldStatement] = []
        self.turn_of: dict[str, str] = {}
        self.time = datetime.min
        self.session = 0
        self.session_began_at = 0
        self._in_session = 0
        self._rng, self._world, self.partner = rng, world, partner
        self._language = world.language.code
        self._frames = world.language.frames

    @property
    def speakers(self) -> tuple[str, str]:
        """The user and whom the user talks with."""
        other = self.partner.name if self.partner else self._world.language.assistant
        return self._world.user.name, other

    def begin_session(self, time: datetime) -> None:
        """From now on everything is said in the next session, which begins at `time`."""
        self.time, self._in_session = time, 0
        self.session += 1
        self.session_began_at = len(self.statements)

    def fact(
        self,
        clause: ToldClause,
        gold: GoldOp,
        *,
        frame: Said | None = None,
        lead: str | None = None,
        gossip: str = "",
        old: CalendarValue | None = None,
        retracts: bool = False,
    ) -> Written:
        """One thing told. frame: what stands around it, else the common ones; lead: in the turn."""
        speaker = self._speaker_for(clause.person)
        said_frame, text_frame = self._common(lead) if frame is None else (frame.said, frame.text)
        around = {"gossip": gossip, "speaker": speaker.name}
        old = old or CalendarValue.plain("")
        said = self._said_clause(clause, speaker)
        text, by_bare_name = self._text_clause(clause, speaker, "{speaker}" in text_frame)
        return self._write(
            speaker.name,
            said_frame.format_map(around | {"clause": said, "old": old.said}),
            text_frame.format_map(around | {"clause": text, "old": old.text}),
            gold,
            subject=clause.person.name,
            retracts=retracts,
            by_bare_name=by_bare_name,
        )

    def forget_topic(self, topic: ToldClause, frame: Said, gold: GoldOp) -> Written:
        """Asks to forget what the topic names."""
        speaker = self._speaker_for(topic.person)
        text, by_bare_name = self._text_clause(topic, speaker, True)
        return self._write(
            speaker.name,
            frame.said.format_map({"topic": self._said_clause(topic, speaker)}),
            frame.text.format_map({"topic": text, "speaker": speaker.name}),
            gold,
            subject=topic.person.name,
            retracts=True,
            by_bare_name=by_bare_name,
        )

    def small_talk(self, talk: Said, value: str, gold: GoldOp) -> Written:
        """Words that tell nothing, from either of the two."""
        answers = self._rng.random() < ANSWERS and (talk.either or self.partner is not None)
        speaker = self.speakers[answers]
        slots = with_articles({"v": value, "speaker": speaker})
        said, text = talk.said.format_map(slots), talk.text.format_map(slots)
        return self._write(speaker, said, text, gold, subject="", by_bare_name=False)

    def called(self, person: CastMember) -> str:
        """`my sister Mary`, in the words of the user."""
        space = self._world.language.space
        mine = "我" if self._language == "zh" else "my"
        return f"{mine}{space}{person.role}{space}{person.name}"

    def relation(self, person: CastMember) -> str:
        """`Ann's sister`, `林悦的姐姐`."""
        user = self._world.user
        whose = by_name(self._language, user.name, user.sex).slots["whose"]
        return f"{whose}{self._world.language.space}{person.role}"

    def whole_phrase(self, person: CastMember) -> str:
        """`Ann's sister Mary`, `林悦的姐姐林静`."""
        return f"{self.relation(person)}{self._world.language.space}{person.name}"

    def _whole_phrase_after(self, speaker: CastMember, person: CastMember, named: bool) -> str:
        """`her sister Mary` where the user was named just before."""
        if not named or speaker is not self._world.user:
            return self.whole_phrase(person)
        his = pronoun(self._language, speaker.sex).slots["his"]
        space = self._world.language.space
        return f"{his}{space}{person.role}{space}{person.name}"

    def _speaker_for(self, person: CastMember) -> CastMember:
        return person if person is self.partner else self._world.user

    def _common(self, lead: str | None) -> tuple[str, str]:
        rng, world = self._rng, self._world
        bare = "{clause}" + world.language.stop
        said = lead or (bare if rng.random() < BARE else world.form(self._frames.said))
        if lead is None and rng.random() < CHATTY:
            said = f"{world.form(self._frames.hidden)}{world.language.space}{said}"
        text = bare if rng.random() < BARE else world.form(self._frames.text)
        return said, text

    def _said_clause(self, clause: ToldClause, speaker: CastMember) -> str:
        if clause.person is speaker:
            naming = first_person(self._language)
        else:
            whole = self._rng.random() < WHOLE_PHRASE
            name = self.called(clause.person) if whole else clause.person.name
            naming = by_name(self._language, name, clause.person.sex)
        return self._filled(clause, naming, {key: one.said for key, one in clause.slots.items()})

    def _text_clause(
        self, clause: ToldClause, speaker: CastMember, named: bool
    ) -> tuple[str, bool]:
        person = clause.person
        by_bare_name = True
        if named and person is speaker:
            naming = pronoun(self._language, person.sex)
        else:
            whole = person.role != "" and self._rng.random() < WHOLE_PHRASE
            by_bare_name = not whole
            name = self._whole_phrase_after(speaker, person, named) if whole else person.name
            naming = by_name(self._language, name, person.sex)
        slots = {key: one.text for key, one in clause.slots.items()}
        return self._filled(clause, naming, slots), by_bare_name

    def _filled(self, clause: ToldClause, naming: Naming, slots: dict[str, str]) -> str:
        return fill(clause.form, naming, slots)

    def _write(
        self,
        speaker: str,
        said: str,
        text: str,
        gold: GoldOp,
        *,
        subject: str,
        by_bare_name: bool,
        retracts: bool = False,
    ) -> Written:
        if self._language == "en":
            said, text = sentence(said), sentence(text)
        self.time += timedelta(minutes=self._rng.randint(1, 4))
        self._in_session += 1
        turn_id = f"D{self.session}:{self._in_session}"
        place = len(self.statements)
        identity = f"s{place + 1}"
        self.turn_of[identity] = turn_id
        self.turns.append(RawTurn(turn_id, speaker, said, self.time, self.session))
        self.statements.append(
            ToldStatement(identity, turn_id, text, self.time, gold, retracts, subject)
        )
        return Written(identity, place, by_bare_name)
