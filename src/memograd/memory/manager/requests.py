"""What a request to forget takes away: the parts of memories that it means.

    The money I owe my brother stays between us, drop it. The rent can stay.

The relation model reads the request together with every part of the items near it ("User rents in
Leeds"), with what came before it and alone, with the whole items, and clause by clause. What is
known of a part (how surely it and its item are taken back, by how much more surely than any other,
which words it shares with the clauses that ask and with those that say what is to stay) is weighed
by one linear function, fitted to written requests (`tasks/relations/requests.py`).

Invariants: a request that only points, or means all that was said, takes what was just said, unless
it says what is to stay; else only parts that are meant, and what goes on about them or remarks on
them; what is left of an item is made of its own words; what is said to stay stays; without that
function a part is meant of which the model is sure both ways, and where some have words of the
request these alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from memograd.memory.language import is_chinese
from memograd.memory.manager.crowded import log_odds
from memograd.memory.manager.cues import ALL_SAID
from memograd.memory.manager.left_over import (
    ALL_OF_IT,
    THE_PAST,
    forgets,
    goes_with,
    of_whom_all_goes,
    without_parts,
)
from memograd.memory.manager.ordinals import meant_by_order
from memograd.memory.manager.past import (
    instead,
    not_present,
    parts_of,
    present,
    stems,
    with_subject,
    words_of,
)
from memograd.memory.manager.protocol import Change
from memograd.memory.reader.asked import asked_apart
from memograd.memory.reader.fact import Fact, Heard
from memograd.memory.reader.forget import MAY_ASK, says_what_stays
from memograd.memory.reader.heads import is_standing
from memograd.memory.records.items import Kind, MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, reason
from memograd.memory.records.scope import Scope

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel, Thresholds

FEW_TO_FORGET: Final = 5  # so many items are few: among more one always looks meant
FEW_POINTED_AT: Final = 3  # so many items just said may be the "it" of a request that says more
CLAUSES: Final = 8  # of a request that are read alone
MEANT_AT_LEAST: Final = 0.2
"""How likely the likeliest part of what was just said is meant at least, where something surely
is: a clause points, or says what else is to stay."""
REQUEST_EVIDENCE: Final = (
    "item_before", "item_alone", "part_before", "part_alone", "margin_in_item", "margin_before",
    "margin_alone", "clause", "clause_margin", "clause_of_what_stays", "words_asked",
    "words_to_stay", "recent", "share_recent", "all_of_it", "of_surest_item", "place", "parts",
    "items", "asks_surely", "says_what_stays",
)  # fmt: skip
"""What is known of a part of an item, in the order of the function's weights."""
_CLAUSE: Final = re.compile(
    r"(?<=[.;!?])\s+|,\s+|[，。；！？：,]|(?<=[\u4e00-\u9fff])\s+|\s+[-–—]+\s+"
    r"|\s+(?=(?:because|'?cause|cos|so that|in case|before|but|except)\b)|(?=但)",
    re.IGNORECASE,
)
_POINTS: Final = re.compile(
    r"\b(?:that|this|it|last (?:message|thing|bit|one|part)"
    r"|what i (?:just )?(?:said|told (?:you|u|ya)|wrote|typed)"
    r"|i said anything|the (?:whole )?(?:lot|thing))\b"
    r"|刚才|刚刚|上(?:一)?[条句]|这[条句个]|那[条句个]|刚说|前面|当我没说",
    re.IGNORECASE,
)
_OF_MEMORY: Final = re.compile(
    r"\b(?:forget|delet\w+|eras\w+|remov\w+|wip\w+|remember\w*|memor\w+|record\w*|stor\w+|sav\w+"
    r"|drop|strike|lose (?:it|that|this|the|my|what)\b|bin|purge|redact|withdraw|retract|out of"
    r"|off the|private|secret"
    r"|note|noting|scrub|un-?(?:say|note|save|remember|tell)|scratch|scrap)\b|[忘删刪抹撤]|[记記](?!得)|存|清掉|收回",
    re.IGNORECASE,
)
_TIRED_OF: Final = re.compile(
    r"\b(?:stop|enough|no more|quit|too (?:many|much|short|long)|instead|rather"
    r"|from (?:now|here) on|going forward)\b|[别別]老|太|以后|往后|今后|改成",
    re.IGNORECASE,
)
_SAID: Final = re.compile(r"^(?:User said: |用户说：)")


