"""The manager that needs no model: it compares what the fact and each item say.

Words decide. Embeddings only choose and order the items to compare with: they put "Rex is 4" and
"Rex is 5" on nearly the same spot, and their scales differ. In this order: what is taken back is
deleted; what is known already changes nothing; a new value of a single-valued property, a change
that says so ("now", "instead", 改成) or a contradiction rewrites the item; all else is added.

What an item says besides is never lost: where it has several clauses, only the one in question is
rewritten or taken out, and where they cannot be told apart the fact is added beside it.

Invariants: no clause of an item that the fact does not speak of disappears; texts that differ in a
number, a name or a negation are never called duplicates (`tests/memory/test_manager_rules.py`, with
tables of cases in both languages).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.topics import about, is_whose, reported_topic
from memograd.memory.reader.fact import Fact
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, OpKind, reason
from memograd.memory.statements import (
    Clause,
    Statement,
    Wording,
    agreement,
    clauses,
    parse_statement,
    same_text,
    wording,
)
from memograd.memory.statements.statement import plain

if TYPE_CHECKING:
    from memograd.memory.search import Hit, Query
    from memograd.memory.state import MemoryState

_LIST = re.compile(r",|\band\b|、|，|和|与|以及")
AT_ONCE: Final = timedelta(minutes=1)  # writers side by side commit in any order
RECENT: Final = timedelta(days=31)  # what happened that long before may still be news
STRONG_OVERLAP = 0.6  # share of common content words from which a change can mean an item
RETRACTION_OVERLAP = 0.6  # share of the retracted words that an item must have

# Many-valued properties of which a "now" or "instead" still replaces the one remembered value.
_CHANGEABLE = frozenset({"prefers", "drives", "uses", "studies", "drinks", "plays"})
# What somebody does who may quit it: "quit smoking", 戒酒.
_HABITS = frozenset({"habit", "drinks", "eats", "plays", "hobby", "uses"})
# "Ann lives in Rome. It's lovely" is true of the old value only, "The dog is called Rex. It is 3"
# of the subject, whatever its name.
_COMMENT = re.compile(
    r"(?:(?:and|but|so) )?(?:it|that|this|there|the days|time|life)\b|[它这那]", re.IGNORECASE
)
_NAMING = frozenset({"name", "called", "age", "birthday", "gender", "height", "weight", "has"})
# Sharing a day does not make two events one.
_CALENDAR = wording(
    "January February March April May June July August September October November December Monday"
    " Tuesday Wednesday Thursday Friday Saturday Sunday week weekend"
).terms
_ENDING_WORDS = frozenset({"longer", "any", "mor", "anymor"})


@dataclass(frozen=True, slots=True)
class _Said:
    """A text with what was understood of it."""

    text: str
    statement: Statement | None
    wording: Wording


@dataclass(frozen=True, slots=True)
class _Known:
    """An item, or one clause of it; `clauses` has all clauses of the item, `number` is this one."""

    item: MemoryItem
    said: _Said
    clauses: tuple[Clause, ...]
    number: int = 0

    @property
    def whole(self) -> bool:
        return len(self.clauses) == 1


class RuleManager:
    """Decides by rules, in English and Chinese; the same input gives the same decision."""

    actor = "rules"

    def decide(
        self, state: MemoryState, fact: Fact, query: Query, related: Sequence[Hit[MemoryItem]]
    ) -> Decision:
        """`decide_by_rules`; see `MemoryManager.decide`."""
        return decide_by_rules(fact, [hit.record for hit in related])


def decide_by_rules(fact: Fact, items: Sequence[MemoryItem]) -> Decision:
    """One operation with its reason, by the words of the fact and of the items alone."""
    said = _understand(fact.text)
    known = [part for item in items for part in _parts(item)]
    if fact.retracts:
        return _forget(fact.text, known)
    ended = said.statement is not None and said.statement.ended
    if ended and not said.wording.changed_to and (deleted := _retract(said, known)):
        return deleted
    if replaced := _replacement(fact, said, known):
        return replaced
    beside: Decision | None = None
    for rule in (_duplicate, _more_detail, _same_slot, _contradiction, _announced_change):
        for one in known:
            decision = rule(fact, said, one)
            if decision is not None and decision.op.kind is not OpKind.ADD:
                return decision
            beside = beside or decision  # this item must stay, another may still give way
    return beside or Decision(MemoryOp.add(fact.text), reason("new", fact.text))


def _understand(text: str) -> _Said:
    return _Said(text, parse_statement(text), wording(text))


def _parts(item: MemoryItem) -> list[_Known]:
    """The item as a whole, or clause by clause."""
    divided = clauses(item.text)
    return [
        _Known(item, _understand(clause.said), divided, number)
        for number, clause in enumerate(divided)
    ]


def _retract(said: _Said, known: Sequence[_Known]) -> Decision | None:
    """DELETE of what is taken back, None where nothing says it."""
    best: tuple[float, _Known] | None = None
    for one in known:
        score = _takes_back(said, one.said)
        if score and (best is None or score > best[0]):
            best = (score, one)
    if best is None:
        return None
    score, one = best
    op = MemoryOp.delete(one.item.id)
    if not one.whole:
        op = MemoryOp.update(one.item.id, _taken_out(one))
    elif one.said.statement and not _says_only(one.said):
        return None
    return Decision(op, reason("retract", one.said.text, quoted=True), min(1.0, score))


def _forget(text: str, known: Sequence[_Known]) -> Decision:
    """DELETE of what says, or is about, what is to be forgotten."""
    reported = reported_topic(text)
    topic = reported or text
    said = _understand(topic)
    # Words in common tell less of a topic, which is short, than of a whole sentence.
    if (said.statement or not reported) and (found := _retract(said, known)):
        return found
    scores = [_tells_of(topic, said, one.said) for one in known]
    best = max(scores, default=0.0)
    if not best:
        return Decision(MemoryOp.none(), reason("nothing_to_forget", text))
    one = known[scores.index(best)]  # of equal ones the most similar
    op = MemoryOp.delete(one.item.id)
    if not one.whole:
        op = MemoryOp.update(one.item.id, _taken_out(one))
    return Decision(op, reason("forget", one.said.text, quoted=True), best)


def _tells_of(topic: str, said: _Said, known: _Said) -> float:
    """How surely an item tells of the topic where `_retract` does not see it; 0: it does not."""
    if said.statement is None:
        return about(topic, known.text)
    # It names its value: an item without it is not meant, nor one that was understood and compared.
    compared = known.statement is not None and said.statement.same_slot(known.statement)
    value = wording(said.statement.value)
    if compared or not value.terms | value.numbers or known.wording.negated != said.wording.negated:
        return 0.0
    named = value.terms <= known.wording.terms and value.numbers <= known.wording.numbers
    return 0.7 if named and is_whose(said.statement.subject, known.text) else 0.0


def _taken_out(known: _Known) -> str:
    """The item's text without the clause."""
    text, parts, number = known.item.text, known.clauses, known.number
    if number == 0:
        return parts[1].said + text[parts[1].end :]
    return text[: parts[number - 1].end] + text[parts[number].end :]


