"""What a request to forget takes away, as a trained model and the words of the request say it.

The model reads the request together with every part of the items near it ("User is 51", "User rents
in Leeds"), with what came before it and without: a request that names a topic ("what I earn") is
clearer alone, and one that points ("that last bit") is not. A part is hardly meant where its item
is not: fragments look so. The words count beside it: what the request names, and what it says is
to stay. Where neither finds enough, nothing is forgotten.

Invariants: a request that only points means nothing but what was just said; a part that the request
leaves stays readable; what is left of an item is made of its own words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from memograd.memory.language import is_chinese, simplified
from memograd.memory.manager.cues import ALL_SAID
from memograd.memory.manager.named import Topic, shares, topic_of
from memograd.memory.manager.past import (
    CHARACTERS,
    goes_on,
    is_readable,
    kept_in,
    left_of,
    named_in,
    not_present,
    parts_of,
    present,
    speaks_of,
    stands_alone,
    stems,
    with_subject,
)
from memograd.memory.manager.protocol import Change
from memograd.memory.manager.request_words import (
    OF_ASKING,
    TELLS,
    asking_of,
    asks_in_words,
    only_points,
    points_back,
    says_of,
)
from memograd.memory.manager.rules import decide_by_rules
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.forget import asked_for, request_to_forget, to_be_kept
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, OpKind, reason

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel, Thresholds

THE_PAST: Final = -1  # the place of what an item says was so before
APART: Final = 0.3  # by that much more surely than what was just said an older item is pointed at
POINTED_SHARE: Final = 0.5  # of the surest part, for other parts of an item that "it" points at
FEW_TO_FORGET: Final = 5  # so many items are few: what the model finds among them mostly is meant
VERY_SURE: Final = 0.85  # of one that only has whose a thing is, of what the request names
ALONE_SURE: Final = 0.6  # of one among many that has no word of what the request names
ALL_OF_NAME: Final = 0.1  # of "everything about Ann", where an item has the name
ALL_OF_THING: Final = 0.6  # and of "everything about the house"
APART_AMONG_MANY: Final = 0.15  # by that much more surely than any other
FRAGMENT: Final = 3  # words of a part that says something by itself, at least
NAMED: Final = 0.5  # what the words of a request add to the part that they name most
_JUST_SAID: Final = re.compile(
    r"这[句条段]|刚[才刚]|上一?[条句]|\blast (?:message|thing|bit|one|part)\b"
    r"|\bjust (?:said|told|wrote|now)\b|\b(?:a (?:moment|minute|second)|moments) ago\b",
    re.IGNORECASE,
)
_ALL_ABOUT: Final = re.compile(
    r"\b(?:everything|all|any|anything|nothing|whatever|whole|lot|every)\b|[都全]|所有|一切|任何|统统"
    r"|的事|[那这]些",
    re.IGNORECASE,
)
_ONE_THING: Final = re.compile(
    r"\b(?:that|the (?:last|whole)) (?:thing|story|bit|one|conversation)\b|[那这](?:件事"
    r"|[句段件条])",
    re.IGNORECASE,
)
_NAMES: Final = re.compile(r"(?<=\w )(?!User\b)[A-Z][a-z]{2,}")
_LEANS_BACK: Final = re.compile(
    r"(?:User said: )?(?:(?:(?:In|At|On|From) [^,]{2,25}, )?(?:and |but )?(?:s?he|it|they|his"
    r"|her|its|their)(?:['’]?s|['’]?d|['’]ll)?\b"
    r"|(?!.*\bUser\b)(?:[^\s:\u4e00-\u9fff]+ ){0,3}[^\s:\u4e00-\u9fff]+$)"
    r"|(?:用户说：)?(?:然后|而且|还说|说)?[他她它](?!们)",
    re.IGNORECASE,
)
_OPENS: Final = re.compile(
    r"(?:User said: )?(?:which|that) reminds User\W*|(?:Bro )?User (?:got|has"
    r"|needs) to tell you something\W*"
    r"|(?:Bro )?User did (?:one|a|something) (?:\w+ )?(?:stupid|silly|bad)(?: thing)?\W*"
    r"|(?:用户说：)?(?:跟|和|给)?你?[说讲]个?(?:秘密|事儿?)\W*",
    re.IGNORECASE,
)
_PRONOUN: Final = re.compile(r"(?:and |but )?(?:s?he|it|they)(?:['’]?s)?\b|[他她它]", re.IGNORECASE)
_SAYS_MORE: Final = re.compile("(?!.*用户)(?![小老阿])[\u4e00-\u9fff][^，。]{1,11}")
"""A Chinese clause that has no subject: 阿杰提离职了，做到6月底."""
_SECRET: Final = re.compile(
    r"\bpass(?:word|code|phrase)?\b(?! (?:me|the|on|out|by))|\bpin\b|密码|口令", re.I
)


@dataclass
class _Part:
    """A part of an item, `place` among its parts; `sure`: that the request means it. kept: it says
    that this is to stay. read, least: what the model says of it, of two readings the mean and the
    lower. share: how far it has what is named; near: a character of it; partly: only whose it is.
    """

    item: int
    place: int
    text: str
    sure: float = 0.0
    kept: bool = False
    read: float = 0.0
    least: float = 0.0
    share: float = 0.0
    near: bool = False
    partly: bool = False


def forgotten(
    model: RelationModel,
    sure: Thresholds,
    heard: Heard,
    items: Sequence[MemoryItem],
    recent: frozenset[str],
) -> list[Change]:
    """The changes that carry the request out: items forgotten, or rewritten without what it means.

    recent: ids of what was just said.
    """
    said = [item for item in items if item.id in recent]
    topic = topic_of(heard.own)
    in_words = asks_in_words(heard.own) or TELLS.search(heard.own) or topic.words
    points = bool(in_words and said) and only_points(heard)
    all_of_it = ALL_SAID.search(heard.own) and not topic.words
    if said and (all_of_it or (points and not says_of(heard.own))):
        return [_forgets(heard, item) for item in said]
    parts = _parts(model, heard, items, topic)
    if not in_words:  # "it must not sit in your drawers": nothing but the model says so
        for part in parts:
            part.sure = 0.0 if part.kept else part.read
        parts = _one_for_sure(parts)
    if topic.words and not points:
        parts = [part for part in parts if not topic.is_of_another(items[part.item].text)]
        parts = _spoken_of(heard, items, recent, parts)
    if points:  # "My history with food. Scratch it." means what was just said, or that surely
        most = max((part.sure for part in parts if items[part.item].id in recent), default=0.0)
        least = max(sure.close_above, most + APART)
        if _JUST_SAID.search(heard.own):
            least = float("inf")
        parts = [p for p in parts if items[p.item].id in recent or p.sure >= least]
    best = max((part.sure for part in parts), default=0.0)
    meant = [
        part
        for part in parts
        if part.sure >= sure.forget_above
        and part.sure >= sure.meant_share * best
        # "Erase the whiteboard" names what no item has: then no reading may see it otherwise.
        and (points or not topic.words or part.share or part.least >= sure.forget_above)
    ]
    if topic.words and not points:
        meant += _more_of_it(heard, parts, meant, sure)
    if points_back(asking_of(heard)):  # "bin it": it is the whole of it, unless parts differ
        around = {part.item for part in meant}
        around |= {n for n, item in enumerate(items) if item.id in recent}
        meant += [
            part
            for part in parts
            if part not in meant
            and part.item in around
            and part.sure >= sure.part_above
            and part.sure >= POINTED_SHARE * best
        ]
    if to_be_kept(heard.own):
        meant = _with_something_kept(parts, meant)
    if _names_what_was_not_kept(heard, [part.text for part in meant or parts]):
        return []
    if meant and _of_one_thing_told(heard, items, recent, meant):
        gone = [items[n] for n in dict.fromkeys(part.item for part in meant)]
        return [_forgets(heard, item) for item in [*gone, *_going_on(gone, items, parts)]]
    if meant:
        kept = [{p.place for p in parts if p.item == n and p.kept} for n in range(len(items))]
        changes = [
            _without(heard, items[n], {part.place for part in meant if part.item == n}, kept[n])
            for n in dict.fromkeys(part.item for part in meant)
        ]
        gone = [
            items[n]
            for n, change in zip(dict.fromkeys(p.item for p in meant), changes, strict=True)
            if change.decision.op.kind is OpKind.DELETE
            and any(p.share for p in meant if p.item == n)
        ]
        return changes + [_forgets(heard, item) for item in _going_on(gone, items, parts)]
    if points:
        return [_forgets(heard, item) for item in said]
    if not parts:
        return []
    by_form = request_to_forget(asked_for(heard.own))
    if by_form is not None:
        fact = replace(heard.as_fact, text=by_form[0], retracts=True, forget=True)
        decision = decide_by_rules(fact, items)
        if decision.op.kind is not OpKind.NONE:
            return [Change(decision, fact, hide=True)]
    return []


def _with_something_kept(parts: Sequence[_Part], meant: Sequence[_Part]) -> list[_Part]:
    """What a request means that also says what is to stay.

    Where that is another item, all of an item that is meant goes: of "my brother owes money, they
    rang me here" and "my shop sells incense", "the shop is fine" leaves nothing of the first. Where
    nothing has its words, what is meant least stays.
    """
    around = {part.item for part in meant}
    if any(part.kept for part in parts if part.item not in around):
        return [part for part in parts if part.item in around and not part.kept]
    found = list(meant)
    if len(found) == len(parts) > 1:
        found.remove(min(found, key=lambda part: part.sure))
    return found


def _spoken_of(
    heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str], parts: list[_Part]
) -> list[_Part]:
    """Of all parts those that a request which names something may mean.

    Where items have what it names, no others are meant: among many the model always finds some that
    look so. Where none has it, the model must be very sure of one against all others.
    """
    for part in parts:
        if part.partly and part.least < VERY_SURE:
            part.share = 0.0
    named = {part.item for part in parts if part.share}
    told = {n for n in named if items[n].id in recent}
    if told and _JUST_SAID.search(simplified(heard.own)):
        return [part for part in parts if part.item in told]
    if named and len(items) <= FEW_TO_FORGET:
        return parts
    if named:
        return [
            part
            for part in parts
            if part.item in named or (part.near and part.least >= POINTED_SHARE)
        ]
    if len(items) <= FEW_TO_FORGET:
        return parts
    just_told = [part for part in parts if items[part.item].id in recent]
    if any(part.least >= POINTED_SHARE for part in just_told):
        return just_told
    return _one_for_sure(parts)


def _one_for_sure(parts: Sequence[_Part]) -> list[_Part]:
    """The parts of the one item that the model is sure of, where it is of no other."""
    surest = max(parts, key=lambda part: part.read, default=None)
    if surest is None or surest.read < ALONE_SURE:
        return []
    others = max((part.read for part in parts if part.item != surest.item), default=0.0)
    alone = surest.read >= others + APART_AMONG_MANY
    return [part for part in parts if part.item == surest.item] if alone else []


def _of_one_thing_told(
    heard: Heard, items: Sequence[MemoryItem], recent: frozenset[str], meant: Sequence[_Part]
) -> bool:
    """Whether a request means a thing as it was just told, with all that was said of it: "that
    thing just now about the Elks"."""
    own = simplified(heard.own)
    told = _JUST_SAID.search(own) and _ONE_THING.search(own)
    named = any(part.share for part in meant)
    return bool(told) and all(
        (part.share or not named) and items[part.item].id in recent for part in meant
    )


