"""The manager that needs no model: it compares what the fact and each item say.

Words decide. Embeddings only choose and order the items to compare with: they put "Rex is 4" and
"Rex is 5" on nearly the same spot, and their scales differ. What an item says already changes
nothing; a new value of a single-valued property, or the contrary of the old one, rewrites the item;
what ended or is to be forgotten is taken out; all else is added. It sees changes only where both
sentences have a plain form; whoever wants more has the trained manager.

Invariants: nothing that an item says besides, or that was only commented on, disappears; texts that
differ in a number, a name or a negation are never called duplicates
(`tests/memory/test_manager_rules.py`, with tables of cases in both languages).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from memograd.memory.language import is_chinese, simplified
from memograd.memory.manager.cues import comparable
from memograd.memory.manager.past import is_list, left_of, parts_of, stands_alone, stems
from memograd.memory.reader.fact import Fact
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, reason
from memograd.memory.statements import (
    Statement,
    Wording,
    parse_statement,
    property_words,
    same_text,
    wording,
)
from memograd.memory.statements.statement import plain
from memograd.memory.text_caches import of_texts

if TYPE_CHECKING:
    from memograd.memory.search import Hit, Query
    from memograd.memory.state import MemoryState

_FRAME: Final = re.compile(r"^[\w' ]{1,30} said: |^[^，。：]{1,12}说：")
_LIST: Final = re.compile(r",|\band\b|、|，|和|与|以及")
AT_ONCE: Final = timedelta(minutes=1)  # writers side by side commit in any order
RECENT: Final = timedelta(days=31)  # what happened that long before may still be news
COVERED: Final = 0.6  # share of the words of what is to be forgotten that an item must have
BY_PROPERTY: Final = 0.6  # how sure an item is that only tells such a thing

# Many-valued properties of which a "now" or "instead" still replaces the one remembered value.
_CHANGEABLE = frozenset({"prefers", "drives", "uses", "studies", "drinks", "plays"})
# "Ann lives in Rome. It's lovely" is true of the old value only, "The dog is called Rex. It is 3"
# of the subject, whatever its name.
_COMMENT = re.compile(
    r"(?:(?:and|but|so) )?(?:it|that|this|there|the days|time|life)\b|[它这那]", re.IGNORECASE
)
_NAMING = frozenset({"name", "called", "age", "birthday", "gender", "height", "weight", "has"})
# What a topic is named with and no item need say: "what Ann said about which gym she goes to".
_LITTLE: Final = wording(
    "user go get keep have what which where who whom how when why name be do use like say tell"
    " fact thing about whole old for longer anymore"
).terms | {"goe", "doe", "can"}
_NAME: Final = re.compile(
    r"\b(?!(?:I|Wh\w+|How|The|That|A|An|In|On|At|From|Against|To|For)\b)[A-Z]\w+"
)


@dataclass(frozen=True, slots=True)
class _Said:
    """A text, without "User said:" before it, and what was understood of it."""

    text: str
    statement: Statement | None
    wording: Wording


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
    known = [(item, _understand(item.text)) for item in items]
    if fact.retracts:
        gone = _taken_back(fact, said, known)
        return gone or Decision(MemoryOp.none(), reason("nothing_to_forget", fact.text))
    if said.statement is not None and said.statement.ended:
        stated = [(item, one) for item, one in known if one.statement is not None]
        if ended := _taken_back(fact, said, stated):
            return ended
    for item, one in known:
        if _says_already(one, said):
            return Decision(MemoryOp.none(item.id), reason("same", item.text, quoted=True))
    beside: Decision | None = None
    for item, one in known:
        decision = _new_value(fact, said, item, one)
        if decision is not None and decision.op.item_id is not None:
            return decision
        beside = beside or decision  # this item must stay, another may still give way
    return beside or Decision(MemoryOp.add(fact.text), reason("new", fact.text))


@of_texts
@lru_cache(maxsize=2_048)  # every message is compared with the same items again
def _understand(text: str) -> _Said:
    bare = _FRAME.sub("", text)
    return _Said(bare, parse_statement(bare), wording(bare))


def _says_already(known: _Said, said: _Said) -> bool:
    """Whether the first says all of the second, word for word or in its sense."""
    if same_text(said.text, known.text):
        return True
    ours, theirs = said.statement, known.statement
    return bool(
        ours
        and theirs
        and ours.same_slot(theirs)
        and ours.same_value(theirs)
        and ours.positive == theirs.positive
        and _content(said, ours) <= _content(known, theirs) | known.wording.terms
        and said.wording.numbers <= known.wording.numbers
    )


def _content(said: _Said, of: Statement) -> frozenset[str]:
    """The words of the subject, the value and the rest, without the verb that joins them."""
    return wording(of.subject).terms | wording(of.value).terms | wording(of.rest).terms


def _new_value(fact: Fact, said: _Said, item: MemoryItem, known: _Said) -> Decision | None:
    """UPDATE of an item whose property has another value now, or of which the contrary is true.

    ADD where the item must stay: it tells of later times, or of something else besides.
    """
    ours, theirs = said.statement, known.statement
    if not (ours and theirs and ours.same_slot(theirs)):
        return None
    opposed = ours.positive != theirs.positive
    if opposed and not ours.same_value(theirs):
        return None
    if not opposed:
        replaces = ours.single_valued or (said.wording.changed and ours.slot in _CHANGEABLE)
        if not (replaces and ours.positive):
            return None
        if _tells_more(theirs, ours) and said.wording.numbers <= known.wording.numbers:
            return Decision(MemoryOp.none(item.id), reason("detail", item.text, quoted=True))
        if not comparable(known.text, said.text):
            return None  # "lives in Boston" and "lives in a small apartment": a comment
        if _is_older(fact, item.valid_from):
            return Decision(MemoryOp.add(fact.text), reason("before", item.text, quoted=True), 0.7)
    if not _says_only(known, theirs) and not _content(known, theirs) <= _content(said, ours):
        why = reason("beside_clause", item.text, quoted=True)
        return Decision(MemoryOp.add(fact.text), why, 0.6)
    chinese = is_chinese(fact.text)
    if opposed:
        why = reason("contrary", fact.text)
    elif chinese:
        why = f"{ours.subject}有了新的说法，由{theirs.value}改为{ours.value}"
    else:
        slot = ours.slot.removeprefix("attribute:")
        why = f"{ours.subject} has a new {slot}, {ours.value} instead of {theirs.value}"
    why += ("：" if chinese else ": ") + item.text
    return Decision(MemoryOp.update(item.id, fact.text), why, 0.8)


def _says_only(said: _Said, statement: Statement) -> bool:
    """Whether the text says its statement and nothing else that could be lost."""
    if statement.slot not in _NAMING and _COMMENT.match(statement.rest):
        return True
    return wording(statement.rest).terms <= wording(statement.subject).terms


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


def _taken_back(
    fact: Fact, said: _Said, known: Sequence[tuple[MemoryItem, _Said]]
) -> Decision | None:
    """DELETE of what ended or is to be forgotten, or UPDATE to what else its item says."""
    scores = [_meant(said, one) for _, one in known]
    best = max(scores, default=0.0)
    if not best:
        return None
    item, one = known[scores.index(best)]  # of equal ones the most similar
    why = reason("forget" if fact.forget else "retract", item.text, quoted=True)
    parts = parts_of(item.text)
    if len(parts) > 1 and is_list(parts):
        shared = [len(stems(said.text) & stems(part)) for part, _ in parts]
        stay = [n for n, count in enumerate(shared) if count < max(shared)]
        if len(stay) == len(parts) - 1 and all(stands_alone(item.text, parts[n][0]) for n in stay):
            return Decision(MemoryOp.update(item.id, left_of(item.text, parts, stay)), why, best)
    if not fact.forget and one.statement and not _says_only(one, one.statement):
        return None  # it ended, but what else the item says did not
    return Decision(MemoryOp.delete(item.id), why, best)


def _meant(said: _Said, known: _Said) -> float:
    """How surely an item is what is taken back, 0 where it is not."""
    ours, theirs = said.statement, known.statement
    if ours and theirs:
        if not ours.same_subject(theirs):
            return 0.0
        if ours.slot == theirs.slot and theirs.positive:
            if ours.same_value(theirs):
                return 1.0
            # "cats and dogs" says more than is taken back with "cats": deleting would lose it.
            whole = not _LIST.search(theirs.value)
            inner, outer = sorted((plain(ours.value), plain(theirs.value)), key=len)
            return 0.9 if whole and inner in outer else 0.0
    if same_text(said.text, known.text):
        return 1.0
    topic, text = simplified(said.text), simplified(known.text)
    if is_chinese(topic) != is_chinese(text) or said.wording.numbers - known.wording.numbers:
        return 0.0
    owner, owned, _ = topic.rpartition("的" if is_chinese(topic) else "'s ")
    named = [plain(owner)] if is_chinese(topic) else [plain(n) for n in _NAME.findall(topic)]
    if not all(name in plain(text) for name in named):
        return 0.0
    words = said.wording.terms - _LITTLE
    covered = len(words & known.wording.terms) / len(words) if words else 0.0
    if covered >= COVERED and said.wording.negated == known.wording.negated:
        return 0.9 * covered
    if ours or not theirs:
        return 0.0
    # "User's address" is not the one of User's sister, who is another subject.
    subject = plain(theirs.subject)
    whose = plain(owner) == subject if owned else subject in plain(topic)
    told = property_words(known.text).removeprefix(theirs.subject).split()
    asked = topic if is_chinese(topic) else re.findall(r"\w+", topic.casefold())
    return BY_PROPERTY if whose and any(word in asked for word in told) else 0.0