def _takes_back(said: _Said, known: _Said) -> float:
    """How surely the item is what is taken back, 0 where it is not."""
    ours, theirs = said.statement, known.statement
    if ours and theirs:
        if not ours.same_subject(theirs):
            return 0.0
        if ours.same_slot(theirs) and theirs.positive:
            if ours.same_value(theirs):
                return 1.0
            # "cats and dogs" says more than is taken back with "cats": deleting would lose it.
            whole = not _LIST.search(theirs.value)
            inner, outer = sorted((plain(ours.value), plain(theirs.value)), key=len)
            return 0.9 if whole and inner in outer else 0.0
    if same_text(said.text, known.text):
        return 1.0
    words = (said.wording.terms | said.wording.numbers) - _ENDING_WORDS
    if not words or ((ours is None) != (theirs is None) and ours and ours.ended):
        return 0.0
    if said.wording.numbers - known.wording.numbers:
        return 0.0
    covered = len(words & (known.wording.terms | known.wording.numbers)) / len(words)
    return covered * 0.9 if covered >= RETRACTION_OVERLAP else 0.0


def _replacement(fact: Fact, said: _Said, known: Sequence[_Known]) -> Decision | None:
    """UPDATE of what the fact itself says it replaces: "switched from tea to coffee"."""
    ours = said.statement
    if ours is None or not ours.instead_of:
        return None
    mine = [
        one
        for one in known
        if (theirs := one.said.statement)
        and theirs.positive
        and theirs.same_subject(ours)
        and (
            (ours.slot in ("*", theirs.slot) and plain(theirs.value) == plain(ours.instead_of))
            if ours.instead_of != "*"
            else theirs.slot == ours.slot
        )
    ]
    # Of several hobbies the words do not tell which was given up.
    return _rewrite(fact, said, mine[0], reason("changed", fact.text)) if len(mine) == 1 else None


