"""A user's own journal as a life log: what was decided on, and the answers that people judged.

    statements    the facts of all operations (ADD, UPDATE, DELETE, NONE), in the journal's order
    probes        questions whose answers have feedback, asked when they were asked:
        good         needs the statements that the shown items carried and the answer repeats (all
                     of them where it repeats none clearly)
        correction   needs the statement told before that agrees best with it; shown statements that
                     the wrong answer repeats and the correction does not are misleading
        bad          says nothing about which statements count, so it is left out

Repeating and agreeing are shares of content words and numbers that the question does not have; no
model is asked. Feedback that teaches nothing is left out and counted. A share of the questions is
held out (`is_held_out`): they judge what was learnt, and are never learnt from.

Invariants: a probe names only statements told before it was asked; what is counted as used and left
out is all feedback; a question is held out by its text alone, whatever its case, width, spaces and
punctuation, so that it stays on its side however often it is asked and whatever comes later.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from memograd.data.conversation import Question
from memograd.data.lifelog.types import GoldOp, Lifelog, Probe, ToldStatement
from memograd.memory import RawTurn
from memograd.memory.language import language_of
from memograd.memory.records.events import Event, EventKind
from memograd.memory.records.operations import OpKind
from memograd.memory.statements import wording
from memograd.memory.write.answers import BAD, CORRECTION, GOOD
from memograd.memory.write.compaction import is_compaction

SUPPORTS = 0.2  # of an answer's own words, from which a statement clearly says some of it
NEARLY_BEST = 0.5  # of the best statement's share
AGREES = 0.5  # of a correction's own words, from which a statement says the same
TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class JournalLog:
    """log: None where nothing was decided on yet. left_out: feedback by the reason why."""

    log: Lifelog | None
    left_out: Mapping[str, int]


def lifelog_of_journal(events: Sequence[Event], owner: str) -> JournalLog:
    """The life log of one owner's events, which stand in the journal's order."""
    story = _Story()
    left_out: Counter[str] = Counter()
    verdicts = {
        event.after["answer_id"]: event
        for event in events
        if event.kind is EventKind.FEEDBACK and event.after is not None
    }
    probes: list[Probe] = []
    for event in events:
        if event.erased:
            continue
        if event.kind is EventKind.ANSWER and event.subject in verdicts:
            found = story.probe(event, verdicts[event.subject])
            if isinstance(found, Probe):
                probes.append(found)
            else:
                left_out[found] += 1
        else:
            story.tell(event)
    if not story.statements:
        return JournalLog(None, dict(left_out))
    text = " ".join(statement.text for statement in story.statements)
    log = Lifelog(
        id=f"journal-{owner}",
        language=language_of(text),
        speakers=(owner.partition(":")[2], "assistant"),
        turns=tuple(story.turns.values()),
        statements=tuple(story.in_order()),
        probes=tuple(probes),
    )
    return JournalLog(log, dict(left_out))


@dataclass
class _Story:
    """What was told so far. carries: which statement an item carries now, by the item's id."""

    turns: dict[str, RawTurn] = field(default_factory=dict)
    statements: list[ToldStatement] = field(default_factory=list)
    carries: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    _moment: datetime = datetime(1, 1, 1, tzinfo=UTC)

    def tell(self, event: Event) -> None:
        """Take in an event: a turn, or an operation and with it a statement."""
        if event.kind is EventKind.PURGE:
            self.carries.pop(event.subject, None)
            return
        if event.kind is EventKind.TURN and event.after is not None:
            self.turns[event.subject] = RawTurn.from_json(event.after["turn"])
            return
        before, after = event.before or {}, event.after or {}
        if event.kind.value not in OpKind.__members__ or is_compaction(event):
            return
        if event.kind is EventKind.UPDATE and before["text"] == after["text"]:
            return  # other labels of the same statement
        said = after or before
        self._add(event, said["text"], said.get("sources", ()))
        if event.kind in (EventKind.ADD, EventKind.UPDATE):
            self.carries[event.subject] = event.uid
        elif event.kind is EventKind.DELETE:
            self.carries.pop(event.subject, None)

    def probe(self, answer: Event, feedback: Event) -> Probe | str:
        """The probe of an answer, or why there is none."""
        assert answer.after is not None and feedback.after is not None
        moment = self._next(answer.recorded_at)
        said, verdict = answer.after, feedback.after["verdict"]
        if verdict == BAD:
            return "bad without a correction"
        shown = [self.carries[one] for one in said["shown"] if one in self.carries]
        asked = _words(said["question"])
        repeated = self._repeating(shown, _words(said["answer"]) - asked or _words(said["answer"]))
        misleading: list[str] = []
        if verdict == GOOD:
            right, needed = said["answer"], repeated or shown
            if not needed:
                return "good, but no memory was shown"
        else:
            assert verdict == CORRECTION
            right = feedback.after["correction"]
            words = _words(right) - asked or _words(right)
            agreeing = set(self._repeating(shown, words))
            misleading = [one for one in repeated if one not in agreeing]
            needed = self._agreeing(words, misleading)
            if not needed:
                return "corrected to what nobody told before"
            misleading = [one for one in misleading if one not in needed]
            self._note_replaced(misleading, needed[0])
        question = Question(answer.subject, said["question"], right, verdict, (), asked_at=moment)
        return Probe(question, tuple(needed), tuple(misleading))

    def in_order(self) -> Iterable[ToldStatement]:
        """All statements; those that a correction showed to replace another say so."""
        for statement in self.statements:
            target = self.replaced.get(statement.id)
            gold = GoldOp(OpKind.UPDATE, target) if target else None
            yield replace(statement, gold=gold)

    def _add(self, event: Event, text: str, sources: Sequence[str]) -> None:
        moment = self._next(event.recorded_at)
        heard = [source for source in sources if source in self.turns]
        turn_id = heard[-1] if heard else f"fact:{event.uid}"
        if not heard:  # written by the application itself
            self.turns[turn_id] = RawTurn(turn_id, event.actor, text, moment, 0)
        retracts = event.kind is EventKind.DELETE
        self.statements.append(ToldStatement(event.uid, turn_id, text, moment, retracts=retracts))

    def _next(self, recorded_at: datetime) -> datetime:
        """The time of an event: later than all before it, as its place in the journal is."""
        self._moment = max(recorded_at, self._moment + TICK)
        return self._moment

    def _repeating(self, ids: Sequence[str], words: frozenset[str]) -> list[str]:
        """Those of the statements that clearly say some of these words, if any does."""
        texts = {statement.id: statement.text for statement in self.statements}
        shares = {one: _share(texts[one], words) for one in dict.fromkeys(ids)}
        best = max(shares.values(), default=0.0)
        if best < SUPPORTS:
            return []
        return [one for one, share in shares.items() if share >= NEARLY_BEST * best]

    def _agreeing(self, words: frozenset[str], misleading: Sequence[str]) -> list[str]:
        """The statement that says most of these words: one told after what misleads, else any."""
        last = max((n for n, one in enumerate(self.statements) if one.id in misleading), default=-1)
        ranked = [
            (_share(statement.text, words), number > last, -number)
            for number, statement in enumerate(self.statements)
            if not statement.retracts
        ]
        share, _, number = max(ranked, default=(0.0, False, 0))
        return [self.statements[-number].id] if share >= AGREES else []

    def _note_replaced(self, misleading: Sequence[str], by: str) -> None:
        """Remember that a statement told later took the place of the one that misled."""
        places = {statement.id: number for number, statement in enumerate(self.statements)}
        older = [one for one in misleading if places[one] < places[by]]
        if older:
            self.replaced.setdefault(by, older[-1])


def _words(text: str) -> frozenset[str]:
    found = wording(text)
    return found.terms | found.numbers


def _share(text: str, words: frozenset[str]) -> float:
    return len(_words(text) & words) / len(words) if words else 0.0


HASHED = 10_000


def is_held_out(question: str, share: float) -> bool:
    """Whether the question is among the `share` (0 to 1) that is held out, by a hash of it."""
    digest = hashlib.sha256(_asked(question).encode()).digest()
    return int.from_bytes(digest[:8], "big") % HASHED < share * HASHED


def _asked(question: str) -> str:
    """The question without what does not change it, so that asking again is the same question."""
    folded = unicodedata.normalize("NFKC", question).casefold()
    return "".join(letter for letter in folded if letter.isalnum()) or folded
