"""What a request to forget takes away, as a trained model and the words of the request say it.

The model reads the request together with every part of the items near it ("User is 51", "User rents
in Leeds"), with what came before it and without: a request that names a topic ("what I earn") is
clearer alone, and one that points ("that last bit") is not. The words count beside it: what the
request names, and what it says is to stay.

Invariants: a request that only points means nothing but what was just said; a part that the request
leaves stays readable; what is left of an item is made of its own words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memograd.memory.language import is_chinese
from memograd.memory.manager.cues import ALL_SAID, BARE_REQUEST
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
    stems,
    with_subject,
)
from memograd.memory.manager.protocol import Change
from memograd.memory.manager.rules import decide_by_rules
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.forget import MAY_ASK, asked_for, request_to_forget, to_be_kept
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, OpKind, reason

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel, Thresholds

SHORT_REQUEST: Final = 25  # characters
THE_PAST: Final = -1  # the place of what an item says was so before
APART: Final = 0.3  # by that much more surely than what was just said an older item is pointed at
POINTED_SHARE: Final = 0.5  # of the surest part, for other parts of an item that "it" points at
NAMED: Final = 0.5  # what the words of a request add to the part that they name most
_THAT: Final = re.compile(r"\bthat (?=(?:I|my|we|our|he|she|they|there)\b)", re.IGNORECASE)
_JUST_SAID: Final = re.compile(
    r"这[句条段]|刚[才刚]|上一?[条句]|\blast (?:message|thing|bit|one|part)\b"
    r"|\bjust (?:said|told|wrote)\b",
    re.IGNORECASE,
)
_SPOKEN_OF: Final = re.compile("[那这][句段条件个些]|的事|关于")
_SENTENCE: Final = re.compile(r"[^.!?。！？]+[.!?。！？]*")
_OF_ASKING: Final = stems(
    "please pls plz thanks ta sorry actually just can could would you want back out second thoughts"
    " changed mind again now wait never here there say said tell told get got rid bit thing part"
    " shouldn typed wrote what which who whom where when how why about used have with from this"
    " notes memory records your mind head books"
    " 请麻烦吧把不对刚才算了谢掉除清空下帮您"
)


@dataclass
class _Part:
    """A part of an item, `place` among its parts; `sure`: that the request means it. kept: it says
    that this is to stay."""

    item: int
    place: int
    text: str
    sure: float = 0.0
    kept: bool = False


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
    points = bool(said) and only_points(heard)
    if said and (ALL_SAID.search(heard.own) or (points and not _says_of(heard.own))):
        return [_forgets(heard, item) for item in said]
    parts = _parts(model, heard, items)
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
        if part.sure >= sure.forget_above and part.sure >= sure.meant_share * best
    ]
    if _points_back(_asking(heard)):  # "bin it": it is the whole of it, unless parts differ
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
    if meant:
        kept = [{p.place for p in parts if p.item == n and p.kept} for n in range(len(items))]
        return [
            _without(heard, items[n], {part.place for part in meant if part.item == n}, kept[n])
            for n in dict.fromkeys(part.item for part in meant)
        ]
    if points:
        return [_forgets(heard, item) for item in said]
    topic = request_to_forget(asked_for(heard.own))
    if topic is not None:
        fact = replace(heard.as_fact, text=topic[0], retracts=True, forget=True)
        decision = decide_by_rules(fact, items)
        if decision.op.kind is not OpKind.NONE:
            return [Change(decision, fact, hide=True)]
    if said and (BARE_REQUEST.search(heard.own) or len(heard.own) < SHORT_REQUEST):
        stays = stems(to_be_kept(heard.own))
        return [_forgets(heard, item) for item in said if not stays & stems(item.text)]
    if best >= sure.faint_above:
        surest = max(parts, key=lambda part: part.sure)
        return [_without(heard, items[surest.item], {surest.place}, set())]
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


def only_points(heard: Heard) -> bool:
    """Whether what asks says nothing of what it means: "Forget that, please."

    "Leave my religion out of it" says what, though no item may have the word.
    """
    own = _asking(heard)
    bare_ask = _points_back(own)
    if is_chinese(own):  # says first what it speaks of: 这句收回,传出去要出大事
        own, *rest = re.split("[，,；;]", own)
        bare_ask = _points_back(own) or MAY_ASK.search(own) is not None
        if any(_SPOKEN_OF.search(clause) for clause in rest):
            return False
    if not bare_ask:
        return False
    return not _says_of(own)


def _says_of(own: str) -> frozenset[str]:
    """The words of a request for what it means."""
    return stems(MAY_ASK.sub(" ", BARE_REQUEST.sub(" ", own))) - _OF_ASKING


def _points_back(own: str) -> bool:
    """Whether it points: "delete that" does, "delete that I was married" does not."""
    return BARE_REQUEST.search(_THAT.sub(" ", own)) is not None


def _asking(heard: Heard) -> str:
    """The sentences that ask, of "I shouldn't have told you. Please forget it. Tea or coffee?"."""
    asking = [one for one in _SENTENCE.findall(heard.own) if MAY_ASK.search(one)]
    return " ".join(asking) or heard.own


def _parts(model: RelationModel, heard: Heard, items: Sequence[MemoryItem]) -> list[_Part]:
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
    closing = [RELATIONS.index(name) for name in CLOSING]
    read = [
        model.relate(heard.turn.text, before, texts)[:, closing].sum(1)
        for before in (heard.before, ())
    ]
    named = [named_in(_asking(heard), part.text) for part in parts]
    most = max([*named, 1])
    for part, score, count in zip(parts, np.mean(read, axis=0), named, strict=True):
        part.sure = float(score) + NAMED * count / most
        if kept_in(heard.own, part.text) > count:
            part.sure, part.kept = 0.0, True
    return parts


def _names_what_was_not_kept(heard: Heard, texts: Sequence[str]) -> bool:
    """Whether the request names a word of an earlier message that none of the items has.

    "My PIN is 4711." is never kept, so "Forget my PIN." is about no item. What is to stay is not
    what the request names: "don't keep the medication, the desk is fine".
    """
    own = asked_for(_asking(heard))
    told = {stem for who, text in heard.before if who == "user" for stem in stems(text)}
    least = CHARACTERS if is_chinese(own) else 1
    names = (stems(own) & told) - _OF_ASKING
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
    if not any(n in kept or is_readable(item.text, parts[n][0]) for n in stay):
        return _forgets(heard, item)
    return _rewritten(heard, item, left_of(item.text, parts, stay))


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