def _going_on(
    gone: Sequence[MemoryItem], items: Sequence[MemoryItem], parts: Sequence[_Part]
) -> list[MemoryItem]:
    """The items that only go on about those that go: they were told in one breath, and say "he", or
    nothing that can be read by itself."""
    breaths = {item.sources[0] for item in gone if item.sources}
    named = {part.item for part in parts if part.share or part.kept}
    ids = {item.id for item in gone}
    return [
        item
        for n, item in enumerate(items)
        if item.id not in ids
        and n not in named
        and item.sources
        and item.sources[0] in breaths
        and _LEANS_BACK.match(item.text)
    ]


def _more_of_it(
    heard: Heard, parts: Sequence[_Part], meant: Sequence[_Part], sure: Thresholds
) -> list[_Part]:
    """What else goes with what is meant.

    "Everything about Nivetha" means all items that have her name, and what an item goes on to say
    of what goes from it goes too.
    """
    found = []
    stays = to_be_kept(heard.own)
    around = {part.item for part in meant if part.place != THE_PAST}
    items = {part.item for part in meant}
    all_of_it = _ALL_ABOUT.search(heard.own) is not None
    for part in parts:
        if part in meant or part.kept:
            continue
        if (
            all_of_it
            and part.near
            and not part.share
            and part.item not in items
            and part.least >= POINTED_SHARE
        ) or (all_of_it and part.share == 1.0 and part.read >= _least_of_all(part.text)):
            found.append(part)
        elif all_of_it and part.item in around and not part.share and not stays:
            most = max(one.read for one in meant if one.item == part.item)
            if part.read >= max(sure.forget_above, POINTED_SHARE * most):
                found.append(part)
    gone = {(part.item, part.place) for part in (*meant, *found) if part.share}
    for part in parts if all_of_it and not stays else ():
        behind = (part.item, part.place - 1) in gone and not part.share
        if behind and part not in (*meant, *found) and _SAYS_MORE.fullmatch(part.text):
            found.append(part)
            gone.add((part.item, part.place))
    return found


