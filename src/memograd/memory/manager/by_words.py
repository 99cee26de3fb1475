"""What words alone tell of a message and the items: whether it may touch one of them.

Where the relation model's gate (`memory/relations/gate.py`) finds that a message closes nothing,
this decides whether the items are read all the same. Invariants: where nothing is touched, reading
the items as unrelated would change nothing either; where none of some items alone is touched,
nothing is touched of any of them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memograd.memory.manager.cues import ASIDE, CORRECTS, DENIED, DENIES, only_swaps
from memograd.memory.manager.past import present
from memograd.memory.manager.rules import decide_by_rules
from memograd.memory.reader.fact import Fact, Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.notes import is_past
from memograd.memory.records.operations import Decision, OpKind
from memograd.memory.statements import same_text, wording


def touches_by_words(heard: Heard, items: Sequence[MemoryItem]) -> bool:
    """Whether it asks to forget, denies or corrects, whether rules see a change, or whether an item
    may say the same already."""
    return _sounds_like_it(heard) or _tells_of(heard, items)


def may_touch_by_words(heard: Heard, items: Iterable[MemoryItem]) -> bool:
    """Whether `touches_by_words` could be true of some of these items."""
    return _sounds_like_it(heard) or any(_tells_of(heard, [item]) for item in items)


def _sounds_like_it(heard: Heard) -> bool:
    denies = CORRECTS.search(heard.own) or DENIES.search(heard.own)
    said = heard.forget or denies or DENIED.match(heard.own)
    return bool(said or only_swaps(heard.own))


def _tells_of(heard: Heard, items: Sequence[MemoryItem]) -> bool:
    return any(
        plain_change(fact, items) is not None
        or any(says_already(item, fact) or _may_say(item, fact) for item in items)
        for fact in heard.facts
    )


def _may_say(item: MemoryItem, fact: Fact) -> bool:
    return not is_past(item.text) and holds_all_of(item, fact)


def says_already(item: MemoryItem, fact: Fact) -> bool:
    """Whether the item says the fact in the same words."""
    return same_text(present(item.text), fact.text) and not is_past(item.text)


def plain_change(fact: Fact, items: Sequence[MemoryItem]) -> Decision | None:
    """What rules change in one of the items, None where they change nothing."""
    related = [replace(item, text=present(item.text)) for item in items if not is_past(item.text)]
    decision = decide_by_rules(replace(fact, text=ASIDE.sub("", fact.text)), related)
    return decision if decision.op.kind in (OpKind.UPDATE, OpKind.DELETE) else None


def holds_all_of(item: MemoryItem, fact: Fact) -> bool:
    """Whether the item has every number and every word of the fact, and denies as it does."""
    ours, its = wording(fact.text), wording(present(item.text))
    return ours.numbers <= its.numbers and ours.negated == its.negated and ours.terms <= its.terms