def _duplicate(fact: Fact, said: _Said, known: _Known) -> Decision | None:
    """NONE for what an item says already, word for word or in its sense."""
    if same_text(said.text, known.said.text) or same_text(said.text, known.item.text):
        return _already(known)
    if (
        _same_sense(said, known.said)
        and _content(said) <= _content(known.said) | known.said.wording.terms
        and said.wording.numbers <= known.said.wording.numbers
    ):
        return _already(known)
    return None


def _already(known: _Known) -> Decision:
    return Decision(MemoryOp.none(known.item.id), reason("same", known.item.text, quoted=True))


def _more_detail(fact: Fact, said: _Said, known: _Known) -> Decision | None:
    """UPDATE of an item that says the same with less."""
    if (
        _same_sense(said, known.said)
        and _content(known.said) < _content(said)
        and known.said.wording.numbers <= said.wording.numbers
    ):
        return _rewrite(fact, said, known, reason("more", fact.text))
    return None


def _same_sense(first: _Said, second: _Said) -> bool:
    """Whether both state the same value of the same property, or both deny it."""
    ours, theirs = first.statement, second.statement
    return bool(
        ours
        and theirs
        and ours.same_slot(theirs)
        and ours.same_value(theirs)
        and ours.positive == theirs.positive
    )


def _content(said: _Said) -> frozenset[str]:
    """The words of the subject, the value and the rest, without the verb that joins them."""
    if said.statement is None:
        return said.wording.terms
    of = said.statement
    return wording(of.subject).terms | wording(of.value).terms | wording(of.rest).terms


def _same_slot(fact: Fact, said: _Said, known: _Known) -> Decision | None:
    """UPDATE of the item that has another value of the same single-valued property."""
    ours, theirs = said.statement, known.said.statement
    if not (ours and theirs and ours.same_slot(theirs) and ours.single_valued):
        return None
    if not theirs.positive and not ours.positive:
        return None
    if ours.positive == theirs.positive:
        fewer = said.wording.numbers <= known.said.wording.numbers
        if _tells_more(theirs, ours) and fewer and _says_only(said):
            return Decision(
                MemoryOp.none(known.item.id),
                reason("detail", known.item.text, quoted=True),
            )
        if _is_older(fact, known.item.valid_from):
            return Decision(
                MemoryOp.add(fact.text), reason("before", known.item.text, quoted=True), 0.7
            )
    elif not ours.same_value(theirs):
        return None
    slot = ours.slot.removeprefix("attribute:")
    return _rewrite(
        fact,
        said,
        known,
        f"{ours.subject}有了新的说法，由{theirs.value}改为{ours.value}"
        if is_chinese(fact.text)
        else f"{ours.subject} has a new {slot}, {ours.value} instead of {theirs.value}",
    )