def _least_of_all(text: str) -> float:
    return ALL_OF_NAME if is_chinese(text) or _NAMES.search(text) else ALL_OF_THING


def _parts(
    model: RelationModel, heard: Heard, items: Sequence[MemoryItem], topic: Topic
) -> list[_Part]:
    """The parts of all items, with how surely the request means each."""
    from memograd.memory.relations import CLOSING, RELATIONS

    parts = [
        _Part(n, place, with_subject(item.text, text))
        for n, item in enumerate(items)
        for place, (text, _) in enumerate(parts_of(present(item.text)))
    ]
    parts += [
        _Part(n, THE_PAST, past) for n, item in enumerate(items) if (past := not_present(item.text))
    ]
    texts = [part.text for part in parts]
    wholes = [present(item.text) for item in items]
    closing = [RELATIONS.index(name) for name in CLOSING]
    read = [
        model.relate(heard.turn.text, before, texts)[:, closing].sum(1)
        for before in (heard.before, ())
    ]
    whole = [
        model.relate(heard.turn.text, before, wholes)[:, closing].sum(1)
        for before in (heard.before, ())
    ]
    for of_parts, of_items in zip(read, whole, strict=True):
        for n, part in enumerate(parts):  # "mornings only": of what is not meant it may look so
            if part.place != THE_PAST and of_items[part.item] < POINTED_SHARE * of_parts[n]:
                of_parts[n] = of_items[part.item]
    named = [named_in(asking_of(heard), part.text) for part in parts]
    most = max([*named, 1])
    of_topic = shares(topic, texts)
    for n, part in enumerate(parts):  # "sertraline, 50 mg": the amount is nothing by itself
        if (
            part.place > 0
            and of_topic[n]
            and not is_chinese(part.text)
            and len(part.text.split()) < FRAGMENT
        ):
            of_topic[n - 1] = max(of_topic[n - 1], of_topic[n])
    for n, (part, count) in enumerate(zip(parts, named, strict=True)):
        part.read, part.least = (
            float(read[0][n] + read[1][n]) / 2,
            float(min(read[0][n], read[1][n])),
        )
        part.share = of_topic[n]
        part.near = topic.is_near(part.text)
        part.partly = topic.is_in_part(part.text)
        part.sure = part.read + NAMED * (part.share if topic.words else count / most)
        if kept_in(heard.own, part.text) > count:
            part.sure, part.kept = 0.0, True
    return parts


