"""The value that a message gives anew: which item has another one, and the item with this one.

**By the way**: "that's six times now that I've worn them". In the row of a long message and many
items the model hardly sees it. So words propose the item, by a value of the same type that counts
the same and by what both speak of, and whoever knows how alike a sentence and an item are (the
model, asked of these two alone) decides.

**Put in its place**: "wait, 580" makes "User's room is 580." of "User's room is 508." The model
points at both values; where it is not sure, rules find them (`substitution.py`), if they find what
it points at.

Invariants: no item is named that shares less than `SHARED` content words with a sentence, or no
value; of an item in which a value is put nothing else changes. Pure but for what the model says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.counted import counted_anew, of_one_unit
from memograd.memory.manager.cues import ANSWERED, CORRECTS, is_elliptic
from memograd.memory.manager.denied_value import named_right, names_the_old
from memograd.memory.manager.fitted import put, redated
from memograd.memory.manager.past import parts_of, present, shared_content
from memograd.memory.manager.substitution import (
    bare_value,
    corrected,
    put_in_place,
)
from memograd.memory.reader.fact import Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.notes import is_past
from memograd.memory.statements.value_types import NEGATED, STAYS, TYPES, of_one_type

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel
    from memograd.memory.relations.values import OtherValue

_NUMBER: Final = re.compile(r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten)\b", re.I)
_COUNTED_WHAT: Final = (
    r"(?P<what>(?!(?:times|hours|hrs|days|weeks|months|years|mins|minutes|pounds|dollars|euros"
    r"|bucks|kilos|degrees|percent|yes|this|always|was|is|as)\b)[a-z]{3,}s)\b"
)
_COUNTED: Final = re.compile(f" {_COUNTED_WHAT}", re.IGNORECASE)
_BEGINS_COUNTING: Final = re.compile(rf"\W*(?:{_NUMBER.pattern})\d* {_COUNTED_WHAT}", re.IGNORECASE)
"""Says how many of something there are: "two girls" gives no other age for "turning 6"."""
_ASKS_ABOUT: Final = re.compile(
    r"\W*(?:(?:and|so|but) )?(?:is|was|isn['’]?t|does|would|will|can) (?:that|this|it)\b",
    re.IGNORECASE,
)
_WISHED: Final = re.compile(
    r"\b(?:wanted|wish(?:ed)?|hoped for|nearly|almost"
    r"|(?:should|could|would)(?:['’]?ve| have)(?: \w+)?) (?:\w+ ){0,2}$"
    r"|(?:本来想|原本想|早知道|应该[选叫学买]|差点)[\u4e00-\u9fff]{0,3}$",
    re.IGNORECASE,
)
"""Before a value that is only wished: "i wanted Rex", "maybe i should've picked Spanish"."""
_WORD: Final = re.compile(r"[A-Za-z\d][\w'’-]*|[\u4e00-\u9fff]")
_SHOUTED: Final = re.compile(r"(?<![\w-])[A-Z]{5,}(?![\w-])")  # "it's a CLARINET", which is no name
_NO_VALUE: Final = re.compile(
    r"(?:only|just|now|not|no|yes|sorry|actually|it|that|this|one|really|too|also|again|then|here"
    r"|there|is|was|are|so|and|but|mean|meant|them|they|he|him|she|her|we|us|you|me|i)",
    re.IGNORECASE,
)
_NO_OLD_VALUE: Final = re.compile(
    r"(?:to|of|for|with|by|as|the|an?|and|or|that|is|are|was|were|their|user)", re.IGNORECASE
)
"""Words of an item that are nobody's value: no "them" takes the place of "to"."""
# How surely the model must point at two values, for what is made of them:
POINTED: Final = 0.2  # from here on it is right nine times in ten
POINTED_IN_PART: Final = 0.35  # one of several things that an item says
POINTED_AMONG_MANY: Final = 0.5  # "141" is always like some number of another message
POINTED_AT_ALL: Final = 0.05  # where words and the model have found the item already
BARE_LENGTH: Final = 8  # characters of a Chinese message that may be nothing but a value
SHARED: Final = 2  # content words of a sentence and an item that may tell of the same thing
ALIKE: Final = 0.6  # probability that a sentence says an item again or closes it
ALIKE_SPELT: Final = 0.6
SHARED_MUCH: Final = 4  # where no rule can tell which of several values is another one,
ALIKE_MUCH: Final = 0.8  # and the model points at one