def _contradiction(fact: Fact, said: _Said, known: _Known) -> Decision | None:
    """UPDATE of an item that says the contrary."""
    ours, theirs = said.statement, known.said.statement
    contrary = reason("contrary", fact.text)
    if ours and theirs:
        if not ours.same_subject(theirs):
            return None
        opposed = ours.positive != theirs.positive
        if opposed and ours.slot == theirs.slot and ours.same_value(theirs):
            return _rewrite(fact, said, known, contrary)
        quit_ = ours.slot == "habit" and not ours.positive and theirs.slot in _HABITS
        if opposed and quit_ and wording(ours.value).terms == wording(theirs.value).terms:
            return _rewrite(fact, said, known, contrary)
        if ours.slot != theirs.slot:
            return None
    mine, its = said.wording, known.said.wording
    if mine.negated != its.negated and mine.terms == its.terms and mine.numbers == its.numbers:
        return _rewrite(fact, said, known, contrary)
    return None


def _announced_change(fact: Fact, said: _Said, known: _Known) -> Decision | None:
    """UPDATE where the fact itself says that something changed, and the item is what changed."""
    if not said.wording.changed:
        return None
    ours, theirs = said.statement, known.said.statement
    if ours and theirs and not ours.same_subject(theirs):
        return None
    subject = fact.subject or (ours.subject if ours else "")
    if subject and plain(subject) not in plain(known.item.text):
        return None
    same_property = bool(ours and theirs and ours.same_slot(theirs) and ours.slot in _CHANGEABLE)
    if not same_property:
        # "Now" alone says little: "Now Ann wants to help" changes nothing that Ann wanted.
        mine, its = _without(said.wording, subject), _without(known.said.wording, subject)
        shared = (mine.terms & its.terms) - _CALENDAR
        same_day = _CALENDAR | mine.numbers & its.numbers
        mine, its = _less(mine, same_day), _less(its, same_day)
        overlap = agreement(mine, its)
        if not said.wording.changed_to or len(shared) < 2 or overlap < STRONG_OVERLAP:
            return None
    return _rewrite(fact, said, known, reason("changed", fact.text))


def _less(wording_: Wording, words: frozenset[str]) -> Wording:
    return replace(wording_, terms=wording_.terms - words, numbers=wording_.numbers - words)


def _without(wording_: Wording, subject: str) -> Wording:
    """The wording without the subject's own words, which say nothing about the property."""
    own = wording(subject).terms
    return replace(wording_, terms=wording_.terms - own)


def _rewrite(fact: Fact, said: _Said, known: _Known, why: str) -> Decision:
    """UPDATE of the item, or of the clause in it; ADD where that would lose what else it says."""
    if not _says_only(known.said) and not _content(known.said) <= _content(said):
        return Decision(
            MemoryOp.add(fact.text), reason("beside_clause", known.item.text, quoted=True), 0.6
        )
    text = fact.text
    if not known.whole:
        clause, whole = known.clauses[known.number], known.item.text
        ending = whole[clause.end :]
        text = whole[: clause.start] + fact.text.rstrip(" .!。！" if ending else "") + ending
    why += ("：" if is_chinese(fact.text) else ": ") + known.said.text
    return Decision(MemoryOp.update(known.item.id, text), why, 0.8)


def _says_only(said: _Said) -> bool:
    """Whether the text says its statement and nothing else that could be lost."""
    if said.statement is None:
        return True
    rest = said.statement.rest
    if said.statement.slot not in _NAMING and _COMMENT.match(rest):
        return True
    return wording(rest).terms <= wording(said.statement.subject).terms


def _tells_more(more: Statement, less: Statement) -> bool:
    """Whether the first value holds the second as its beginning or end: `Boston, Massachusetts`."""
    longer, shorter = plain(more.value), plain(less.value)
    if shorter.isdigit() or (longer[: len(shorter) + 1][-1:].isdigit() and shorter[-1:].isdigit()):
        return False
    return len(longer) > len(shorter) >= 2 and longer.startswith(shorter)


def _is_older(fact: Fact, since: datetime | None) -> bool:
    """Whether the fact tells of a time before an item that is known to be true since then.

    What is told later is news, also when it happened a little earlier: "I moved to Denver last
    week" replaces what was said of Boston yesterday, "I moved to Denver in 1999" does not.
    """
    told = fact.told_at or fact.valid_from
    if since is None or told is None:
        return False
    happened = fact.valid_from or told
    return _aware(told) < _aware(since) - AT_ONCE or _aware(happened) < _aware(since) - RECENT


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