def _names_what_was_not_kept(heard: Heard, texts: Sequence[str]) -> bool:
    """Whether the request names a word of an earlier message that none of the items has.

    "My PIN is 4711." is never kept, so "Forget my PIN." is about no item. What is to stay is not
    what the request names: "don't keep the medication, the desk is fine".
    """
    own = asked_for(asking_of(heard))
    told = {stem for who, text in heard.before if who == "user" for stem in stems(text)}
    least = CHARACTERS if is_chinese(own) else 1
    names = (stems(own) & told) - OF_ASKING
    if len(names) < least or any(speaks_of(own, text) for text in texts):
        return False
    kept = {stem for text in texts for stem in stems(text)}  # "vote" and "votes" end unlike
    return not any(one.startswith(other) for one in names for other in kept if len(other) > 2)


def _without(heard: Heard, item: MemoryItem, meant: set[int], kept: set[int]) -> Change:
    """The item without the parts that are meant and what only goes on about them; forgotten where
    nothing of it is left to read. What it tells of the past goes with any of them."""
    if meant == {THE_PAST}:
        return _rewritten(heard, item, present(item.text))
    parts = parts_of(present(item.text))
    stay = [n for n in range(len(parts)) if n not in meant]
    stay = [n for n in stay if n in kept or not _hangs_on_what_goes(n, parts, stay)]
    stay = [n for n in stay if n in kept or not _is_torn(n, item.text, parts, stay)]
    if not any(n in kept or is_readable(item.text, parts[n][0]) for n in stay):
        return _forgets(heard, item)
    left = left_of(item.text, parts, stay)
    if _OPENS.fullmatch(left) or _SECRET.search(left):
        return _forgets(heard, item)  # nothing is told, or the very thing that was to go
    return _rewritten(heard, item, left)


