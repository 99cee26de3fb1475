"""From a plan to spoken turns.

A session is a greeting, one short exchange a telling (prompt, telling, reaction, and where the
rhythm needs it a closing word), small talk in between, and a farewell. Invariants: the two people
speak in strict alternation, and no two turns of a conversation have the same text.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from memograd.data.generator import vocabulary
from memograd.data.generator.plan import Decks, Telling, with_variants
from memograd.data.generator.topics import (
    FAREWELLS,
    GREETINGS,
    PROMPT_LEADS,
    REPLY_LEADS,
    SMALL_TALK,
)
from memograd.memory import RawTurn

PHOTO_PROBABILITY = 0.5


class Script:
    """The turns of one conversation, and which of them tells what.

    turns: in the order in which they are said. told: each telling with the id of its turn, in the
    same order.
    """

    def __init__(
        self,
        rng: random.Random,
        decks: Decks,
        names: tuple[str, str],
        times: Sequence[datetime],
        plan: Sequence[Telling],
        turns_per_session: int,
    ) -> None:
        self.turns: list[RawTurn] = []
        self.told: list[tuple[Telling, str]] = []
        self._rng, self._decks, self._names = rng, decks, names
        self._texts: set[str] = set()
        self._uses: Counter[str] = Counter()
        self._small_talk = rng.sample(SMALL_TALK, len(SMALL_TALK))
        for number, time in enumerate(times, start=1):
            self._session, self._time, self._said = number, time, 0
            tellings = [telling for telling in plan if telling.session == number]
            self._write_session(self._interleaved(tellings), turns_per_session)

    def _interleaved(self, tellings: Sequence[Telling]) -> list[Telling]:
        """In random order, but with the two people taking turns as long as both have something."""
        piles = [[one for one in tellings if one.owner == owner] for owner in (0, 1)]
        for pile in piles:
            self._rng.shuffle(pile)
        self._rng.shuffle(piles)
        piles.sort(key=len)
        order = []
        while any(piles):
            pile = piles[1] or piles[0]
            order.append(pile.pop())
            piles.reverse()
        return order

    def _write_session(self, tellings: list[Telling], turns_per_session: int) -> None:
        first = 1 - tellings[0].owner if tellings else self._rng.randrange(2)
        pauses = self._pauses(len(tellings), turns_per_session)
        self._pair(first, GREETINGS)
        for number, telling in enumerate(tellings):
            for _ in range(pauses.count(number)):
                self._chat(1 - telling.owner)
            following = tellings[number + 1 : number + 2]
            # The next exchange begins with its prompting partner: close this one if that is us.
            closed = bool(following) and following[0].owner == telling.owner
            self._exchange(telling, closed)
        last = self._names.index(self.turns[-1].speaker)
        self._pair(1 - last, FAREWELLS)

    def _pauses(self, tellings: int, turns_per_session: int) -> list[int]:
        """Before which tellings there is small talk: to fill the session, and sometimes anyway."""
        if not tellings:
            return []
        missing = (turns_per_session - 4 - 3 * tellings) // 2
        pauses = max(missing, self._rng.randrange(2))
        return [self._rng.randrange(tellings) for _ in range(min(pauses, len(self._small_talk)))]

    def _exchange(self, telling: Telling, closed: bool) -> None:
        topic, slots, partner = telling.topic, telling.slots, 1 - telling.owner
        self._say(partner, topic.prompts, slots, PROMPT_LEADS)
        caption = None
        if topic.caption and self._rng.random() < PHOTO_PROBABILITY:
            caption = topic.caption.format(**slots)
        turn = self._say(telling.owner, topic.tells, slots, REPLY_LEADS, caption)
        self.told.append((telling, turn.id))
        # A reaction that asks something needs somebody to answer it.
        reacts = [text for text in topic.reacts if closed or not text.endswith("?")]
        self._say(partner, reacts, slots, REPLY_LEADS)
        if closed:
            self._say(telling.owner, topic.closes, slots, REPLY_LEADS)

    def _chat(self, speaker: int) -> None:
        lines = self._small_talk.pop()
        pools = {
            "job": vocabulary.JOBS,
            "city": vocabulary.CITIES,
            "hobby": vocabulary.HOBBIES,
            "kind": vocabulary.KINDS,
            "instrument": vocabulary.INSTRUMENTS,
            "food": vocabulary.FOODS,
            "place": vocabulary.PLACES,
        }
        used = {key: pool for key, pool in pools.items() if f"{key}}}" in lines[0]}
        slots = with_variants({key: self._decks.draw(pool) for key, pool in used.items()})
        for offset, line in enumerate(lines):
            self._say((speaker + offset) % 2, (line,), slots, REPLY_LEADS)

    def _pair(self, speaker: int, pairs: Sequence[tuple[str, str]]) -> None:
        """A line and its reply, from the pairs used least."""
        fewest = min(self._uses[line] for line, _ in pairs)
        line, reply = self._rng.choice([pair for pair in pairs if self._uses[pair[0]] == fewest])
        name, other = self._names[speaker], self._names[1 - speaker]
        slots = {"name": name, "other": other}
        self._say(speaker, (line,), slots, PROMPT_LEADS)
        self._say(1 - speaker, (reply,), slots, REPLY_LEADS)

    def _say(
        self,
        speaker: int,
        wordings: Sequence[str],
        slots: dict[str, str],
        leads: Sequence[str],
        caption: str | None = None,
    ) -> RawTurn:
        """One turn in the wording used least, with a lead in front if it was said before."""
        fewest = min(self._uses[wording] for wording in wordings)
        wording = self._rng.choice([one for one in wordings if self._uses[one] == fewest])
        self._uses[wording] += 1
        text = wording.format(**slots)
        while text in self._texts:
            text = self._rng.choice(leads) + text
        self._texts.add(text)
        self._said += 1
        turn = RawTurn(
            id=f"D{self._session}:{self._said}",
            speaker=self._names[speaker],
            text=text,
            time=self._time,
            session=self._session,
            caption=caption,
        )
        self.turns.append(turn)
        return turn
