"""Answers that were given with the memory, and what people say about them.

    ANSWER     after: question, answer, shown (items shown), behind (what else it may repeat)
    FEEDBACK   after: answer_id, verdict (good | bad | correction), correction (its text)

Both are written down and change nothing that is remembered: `tasks/memory_ops/online.py` learns
from them what to remember. An answer may repeat what it was given from, so purging any of that
erases the answer and its feedback, and what was purged while an answer was being made keeps it from
being written down.

Invariants: an answer names items and turns of its own owner only, and feedback reaches an answer of
the ids given only; no answer is written from what was purged.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from memograd.errors import BadInput
from memograd.memory.journal import Conflict
from memograd.memory.records.events import EventKind, NewEvent
from memograd.memory.records.scope import Scope, check_unicode
from memograd.memory.write.remember import ATTEMPTS

if TYPE_CHECKING:
    from memograd.memory.search import Context
    from memograd.memory.state.store import MemoryStore

GOOD: Final = "good"
BAD: Final = "bad"
CORRECTION: Final = "correction"
VERDICTS: Final = (GOOD, BAD, CORRECTION)


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer to write down.

    shown: ids of the items that stood in the prompt. behind: ids of raw turns, earlier items and
    earlier answers that the answer may repeat too. id: what feedback names.
    """

    question: str
    answer: str
    shown: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @classmethod
    def of_context(
        cls, question: str, answer: str, recalled: Context, behind: Iterable[str] = ()
    ) -> Answered:
        """An answer from what a memory recalled, and from what stands `behind` it besides."""
        items = (*recalled.core, *(hit.record for hit in recalled.items))
        turns = (hit.record.id for hit in recalled.turns)
        shown = tuple(dict.fromkeys(item.id for item in items))
        return cls(question, answer, shown, tuple(dict.fromkeys((*turns, *behind))))

    def heard_in(self, turns: Sequence[str]) -> Answered:
        """The same, where these raw turns asked the question."""
        return replace(self, behind=tuple(dict.fromkeys((*self.behind, *turns))))

    def event(self, scope: Scope) -> NewEvent:
        """The event that keeps it."""
        after = {
            "question": self.question,
            "answer": self.answer,
            "shown": list(self.shown),
            "behind": list(self.behind),
        }
        return NewEvent(EventKind.ANSWER, scope, self.id, after=after)


def check_answered(store: MemoryStore, answered: Answered, scope: Scope) -> None:
    """Raise BadInput unless its texts can be kept and all that it names is of the scope's owner."""
    for name, text in (("The question", answered.question), ("The answer", answered.answer)):
        if not isinstance(text, str) or not text.strip():
            raise BadInput(f"{name} must be a text with something in it, not {text!r}.")
        check_unicode(text, name.lower())
    for one in (*answered.shown, *answered.behind):
        if not _is_of(store, one, scope.owner):
            raise BadInput(
                f"The answer was shown {str(one)[:60]!r}, which is no memory of {scope.owner}:"
                " give ids that search returned for the same user."
            )


def _is_of(store: MemoryStore, an_id: object, owner: str) -> bool:
    """Whether it is the id of an item or a turn of the owner."""
    if not isinstance(an_id, str) or "\0" in an_id:
        return False  # no database of texts takes it, so there is nothing by that name
    check_unicode(an_id, "an id that the answer was shown")
    return store.journal.latest(an_id, owner=owner) is not None


def is_of_one_owner(store: MemoryStore, answered: Answered, scope: Scope) -> bool:
    """Whether it was given from the memory of the scope's owner alone.

    Whoever asks under an agent's id only is shown items of all its users: such an answer is
    nobody's and is not written down.
    """
    return scope.user_id is not None or all(
        store.journal.latest(one, owner=scope.owner) is not None
        for one in (*answered.shown, *answered.behind)
    )


def gone_since(
    store: MemoryStore, owner: str, seq: int, *, forgotten: bool = False
) -> frozenset[str]:
    """The items and turns of an owner that were purged behind a place of the journal.

    The owner itself is among them when everything was. forgotten: and the turns that are searched
    no more, and what the application deleted.
    """
    kinds = {EventKind.PURGE, EventKind.FORGET} if forgotten else {EventKind.PURGE}
    return frozenset(
        event.subject
        for event in store.journal.tail(owner, after=seq)
        if event.kind in kinds
        or (forgotten and event.kind is EventKind.DELETE and event.actor == "user")
    )


def write_answer(store: MemoryStore, answered: Answered, scope: Scope) -> str:
    """Write the answer down; returns its id.

    Raises BadInput when something that it was given from was purged.
    """
    for attempt in range(ATTEMPTS):
        versions = _versions(store, (*answered.shown, *answered.behind), scope.owner)
        expect = {one: seq for one, seq in versions.items() if seq is not None}
        if len(expect) < len(versions):
            raise BadInput(
                "Some of what the answer was given from was purged meanwhile, so it is not written"
                " down: ask again."
            )
        try:
            store.write(scope.owner, [answered.event(scope)], expect=expect)
            return answered.id
        except Conflict:
            store.step_aside(attempt)  # something it was given from changed: is it still there?
    raise Conflict(f"The memory of {scope.owner} is being changed all the time: try again.")


def _versions(store: MemoryStore, ids: Iterable[str], owner: str) -> dict[str, int | None]:
    """The latest event of each, 0 where there is none, None where it was purged."""
    found: dict[str, int | None] = {}
    for one in ids:
        latest = store.journal.latest(one, owner=owner)
        purged = latest is not None and (latest.erased or latest.kind is EventKind.PURGE)
        found[one] = None if purged else latest.seq if latest is not None else 0
    return found


def write_feedback(
    store: MemoryStore, answer_id: str, verdict: str, ids: dict[str, str]
) -> dict[str, Any]:
    """Write down what somebody says of an answer.

    verdict: `good`, `bad`, or what the right answer would have been. ids: the answer must have been
    given under all of these. Raises BadInput when there is no such answer (any more).
    """
    check_unicode(verdict, "the feedback")
    told = verdict.strip()
    if not told:
        raise BadInput("The feedback is empty: say good, bad, or what the right answer is.")
    answer = store.journal.latest(answer_id)
    known = answer is not None and answer.kind is EventKind.ANSWER and not answer.erased
    if answer is None or not known or not ids.items() <= answer.scope.ids().items():
        whose = f" of {', '.join(ids.values())}" if ids else ""
        raise BadInput(
            f"There is no answer{whose} with the id {answer_id!r}: give the id that came with it."
        )
    # "Good!" and "ＢＡＤ" are verdicts, no corrections.
    word = unicodedata.normalize("NFKC", told).casefold().rstrip(" .!。")
    kind = word if word in (GOOD, BAD) else CORRECTION
    after = {
        "answer_id": answer_id,
        "verdict": kind,
        "correction": told if kind == CORRECTION else None,
    }
    event = NewEvent(EventKind.FEEDBACK, answer.scope, str(uuid.uuid4()), after=after)
    store.write(answer.scope.owner, [event], expect={answer_id: answer.seq})
    return {"message": "Feedback noted!", "answer_id": answer_id, "verdict": kind}