def of_other_value(
    heard: Heard,
    items: Sequence[MemoryItem],
    alike: Callable[[str, str], float],
    points: Callable[[str, str], float],
) -> frozenset[str]:
    """Ids of the items of which a fact of the message gives another value.

    alike: probability that a sentence says an item's text again or closes it. points: how surely
    the model points at another value that the sentence gives.
    """
    found = set()
    for item in items:
        if is_past(item.text) or item.role == "assistant":
            continue
        old = present(item.text)
        for quote in heard.quotes:
            shared = shared_content(old, quote)
            if shared < SHARED or not of_one_unit(old, quote):
                continue
            if corrected(old, quote) is not None:
                other = alike(quote, old) >= ALIKE
            else:
                other = (
                    shared >= SHARED_MUCH
                    and _NUMBER.search(quote) is not None
                    and alike(quote, old) >= ALIKE_MUCH
                    and points(quote, old) >= POINTED_IN_PART
                )
            if other:
                found.add(item.id)
    return frozenset(found)


@dataclass(frozen=True)
class Put:
    """text: the item with the value. new, old: what the message says and what stood there, empty
    where only rules found it. typed: it is a value of the same type, or one that the model points
    at. agreed: rules found it."""

    text: str
    new: str = ""
    old: str = ""
    typed: bool = True
    agreed: bool = True

    def tells(self, quote: str) -> bool:
        """Whether a sentence of the message says the value, or hardly more than the old one."""
        if not self.new:
            return False
        quote = quote.casefold()
        return self.new.casefold() in quote or (
            self.old.casefold() in quote and len(quote) < len(self.old) + _HARDLY_MORE
        )


def goes_on_about(heard: Heard, old: str) -> bool:
    """Whether a message may correct without a word that says so what was told last: nothing else
    was said in between, and no assistant's question is answered.

    "Mash. Right." behind a question about pies says nothing of a home town.
    """
    if CORRECTS.search(heard.own) or names_the_old(old, heard.own):
        return True
    who, said = heard.before[-1] if heard.before else ("", "")
    answers = who == "assistant" and said.rstrip().endswith(("?", "？"))
    return not answers and is_of_last(heard, old)


def is_of_last(heard: Heard, old: str) -> bool:
    """Whether the user's last message told an item, or this one has a word of it."""
    last = next((text for who, text in reversed(heard.before) if who == "user"), None)
    return last is None or shared_content(old, last) > 0 or shared_content(old, heard.own) > 0


def is_alike(old: str, new: str) -> bool:
    """Whether what stands in `new` instead is a number for a number, or another spelling."""
    gone, come = (
        " ".join(word for word in _WORD.findall(one) if word not in other)
        for one, other in ((old, new), (new, old))
    )
    if _NUMBER.search(gone) and _NUMBER.search(come):
        return True
    return SequenceMatcher(None, gone.casefold(), come.casefold()).ratio() >= ALIKE_SPELT


def with_value(
    model: RelationModel, heard: Heard, old: str, *, just_told: bool, relation: str
) -> Put | None:
    """The item `old` with the value that the message gives instead; None where that is in doubt.

    just_told: the item is of the message before. relation: of the message to it.
    """
    found = _with_value(model, heard, old, just_told=just_told, relation=relation)
    return None if found is None else replace(found, text=redated(found.text, old, heard.day))


