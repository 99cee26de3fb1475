"""The manager that needs no model: it compares what the fact and each item say.

Words decide. Embeddings only choose and order the items to compare with: they put "Rex is 4" and
"Rex is 5" on nearly the same spot, and their scales differ. In this order: what is taken back is
deleted; what is known already changes nothing; a new value of a single-valued property, a change
that says so ("now", "instead", 改成) or a contradiction rewrites the item; all else is added.

Invariant: texts that differ in a number, a name or a negation are never called duplicates
(`tests/memory/test_manager_rules.py`, with tables of cases in both languages).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memograd.memory.items import MemoryItem
from memograd.memory.manager.protocol import RelatedItem
from memograd.memory.operations import Decision, MemoryOp
from memograd.memory.reader.fact import Fact
from memograd.memory.statements import (
    Statement,
    Wording,
    agreement,
    language_of,
    parse_statement,
    same_text,
    wording,
)
from memograd.memory.statements.statement import plain

_LIST = re.compile(r",|\band\b|、|，|和|与|以及")
STRONG_OVERLAP = 0.5  # share of common content words from which a change can mean an item
RETRACTION_OVERLAP = 0.6  # share of the retracted words that an item must have


@dataclass(frozen=True, slots=True)
class _Said:
    """A text with what was understood of it."""

    text: str
    statement: Statement | None
    wording: Wording


@dataclass(frozen=True, slots=True)
class _Known:
    item: MemoryItem
    said: _Said


class RuleManager:
    """Decides by rules, in English and Chinese; the same input gives the same decision."""

    actor = "rules"

    def decide(self, fact: Fact, related: Sequence[RelatedItem]) -> Decision:
        """One operation with its reason; see `MemoryManager.decide`."""
        said = _understand(fact.text)
        known = [_Known(each.item, _understand(each.item.text)) for each in related]
        if fact.retracts:
            return _retract(said, known) or Decision(
                MemoryOp.none(), "Nothing remembered says what is to be forgotten."
            )
        ended = said.statement is not None and said.statement.ended
        if ended and not said.wording.changed_to and (deleted := _retract(said, known)):
            return deleted
        for rule in (_duplicate, _same_slot, _contradiction, _announced_change):
            for one in known:
                if decision := rule(fact, said, one):
                    return decision
        return Decision(MemoryOp.add(fact.text), "Nothing remembered says this yet.")


def _understand(text: str) -> _Said:
    return _Said(text, parse_statement(text), wording(text))


def _retract(said: _Said, known: Sequence[_Known]) -> Decision | None:
    """DELETE of the item that says what is taken back, None where none does."""
    best: tuple[float, _Known] | None = None
    for one in known:
        score = _takes_back(said, one.said)
        if score and (best is None or score > best[0]):
            best = (score, one)
    if best is None:
        return None
    return Decision(
        MemoryOp.delete(best[1].item.id), f"Taken back: {best[1].item.text}", min(1.0, best[0])
    )


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


_ENDING_WORDS = frozenset({"longer", "any", "mor", "anymor"})


def _duplicate(fact: Fact, said: _Said, known: _Known) -> Decision | None:
    """NONE for what an item says already."""
    if same_text(said.text, known.said.text):
        return Decision(MemoryOp.none(known.item.id), f"Already remembered: {known.item.text}")
    ours, theirs = said.statement, known.said.statement
    if (
        ours
        and theirs
        and ours.same_slot(theirs)
        and ours.same_value(theirs)
        and ours.positive == theirs.positive
        and said.wording.numbers <= known.said.wording.numbers
        and _says_only(said)
    ):
        return Decision(MemoryOp.none(known.item.id), f"Already remembered: {known.item.text}")
    return None


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
                f"Already remembered, in more detail: {known.item.text}",
            )
        if _is_older(fact.valid_from, known.item.valid_from):
            return Decision(
                MemoryOp.add(fact.text), f"Tells of a time before: {known.item.text}", 0.7
            )
    elif not ours.same_value(theirs):
        return None
    if not _says_only(known.said):
        return Decision(
            MemoryOp.add(fact.text), f"New, but this says other things too: {known.item.text}", 0.6
        )
    return Decision(
        MemoryOp.update(known.item.id, fact.text),
        f"{ours.subject} has a new {ours.slot.removeprefix('attribute:')}: {ours.value} instead of"
        f" {theirs.value}.",
    )


def _contradiction(fact: Fact, said: _Said, known: _Known) -> Decision | None:
    """UPDATE of an item that says the contrary."""
    ours, theirs = said.statement, known.said.statement
    if ours and theirs:
        if ours.same_slot(theirs) and ours.same_value(theirs) and ours.positive != theirs.positive:
            return _rewrite(fact, known, "The contrary was remembered")
        if ours.slot != theirs.slot or not ours.same_subject(theirs):
            return None
    mine, its = said.wording, known.said.wording
    if mine.negated != its.negated and mine.terms == its.terms and mine.numbers == its.numbers:
        return _rewrite(fact, known, "The contrary was remembered")
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
    mine, its = _without(said.wording, subject), _without(known.said.wording, subject)
    same_property = bool(ours and theirs and ours.same_slot(theirs) and ours.slot in _CHANGEABLE)
    if not same_property and agreement(mine, its) < STRONG_OVERLAP:
        return None
    return _rewrite(fact, known, "A change of what was remembered")


# Many-valued properties of which a "now" or "instead" still replaces the one remembered value.
_CHANGEABLE = frozenset({"prefers", "drives", "uses", "studies", "drinks", "plays"})


def _without(wording_: Wording, subject: str) -> Wording:
    """The wording without the subject's own words, which say nothing about the property."""
    own = wording(subject).terms
    return Wording(
        wording_.terms - own, wording_.numbers, wording_.negated, wording_.changed,
        wording_.changed_to,
    )  # fmt: skip


def _rewrite(fact: Fact, known: _Known, reason: str) -> Decision:
    return Decision(MemoryOp.update(known.item.id, fact.text), f"{reason}: {known.item.text}", 0.8)


def _says_only(said: _Said) -> bool:
    """Whether the text says its statement and hardly anything else that could be lost."""
    if said.statement is None:
        return False
    accounted = wording(said.statement.subject).terms | wording(said.statement.value).terms
    rest = said.wording.terms - accounted
    # Chinese words come as overlapping pairs of characters, some across the seams.
    return len(rest) <= (10 if language_of(said.text) == "zh" else 4)


def _tells_more(more: Statement, less: Statement) -> bool:
    """Whether the first value holds the second as its beginning or end: `Boston, Massachusetts`."""
    longer, shorter = plain(more.value), plain(less.value)
    if shorter.isdigit() or (longer[: len(shorter) + 1][-1:].isdigit() and shorter[-1:].isdigit()):
        return False
    return len(longer) > len(shorter) >= 2 and longer.startswith(shorter)


def _is_older(fact: datetime | None, item: datetime | None) -> bool:
    """Whether the fact tells of an earlier time; times without a zone are taken as UTC."""
    if fact is None or item is None:
        return False
    return _aware(fact) < _aware(item)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