_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_EARLIER: Final = re.compile(
    r"\b(?:said|told|mentioned|gave|talked|wrote)(?: (?:you|to you))? (?:about|of|earlier|before"
    r"|yesterday|last|the other)\b|之前|以前|上次|昨天|前几天",
    re.IGNORECASE,
)
_NOTED: Final = re.compile(
    r"\b(?:noted|saved|stored|recorded|remember(?:ed)?|added|kept|jotted)\b|记[下住录了]|記[下住錄了]",
    re.IGNORECASE,
)
_ABOUT: Final = re.compile(
    r"\babout (?!(?:it|that|this|them|those|these|all|what|everything|anything)\b)\w", re.IGNORECASE
)
_THAT_ONE: Final = re.compile(
    r"\b(?:that|this|the last) (?:one|bit|part)\b|[那这][一]?[条句点]", re.I
)
_THAT: Final = re.compile(r"\bthat (?=(?:I|my|we|our|he|she|they|there)\b)", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[^.!?。！？]+[.!?。！？]*")
_OF_ASKING: Final = stems(
    "please pls plz thanks ta sorry actually just can could would you want back out second thoughts"
    " changed mind again now wait never here there say said tell told get got rid bit thing part"
    " omg lol haha ugh oops hmm shouldn typed wrote what which who whom where when how why about"
    " used have with from this"
    " notes memory records your mind head books"
    " 句条段话茬讲提没当忘请麻烦吧把不对刚才算了谢掉除清空下帮您着给替句收回"
)
"""What requests are worded with, which names nothing."""
_OF_STAYING: Final = stems(
    "fine okay alright good stay stays keep kept mind 没事关系无所谓随便要紧可以留着记照旧妨碍"
)
_OF_SOMETHING: Final = re.compile(r"\babout\b|\bof my\b|的事|关于|關於|有关|有關", re.IGNORECASE)


@dataclass(frozen=True)
class Part:
    """A part of the item at `item`, at `place` of its `among` parts."""

    item: int
    place: int
    among: int
    text: str


def as_request(heard: Heard) -> Heard:
    """The message as a request to forget, without the facts that the asking looked like."""
    told = [
        (fact, quote)
        for fact, quote in zip(heard.facts, heard.quotes, strict=True)
        if not any(quote in asks or asks in quote for asks in heard.perhaps)
    ]
    facts, quotes = tuple(fact for fact, _ in told), tuple(quote for _, quote in told)
    return replace(heard, forget=True, facts=facts, quotes=quotes, asked=())


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
    every = parts_of_items(items)
    in_order = meant_by_order(clauses_of(heard.own), every, items, recent)
    if in_order is not None:
        return _without(model, heard, items, every, in_order, frozenset(), rest_stays=True)
    said = _spoken_of(heard, [item for item in items if item.id in recent])
    all_said = ALL_SAID.search(heard.own) and not _OF_SOMETHING.search(heard.own)
    noted = len(said) < sum(item.id in recent for item in items)
    points = (noted or only_points(heard.own)) and (
        len(said) <= FEW_POINTED_AT or not _says(heard.own)
    )
    rest_stays = any(map(_names_what_stays, clauses_of(heard.own)))
    partly = rest_stays or _names_some(heard.own, said)
    if said and (all_said or (points and not partly)):
        return [forgets(heard, item) for item in said]
    if said and points:
        items = said  # of which the request names some, or something is to stay
    parts = parts_of_items(items)
    known = request_evidence(model, heard, items, parts, recent)
    named, now = (known[:, REQUEST_EVIDENCE.index(name)] for name in ("words_asked", "recent"))
    if model.requests is None:
        both = [REQUEST_EVIDENCE.index(name) for name in ("item_before", "item_alone")]
        odds = known[:, both].min(1)
        if (named > 0).any():
            odds[named == 0] = -np.inf
    else:
        odds = model.requests.scores(known)
        for one in asked_apart(heard.own):
            alone = replace(heard, turn=replace(heard.turn, text=one), own=one)
            of_one = request_evidence(model, alone, items, parts, recent)
            odds = np.maximum(odds, model.requests.scores(of_one))
    stays = known[:, REQUEST_EVIDENCE.index("words_to_stay")] > named  # "the dog can stay"
    odds[stays] = -np.inf
    unnamed = (named == 0) & (now == 0) & (len(items) > FEW_TO_FORGET)
    likely = 1 / (1 + np.exp(-odds))
    # Compared one by one, for thresholds are watched while they are fitted.
    meant = [
        float(one) >= (sure.meant_unnamed_above if is_unnamed else sure.meant_above)
        for one, is_unnamed in zip(likely, unnamed, strict=True)
    ]
    one_of_them = any(meant) and _THAT_ONE.search(heard.own) is not None
    if points and not one_of_them and not _are_meant(heard.own, parts, meant):
        return [forgets(heard, item) for item in said]
    surely = not heard.perhaps and (rest_stays or points_too(heard.own))
    if surely and not any(meant):
        meant = _likeliest_said(known, likely)
    meant = [
        is_meant or (not rest_stays and of_whom_all_goes(heard.own, items[part.item].text))
        for part, is_meant in zip(parts, meant, strict=True)
    ]
    gone = frozenset(n for n, is_meant in enumerate(meant) if is_meant)
    kept = frozenset(n for n, one in enumerate(stays) if one)
    return _without(model, heard, items, parts, gone, kept, rest_stays=rest_stays)


def _without(
    model: RelationModel,
    heard: Heard,
    items: Sequence[MemoryItem],
    parts: Sequence[Part],
    gone: frozenset[int],
    kept: frozenset[int],
    *,
    rest_stays: bool,
) -> list[Change]:
    """The items without the parts `gone`; of what hangs on these only `kept` is sure to stay."""
    places: dict[int, set[int]] = {}
    for n, part in enumerate(parts):
        if n in gone:
            places.setdefault(part.item, set()).add(part.place)
    leans = partial(goes_with, model)
    return [
        without_parts(
            heard,
            items[n],
            of_item,
            {parts[k].place for k in kept if parts[k].item == n},
            leans,
            rest_stays=rest_stays,
        )
        for n, of_item in places.items()
    ]


def unsaid(
    model: RelationModel,
    sure: Thresholds,
    heard: Heard,
    items: Sequence[MemoryItem],
    recent: frozenset[str],
) -> tuple[list[Change], list[Fact]] | None:
    """What a request that stands behind facts of its own message takes away, and the facts that are
    left: "I make 2,850 and I rent in Ghent. Hm, unsay the salary". None where there is no such one,
    or it speaks of what was told before."""
    asking = [one for one in _SENTENCE.findall(heard.own) if MAY_ASK.search(one)]
    first = heard.own.find(asking[0]) if asking else -1
    before = [n for n, quote in enumerate(heard.quotes) if heard.own.find(quote) < first]
    request = " ".join(one.strip() for one in asking)
    if not heard.forget or not before or heard.turn.said_as != "user" or _EARLIER.search(request):
        return None
    when = heard.turn.time or _LONG_AGO
    scope = items[0].scope if items else Scope(user_id="nobody")
    names = {n: f"of-this-message-{n}" for n in before}
    own = [MemoryItem(names[n], heard.facts[n].text, scope, when, when) for n in before]
    told = " ".join(heard.quotes[n] for n in before)
    asked = replace(
        heard,
        turn=replace(heard.turn, text=request),
        before=(*heard.before, ("user", told)),
        own=request,
    )
    gone = forgotten(model, sure, asked, [*items, *own], recent | {*names.values()})
    ops = {change.decision.op.item_id: change.decision.op for change in gone}
    left = []
    for n, fact in enumerate(heard.facts):
        op = ops.get(names.get(n))
        if op is None or op.text is not None:
            left.append(fact if op is None else replace(fact, text=op.text or fact.text))
    return [one for one in gone if one.decision.op.item_id not in names.values()], left


def other_wish(heard: Heard, gone: Sequence[Change], items: Sequence[MemoryItem]) -> Change | None:
    """The message in the place of a wish for answers that it is tired of: "Stop with the bullet
    points, paragraphs are fine" is another wish, and nothing to forget. None where it may ask that
    something be kept no longer."""
    if len(gone) != 1 or heard.facts or heard.secret:
        return None
    if _OF_MEMORY.search(heard.own) or not _TIRED_OF.search(heard.own):
        return None
    [item] = [one for one in items if one.id == gone[0].decision.op.item_id]
    standing = is_standing(_SAID.sub("", present(item.text)))
    if not (standing or item.kind == Kind.PROCEDURAL) or not heard.whole:
        return None
    text = instead(heard.whole, item.text, heard.day)
    why = reason("replace", item.text, quoted=True)
    return Change(Decision(MemoryOp.update(item.id, text), why), heard.as_fact, hide=True)


def _spoken_of(heard: Heard, said: Sequence[MemoryItem]) -> Sequence[MemoryItem]:
    """Of what was just said that which the assistant says it has noted: "I've noted the address."
    "Un-note it". All of it where that is none, or the assistant says no such thing."""
    noted = (
        heard.before and heard.before[-1][0] == "assistant" and _NOTED.search(heard.before[-1][1])
    )
    if not noted or not points_too(heard.own):
        return said
    words = words_of(heard.before[-1][1])
    named = [item for item in said if words & words_of(present(item.text)) - _OF_ASKING]
    return named or said


def only_points(own: str) -> bool:
    """Whether a request says nothing of what it means: "Forget that, please", 别记别记,要出大事.

    Of a Chinese one the clause that asks is read, which stands first.
    """
    asking = " ".join(one for one in _SENTENCE.findall(own) if MAY_ASK.search(one))
    if _ABOUT.search(asking):
        return False  # "what I said about my ex"
    if is_chinese(asking):
        asking = re.split("[，,；;]", asking)[0]
    said = asking if _POINTS.search(_THAT.sub(" ", asking)) else _THAT.sub(" ", asking)
    return MAY_ASK.search(asking) is not None and not _says(said)


def _beside_asking(own: str) -> str:
    """What a request says beside the sentences that ask; of a Chinese one, beside the clauses."""
    cut = re.split(r"(?<=[，,；;。！？!?])", own) if is_chinese(own) else _SENTENCE.findall(own)
    names = is_chinese(own)  # 当我没说，辞职的事别记
    return " ".join(one for one in cut if not MAY_ASK.search(one) or (names and _says(one)))


def _names_some(own: str, said: Sequence[MemoryItem]) -> bool:
    """Whether a request that points names, before it does, some parts of what was said and not
    others: "Eileen's health is no business of mine. Strike that out."."""
    words = words_of(_beside_asking(own))
    named = [bool(words & words_of(part.text)) for part in parts_of_items(said)]
    return any(named) and not all(named)


def _are_meant(own: str, parts: Sequence[Part], meant: Sequence[bool]) -> bool:
    """Whether all parts that `_names_some` finds are meant; if not, they give a reason: "My wife
    reads this. Delete that."."""
    words = words_of(_beside_asking(own))
    return all(
        is_meant for part, is_meant in zip(parts, meant, strict=True) if words & words_of(part.text)
    )


def points_too(own: str) -> bool:
    """Whether a request that names something in its words also points at what was said: "never
    mind the depth thing, delete it"."""
    return any(only_points(one) for one in clauses_of(own))


def _names_what_stays(clause: str) -> bool:
    """Whether a clause says what is to stay, rather than "it's fine"."""
    return says_what_stays(clause) and bool(_says(clause) - _OF_STAYING)


def _likeliest_said(known: np.ndarray, likely: np.ndarray) -> list[bool]:
    """The part of what was just said that is meant most, where that is not quite unlikely, and no
    clause speaks of it as surely as one that says what is to stay."""
    now, asked, kept = (
        known[:, REQUEST_EVIDENCE.index(name)]
        for name in ("recent", "clause", "clause_of_what_stays")
    )
    of_said = np.where((now > 0) & (asked > kept), likely, 0.0)
    most = float(of_said.max(initial=0.0))
    return [most >= MEANT_AT_LEAST and float(one) == most for one in of_said]


def _says(text: str) -> frozenset[str]:
    """The words of a request for what it means: "take the medication out" names the medication."""

    def between(asking: re.Match[str]) -> str:
        return f" {' '.join(asking[0].split()[1:-1])} "

    return stems(MAY_ASK.sub(between, _POINTS.sub(" ", text))) - _OF_ASKING


def parts_of_items(items: Sequence[MemoryItem]) -> list[Part]:
    """Of the present of each item, and then what each tells of the past."""
    parts = []
    for n, item in enumerate(items):
        texts = parts_of(present(item.text))
        parts += [
            Part(n, place, len(texts), with_subject(item.text, text))
            for place, (text, _) in enumerate(texts)
        ]
    return parts + [
        Part(n, THE_PAST, 1, past)
        for n, item in enumerate(items)
        if (past := not_present(item.text))
    ]


def request_evidence(
    model: RelationModel,
    heard: Heard,
    items: Sequence[MemoryItem],
    parts: Sequence[Part],
    recent: frozenset[str],
) -> np.ndarray:
    """float32 `[parts, REQUEST_EVIDENCE]`: what is known of each part."""
    from memograd.memory.relations import CLOSING, RELATIONS

    closing = [RELATIONS.index(name) for name in CLOSING]
    own = heard.own or heard.turn.text

    def read(message: str, before: Sequence[tuple[str, str]], texts: Sequence[str]) -> np.ndarray:
        found: np.ndarray = model.relate(message, before, texts)[:, closing].sum(1)
        return found

    texts = [part.text for part in parts]
    wholes = [present(item.text) for item in items]
    part_before, part_alone = (read(heard.turn.text, b, texts) for b in (heard.before, ()))
    item_before, item_alone = (read(heard.turn.text, b, wholes) for b in (heard.before, ()))
    clauses = clauses_of(own)
    by_clause = np.stack([read(one, (), texts) for one in clauses])
    stays = np.array([says_what_stays(one) for one in clauses])
    asks = np.array([MAY_ASK.search(one) is not None for one in clauses]) & ~stays
    words = [words_of(text) for text in texts]
    asked, kept = (_words_shared(clauses, chosen, words) for chosen in (asks, stays))
    of_asking = by_clause[asks].max(0, initial=0.0)
    told_now = [items[n].id in recent for n in range(len(items))]
    surest = int(np.argmax(item_before + item_alone))
    rows = []
    for n, part in enumerate(parts):
        first = n - max(part.place, 0)
        here = slice(first, first + part.among)  # the parts of its item
        known = {
            "item_before": log_odds(item_before[part.item]),
            "item_alone": log_odds(item_alone[part.item]),
            "part_before": log_odds(part_before[n]),
            "part_alone": log_odds(part_alone[n]),
            "margin_in_item": _margin(part_before[here], n - here.start)
            + _margin(part_alone[here], n - here.start),
            "margin_before": _margin(part_before, n),
            "margin_alone": _margin(part_alone, n),
            "clause": log_odds(by_clause[:, n].max()),
            "clause_margin": _margin(of_asking, n),
            "clause_of_what_stays": log_odds(by_clause[stays, n].max(initial=0.0)),
            "words_asked": asked[n],
            "words_to_stay": kept[n],
            "recent": told_now[part.item],
            "share_recent": np.mean(told_now),
            "all_of_it": ALL_OF_IT.search(own) is not None,
            "of_surest_item": part.item == surest,
            "place": min(max(part.place, 0), 3),
            "parts": min(part.among, 6),
            "items": np.log(len(items)),
            "asks_surely": not heard.perhaps,
            "says_what_stays": stays.any(),
        }
        if part.place == THE_PAST:  # of which the item by itself says nothing
            known["item_before"], known["item_alone"] = (
                log_odds(one[n]) for one in (part_before, part_alone)
            )
        rows.append([known[name] for name in REQUEST_EVIDENCE])
    return np.array(rows, dtype=np.float32).reshape(len(rows), len(REQUEST_EVIDENCE))


def clauses_of(own: str) -> list[str]:
    """The clauses of a request that are read: of a long message those that ask, or say what is to
    stay, go first."""
    found = [one.strip() for one in _CLAUSE.split(own) if one and re.search(r"\w", one)]
    found.sort(key=lambda one: not (MAY_ASK.search(one) or says_what_stays(one)))
    return found[:CLAUSES] or [own]


def _words_shared(
    clauses: Sequence[str], chosen: np.ndarray, words: Sequence[frozenset[str]]
) -> list[float]:
    """How many words each part shares with the chosen clauses, at most 2; one that many parts have
    counts less."""
    said = frozenset().union(
        *(words_of(one) for one, is_chosen in zip(clauses, chosen, strict=True) if is_chosen)
    )
    having = Counter(word for one in words for word in one)
    return [min(sum(1 / having[word] for word in said & one), 2.0) for one in words]


def _margin(sure: np.ndarray, n: int) -> float:
    """By how much one is surer than every other; 0 where there is no other."""
    return 0.0 if len(sure) == 1 else float(sure[n] - np.delete(sure, n).max(initial=0.0))