def _with_value(
    model: RelationModel, heard: Heard, old: str, *, just_told: bool, relation: str
) -> Put | None:
    own = heard.own
    if _ASKS_ABOUT.match(own):
        return None  # "is that early for 13"
    counting = _BEGINS_COUNTING.match(own)
    if counting and counting["what"].casefold() not in old.casefold() and not of_one_unit(old, own):
        return None
    sounds = CORRECTS.search(own) is not None
    told = sounds or (just_told and relation == "correct")
    value = corrected(old, own)
    if not told and (value is None or not is_elliptic(own, old)):
        return None
    if told and (counted := counted_anew(old, own)) is not None:
        return Put(*counted)
    found = pointed_at(model, heard, old)
    unsure = found is not None and found.sure < POINTED_IN_PART and not (sounds or is_chinese(own))
    if found is not None and unsure and _goes_on_about(old[slice(*found.old)], own):
        return None  # "Manila has work. Iloilo is boring": who goes on about a value keeps it
    named = named_right(old, own) if told else None
    if named is not None and found is not None and not _agree(found, named):
        # "2019 not 2009. and yeah gauge says 0.6": it says itself which value takes which place.
        return Put(named)
    # "Just looked, it's Stansted": where it says one value alone, that is the one.
    bare = sounds and found is not None and (bare_value(own) or "").endswith(found.new)
    if told and found is not None and found.sure >= (POINTED_AT_ALL if bare else POINTED):
        return _put_where(found, old, agreed=_agree(found, value))
    if value is not None:
        return _by_rules(found, old, value, typed=True)
    short = not is_chinese(own) or len(own) <= BARE_LENGTH
    if just_told and relation == "correct" and (sounds or short):
        value = put_in_place(old, own, model.likeness)
        return None if value is None else _by_rules(found, old, value, typed=False)
    return None


def _by_rules(found: OtherValue | None, old: str, value: str, *, typed: bool) -> Put | None:
    """What rules have put, of which the model, unsure, may know better where; None where it points
    at something else."""
    if found is None:
        return Put(value, typed=typed)
    if not _agree(found, value):
        # "2011 is NYSC, I graduated in 2010": no number becomes a word.
        numbers = [TYPES[-2].fullmatch(said) for said in (old[slice(*found.old)], found.new)]
        return Put(value, typed=typed) if typed and numbers[0] and not numbers[1] else None
    put_there = _put_where(found, old, typed=typed)
    elsewhere = put_there.old in value and found.sure >= POINTED_AT_ALL
    return put_there if elsewhere else replace(put_there, text=value)


def _put_where(found: OtherValue, old: str, *, typed: bool = True, agreed: bool = True) -> Put:
    text = put(old, found.old, found.new)
    return Put(text, found.new, old[slice(*found.old)], typed, agreed)


def _agree(found: OtherValue, text: str | None) -> bool:
    """Whether rules have put the value that the model points at, wherever they have put it."""
    return text is not None and found.new.casefold() in text.casefold()


def pointed_at(
    model: RelationModel, heard: Heard, old: str, said: str | None = None
) -> OtherValue | None:
    """The two values that the model points at, None where they are of two types.

    said: the part of the message that gives the value; None: all of it, with what came before.
    """
    if ANSWERED.match(old):
        return None
    own, before = (heard.own, heard.before) if said is None else (said, ())
    found = model.other_value(_SHOUTED.sub(lambda m: m[0].lower(), own), before, old)
    if found is None or not of_one_type(old[slice(*found.old)], found.new):
        return None
    if _NO_VALUE.fullmatch(found.new) or _NO_OLD_VALUE.fullmatch(old[slice(*found.old)]):
        return None
    if _counts_others(found, old, own):
        return None
    if found.new.rstrip("s") == old[slice(*found.old)].rstrip("s") and found.new.islower():
        return None  # "night trains, honestly" says nothing of one night train
    if _stays(old[slice(*found.old)], own) or _denied(found.new, own) or _wished(found.new, own):
        return None
    if re.search(rf"{re.escape(found.new)} ones?\b", own):
        return None  # "the Australian one" points at a value and is none
    return found


def _counts_others(found: OtherValue, old: str, own: str) -> bool:
    """Whether a number counts what the item's number does not: "two girls" beside "turning 6"."""
    if not (_NUMBER.search(found.new) and _NUMBER.search(old[slice(*found.old)])):
        return False
    ends = [end for _, end in _places(found.new, own)]
    counted = _COUNTED.match(own, ends[-1]) if ends else None
    bare = re.match(r"\W*$|[.,;]", old[found.old.end :]) is not None
    return counted is not None and bare and counted["what"].casefold() not in old.casefold()