def _is_torn(n: int, text: str, parts: Sequence[tuple[str, str]], stay: Sequence[int]) -> bool:
    """Whether a part behind one that goes says nothing without it: ", she owes me forty dollars";
    ", keeps me right"; ", and mornings only"."""
    if not n or n - 1 in stay:
        return False
    if _PRONOUN.match(parts[n][0]) and not stands_alone(text, parts[n][0]):
        return True
    if is_chinese(text):
        return False
    part, joint = parts[n][0], parts[n - 1][1].strip()
    if joint == "," and re.match(r"(?:keeps|makes|helps|means|gets|lets|leaves)\b", part):
        return True
    return joint in (",", ", and") and len(part.split()) < 3


def _rewritten(heard: Heard, item: MemoryItem, text: str) -> Change:
    why = reason("forget", item.text, quoted=True)
    return Change(Decision(MemoryOp.update(item.id, text), why), heard.as_fact, hide=True)


def _hangs_on_what_goes(n: int, parts: Sequence[tuple[str, str]], stay: Sequence[int]) -> bool:
    """Whether a part only goes on about one that is taken out."""
    while n and goes_on(parts[n][0], parts[n - 1][1]):
        n -= 1
        if n not in stay:
            return True
    return False


def _forgets(heard: Heard, item: MemoryItem) -> Change:
    decision = Decision(MemoryOp.delete(item.id), reason("forget", item.text, quoted=True))
    return Change(decision, heard.as_fact, hide=True)