def _stays(value: str, message: str) -> bool:
    """Whether a message says that a value is right: "14 tables, 80 is correct"."""
    return any(STAYS.match(message[end:]) for _, end in _places(value, message))


def _denied(value: str, message: str) -> bool:
    """Whether it only says what is not so: the second one of "'74, not '84"."""
    places = _places(value, message)
    return bool(places) and all(NEGATED.search(message[:start]) for start, _ in places)


def _goes_on_about(name: str, message: str) -> bool:
    """Whether a message tells something of the name that stood there: "Iloilo is boring"."""
    told = rf"(?<!\w){re.escape(name)} (?:is|are|has|was|stays|remains)\b"
    return name[:1].isupper() and re.search(told, message) is not None


def _wished(value: str, message: str) -> bool:
    places = _places(value, message)
    return bool(places) and all(_WISHED.search(message[:start]) for start, _ in places)


def _places(value: str, message: str) -> list[tuple[int, int]]:
    edge = r"(?<!\w)", r"(?!\w)"
    whole = re.escape(value) if is_chinese(value) else re.escape(value).join(edge)
    return [found.span() for found in re.finditer(whole, message, re.IGNORECASE)]


def surely_pointed(model: RelationModel, heard: Heard, said: str, old: str) -> float:
    """How surely the model points at another value that a sentence of the message gives."""
    found = pointed_at(model, heard, old, said) if model.points else None
    return 0.0 if found is None else found.sure


def gives_other(
    model: RelationModel, heard: Heard, item: MemoryItem, *, few: bool, by_the_way: bool
) -> bool:
    """Whether the model points at another value of the item.

    few: hardly anything else lies near. by_the_way: `of_other_value` has named the item.
    """
    if by_the_way and not model.points:
        return True  # nobody knows better
    old = present(item.text)
    found = pointed_at(model, heard, old)
    bound = POINTED_AT_ALL if by_the_way else POINTED if few else POINTED_AMONG_MANY
    if found is not None and found.sure >= bound:
        return True
    # In the midst of a long message it is hardly seen, so the sentence is read by itself.
    return by_the_way and any(
        surely_pointed(model, heard, quote, old) >= bound
        for quote in heard.quotes
        if shared_content(old, quote) >= SHARED
    )


def gives_number(model: RelationModel, heard: Heard, item: MemoryItem) -> bool:
    """Whether a sentence of the message has another number for the only one of the item, and the
    model points at both: "the GP has put me up to 75" beside "takes 50 micrograms"."""
    old = present(item.text)
    for quote in heard.quotes:
        value = corrected(old, quote) if _NUMBER.search(quote) else None
        if value is None:
            continue
        found = pointed_at(model, heard, old, quote)
        if found is not None and found.sure >= POINTED_AT_ALL and _agree(found, value):
            return _NUMBER.search(old[slice(*found.old)]) is not None
    return False


def gives_surely(model: RelationModel, heard: Heard, old: str) -> bool:
    """Whether the model points at another value of an item that a message seems to take back."""
    found = pointed_at(model, heard, old)
    if found is None:
        return False
    bare = found.new == bare_value(heard.own)  # it says nothing else
    return found.sure >= (POINTED_AT_ALL if bare else POINTED)


_SCRATCHED: Final = re.compile(r"\W*(?:\w+\W+){0,2}(?:scratch|scrap|strike) that\b", re.IGNORECASE)


def scratches_for_another(model: RelationModel, heard: Heard, items: Sequence[MemoryItem]) -> bool:
    """Whether what sounds like a request to forget gives another value for what was just told:
    "scrap that, just checked the card: O negative"."""
    return _SCRATCHED.match(heard.own) is not None and any(
        gives_surely(model, heard, present(item.text)) for item in items
    )


def in_part(model: RelationModel, heard: Heard, old: str) -> str | None:
    """An item that says several things, with the one value that the message gives instead."""
    if len(parts_of(old)) < 2:
        return None
    found = pointed_at(model, heard, old)
    if found is None or found.sure < POINTED_IN_PART:
        return None
    return redated(put(old, found.old, found.new), old, heard.day)


_HARDLY_MORE: Final = 25  # characters: "Sligo, what am I saying"
