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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from memograd.memory.language import is_chinese, simplified
from memograd.memory.manager.crowded import log_odds
from memograd.memory.manager.cues import ALL_SAID
from memograd.memory.manager.past import (
    goes_on,
    is_readable,
    left_of,
    not_present,
    parts_of,
    present,
    stands_alone,
    stems,
    with_subject,
)
from memograd.memory.manager.protocol import Change
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.forget import MAY_ASK, asked_for, says_what_stays
from memograd.memory.reader.heads import has_verb
from memograd.memory.reader.person_chinese import KIN
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, reason
from memograd.memory.statements.value_types import NUMERALS

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel, Thresholds

THE_PAST: Final = -1  # the place of what an item says was so before
FEW_TO_FORGET: Final = 5  # so many items are few: among more one always looks meant
FEW_POINTED_AT: Final = 3  # so many items just said may be the "it" of a request that says more
CLAUSES: Final = 8  # of a request that are read alone
MEANT_AT_LEAST: Final = 0.2
"""How likely the likeliest part of what was just said is meant at least, where something surely
is: a clause points, or says what else is to stay."""
GOES_WITH: Final = 0.4
"""How likely a part remarks on the one before it, or tells more of it, that it goes with it."""
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
_ALL_OF_IT: Final = re.compile(
    r"\b(?:everything|all|any|anything|nothing|whatever|whole|lot|every)\b|[都全]|所有|一切|任何|统统"
    r"|的事|[那这]些",
    re.IGNORECASE,
)
_POINTS: Final = re.compile(
    r"\b(?:that|this|it|last (?:message|thing|bit|one|part)"
    r"|what i (?:just )?(?:said|told (?:you|u|ya)|wrote|typed)"
    r"|i said anything|the (?:whole )?(?:lot|thing))\b"
    r"|刚才|刚刚|上(?:一)?[条句]|这[条句个]|那[条句个]|刚说|前面|当我没说",
    re.IGNORECASE,
)
_THAT: Final = re.compile(r"\bthat (?=(?:I|my|we|our|he|she|they|there)\b)", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[^.!?。！？]+[.!?。！？]*")
_OF_ASKING: Final = stems(
    "please pls plz thanks ta sorry actually just can could would you want back out second thoughts"
    " changed mind again now wait never here there say said tell told get got rid bit thing part"
    " shouldn typed wrote what which who whom where when how why about used have with from this"
    " notes memory records your mind head books"
    " 请麻烦吧把不对刚才算了谢掉除清空下帮您着给替句收回"
)
"""What requests are worded with, which names nothing."""
_OF_STAYING: Final = stems(
    "fine okay alright good stay stays keep kept mind 没事关系无所谓随便要紧可以留着记照旧妨碍"
)
_OF_SOMETHING: Final = re.compile(r"\babout\b|\bof my\b|的事|关于|關於|有关|有關", re.IGNORECASE)
_OPENS: Final = re.compile(
    r"(?:User said: )?(?:which|that) reminds User\W*|(?:Bro )?User (?:got|has"
    r"|needs) to tell you something\W*"
    r"|(?:Bro )?User did (?:one|a|something) (?:\w+ )?(?:stupid|silly|bad)(?: thing)?\W*"
    r"|(?:用户说：)?(?:跟|和|给)?你?[说讲]个?(?:秘密|事儿?)\W*",
    re.IGNORECASE,
)
_PRONOUN: Final = re.compile(r"(?:and |but )?(?:s?he|it|they)(?:['’]?s)?\b|[他她它]", re.IGNORECASE)
_ADVERBIAL: Final = re.compile(
    r"(?:with|at|in|on|for|by|from|near|since|until|till|as|after|before|every|mostly|usually"
    r"|twice|once|each|most|most of|about|around|during|without|(?:mon|tues|wednes|thurs|fri"
    r"|satur|sun)days?)\b",
    re.IGNORECASE,
)
_CALLED: Final = re.compile(r"\b(?:is|was|['’]s) (?:called|named)\b|\bname is\b", re.IGNORECASE)
_OF_KIN_ZH: Final = re.compile(rf"(?:用户(?:说：)?(?:的)?)?[俺咱我]?(?:{KIN})")
_SUBJECT_ZH: Final = re.compile(rf"用户|[我俺咱]|(?:{KIN})")
_GOES_ON_ZH: Final = re.compile(
    r"从(?!小|事|业|没|来)|是[^，,]{1,12}的$|已经|才|全[都部]?(?!家|职)|都(?!市)|只[能有剩是]|刚(?![才刚]|结婚)|差点|结果|后来|当时"
    r"|(?:预算|預算|学费|學費|地点|地點|费用|費用|本金|利息|[一二三终終笔筆][面试試](?=[过過了挂没也]))"
    r"|(?:\d{4}年|去年|前年|今年|上个?月|那年)[^，,]{0,8}(?:才|[^，,]的[\u4e00-\u9fff]?$)"
    r"|(?:[他她]|医生|醫生|大夫|老师|老師)说|说是|據說|据说"
)
_OF_NAME: Final = re.compile(r"\b(?:nick|sur)?names?\b", re.IGNORECASE)
_ALL_ABOUT: Final = re.compile(
    r"\b(?:anything|everything|nothing|(?:single )?word|mention|trace) (?:\w+ )?(?:about|of|on)\b",
    re.IGNORECASE,
)
_OF_AMOUNT: Final = re.compile(
    r"\b(?:salary|pay|wages?|income|earn\w*|figure|amount|sum|price|rent|number|how much|money)\b"
    r"|工资|工資|月薪|年薪|薪水|收入|多少钱|多少錢|数字|數字|金额|金額|房租|价格",
    re.IGNORECASE,
)
_AMOUNT: Final = re.compile(
    r"(?:(?<= is)|(?<= are)|(?<=User))?(?: (?:earning|earns?|making|makes?|paid|getting|gets?"
    r"|on|for|at|paying|pays?))? (?:about |around |roughly )?(?:[£€$₹¥R] ?)?\d[\d,.]*(?: \d{3})*"
    r"(?: ?(?:k|lakhs?|lpa|crores?|grand|thousand|million|rupees|dollars|euros|pounds|quid|bucks|rs"
    r"|inr|rand|naira))?\b(?: (?:per|an?|each|every) \w+)?"
    rf"|(?:月薪|年薪|工资|工資|薪水|收入|到手|房租|一个月|每月|每个月)[^，,。]{{0,4}}?[\d{NUMERALS}][\d{NUMERALS}万萬千,.]*"
    r"(?:元|块|塊|k|K|w|W)?(?:钱|錢)?",
    re.IGNORECASE,
)
_SECRET: Final = re.compile(
    r"\bpass(?:word|code|phrase)?\b(?! (?:me|the|on|out|by))|\bpin\b|密码|口令", re.I
)


@dataclass(frozen=True)
class Part:
    """A part of the item at `item`, at `place` of its `among` parts."""

    item: int
    place: int
    among: int
    text: str


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
    said = _spoken_of(heard, [item for item in items if item.id in recent])
    all_said = ALL_SAID.search(heard.own) and not _OF_SOMETHING.search(heard.own)
    noted = len(said) < sum(item.id in recent for item in items)
    points = (noted or only_points(heard.own)) and (
        len(said) <= FEW_POINTED_AT or not _says(heard.own)
    )
    rest_stays = any(map(_names_what_stays, clauses_of(heard.own)))
    partly = rest_stays or _names_some(heard.own, said)
    if said and (all_said or (points and not partly)):
        return [_forgets(heard, item) for item in said]
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
    stays = known[:, REQUEST_EVIDENCE.index("words_to_stay")] > named  # "the dog can stay"
    odds[stays] = -np.inf
    unnamed = (named == 0) & (now == 0) & (len(items) > FEW_TO_FORGET)
    likely = 1 / (1 + np.exp(-odds))
    # Compared one by one, for thresholds are watched while they are fitted.
    meant = [
        float(one) >= (sure.meant_unnamed_above if is_unnamed else sure.meant_above)
        for one, is_unnamed in zip(likely, unnamed, strict=True)
    ]
    if points and not _are_meant(heard.own, parts, meant):
        return [_forgets(heard, item) for item in said]
    surely = not heard.perhaps and (rest_stays or points_too(heard.own))
    if surely and not any(meant):
        meant = _likeliest_said(known, likely)
    places: dict[int, set[int]] = {}
    for part, is_meant in zip(parts, meant, strict=True):
        if is_meant:
            places.setdefault(part.item, set()).add(part.place)
    kept = {(part.item, part.place) for part, one in zip(parts, stays, strict=True) if one}
    leans = partial(_goes_with, model)
    return [
        _without(heard, items[n], gone, {place for m, place in kept if m == n}, leans)
        for n, gone in places.items()
    ]


def _spoken_of(heard: Heard, said: Sequence[MemoryItem]) -> Sequence[MemoryItem]:
    """Of what was just said that which the assistant spoke of behind it: "I've noted the address."
    "Un-note it". All of it where that is none, or the assistant said nothing."""
    if not heard.before or heard.before[-1][0] != "assistant" or not points_too(heard.own):
        return said
    words = words_of(heard.before[-1][1])
    named = [item for item in said if words & words_of(present(item.text)) - _OF_ASKING]
    return named or said


def only_points(own: str) -> bool:
    """Whether a request says nothing of what it means: "Forget that, please", 别记别记,要出大事.

    Of a Chinese one the clause that asks is read, which stands first.
    """
    asking = " ".join(one for one in _SENTENCE.findall(own) if MAY_ASK.search(one))
    if is_chinese(asking):
        asking = re.split("[，,；;]", asking)[0]
    said = asking if _POINTS.search(_THAT.sub(" ", asking)) else _THAT.sub(" ", asking)
    return MAY_ASK.search(asking) is not None and not _says(said)


def _beside_asking(own: str) -> str:
    """What a request says beside the sentences that ask; of a Chinese one, beside the clauses."""
    cut = re.split(r"(?<=[，,；;。！？!?])", own) if is_chinese(own) else _SENTENCE.findall(own)
    return " ".join(one for one in cut if not MAY_ASK.search(one))


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
            "all_of_it": _ALL_OF_IT.search(own) is not None,
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


def words_of(text: str) -> frozenset[str]:
    """The beginnings of content words; in Chinese, pairs of characters beside each other; and
    numbers."""
    text = simplified(text)
    numbers = re.findall(r"\d+", text)
    if not is_chinese(text):
        # "The vape thing" names "vapes", whose stem is "vap".
        shorter = (one.removesuffix("e") if len(one) > 3 else one for one in stems(text))
        return frozenset([*shorter, *numbers])
    runs = re.findall(r"[\u4e00-\u9fff]+", text.replace("用户", " "))
    pairs = [run[n : n + 2] for run in runs for n in range(len(run) - 1)]
    latin = [word.casefold() for word in re.findall(r"[A-Za-z]{2,}", text)]
    return frozenset([*pairs, *latin, *numbers])


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


def _without(
    heard: Heard,
    item: MemoryItem,
    meant: set[int],
    kept: set[int],
    goes_with: Callable[[str, str], bool],
) -> Change:
    """The item without the parts that are meant and what only goes on about them, but for what is
    to stay; forgotten where nothing of it is left to read. What it tells of the past goes with any
    of them.

    goes_with: whether one part says nothing without the one before it."""
    if meant == {THE_PAST}:
        return _rewritten(heard, item, present(item.text))
    if (left := _without_amount(heard.own, present(item.text))) is not None:
        return _rewritten(heard, item, left)
    parts = parts_of(present(item.text))
    if not _OF_NAME.search(heard.own) or _ALL_ABOUT.search(heard.own):  # "my ex's name"
        meant = meant | {n - 1 for n in meant - kept if _is_name_of_last(n, parts)} - kept
        if any(_CALLED.search(parts[n][0]) for n in meant - kept):
            # "Not a word about Brendan": who he is goes, and so does what "he" does.
            meant = meant | {n for n, (part, _) in enumerate(parts) if _PRONOUN.match(part)} - kept
    stay = [n for n in range(len(parts)) if n not in meant]
    stay = [n for n in stay if n in kept or not _hangs_on_what_goes(n, parts, stay)]
    for n in list(stay):  # in order: what hangs on a torn one is torn too
        whole = _ALL_OF_IT.search(heard.own) is not None
        if n not in kept and _is_torn(n, item.text, parts, stay, all_of_it=whole):
            stay.remove(n)
    said = [with_subject(item.text, part) for part, _ in parts]
    left_over: list[int] = []
    for n in stay:
        behind_gone = n > 0 and n - 1 not in left_over
        if n in kept or not (behind_gone and goes_with(said[n], said[n - 1])):
            left_over.append(n)
    stay = left_over
    if not any(n in kept or is_readable(item.text, parts[n][0]) for n in stay):
        return _forgets(heard, item)
    left = left_of(item.text, parts, stay)
    if _OPENS.fullmatch(left) or _SECRET.search(left):
        return _forgets(heard, item)  # nothing is told, or the very thing that was to go
    return _rewritten(heard, item, left)


def _without_amount(own: str, text: str) -> str | None:
    """The item without the one sum that it tells, where a request means a sum and something else is
    to stay: "remove my salary figure. Company name is ok" of "earns 18 lakhs at Infosys"."""
    if not (_OF_AMOUNT.search(asked_for(own)) and any(map(_names_what_stays, clauses_of(own)))):
        return None
    if len(_AMOUNT.findall(text)) != 1:
        return None
    left = re.sub(r"\s+", " ", _AMOUNT.sub(" ", text)).replace(" ,", ",").replace(" .", ".")
    left = re.sub(r"(?<=[\u4e00-\u9fff，]) | (?=[\u4e00-\u9fff，])|^，|，(?=[，。])", "", left)
    if _OF_AMOUNT.search(left) or re.search(r"\d", left):
        return None  # the sum is all that it tells, or something is left of it
    return left if words_of(left) - words_of(asked_for(own)) else None


def _goes_with(model: RelationModel, part: str, gone: str) -> bool:
    """Whether a part remarks on another or tells more of it: "I'm ashamed", 园里没人晓得."""
    from memograd.memory.relations import RELATIONS

    [row] = model.relate(part, (), [gone])
    more = float(row[RELATIONS.index("comment")] + row[RELATIONS.index("detail")])
    return more >= GOES_WITH


def _is_name_of_last(n: int, parts: Sequence[tuple[str, str]]) -> bool:
    """Whether a part names what stands before it: "User is seeing a colleague, Ferelith"."""
    named = re.fullmatch(r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)?", parts[n][0]) if n > 0 else None
    return named is not None and parts[n - 1][1].strip() == ","


def _is_torn(
    n: int,
    text: str,
    parts: Sequence[tuple[str, str]],
    stay: Sequence[int],
    *,
    all_of_it: bool,
) -> bool:
    """Whether a part behind one that goes says nothing without it: ", she owes me forty dollars";
    ", keeps me right"; ", and mornings only"; ", with our Janice"; ". Pokies mostly"; ，从一百六
    十八斤开始的."""
    if not n or n - 1 in stay:
        return False
    if _PRONOUN.match(parts[n][0]) and not stands_alone(text, parts[n][0]):
        return True
    if is_chinese(text):
        theirs = 0 not in stay and _OF_KIN_ZH.match(parts[0][0])
        if all_of_it and theirs and not _SUBJECT_ZH.match(parts[n][0]):
            return True  # 儿子没考上高中，学汽修: both are about him
        return _GOES_ON_ZH.match(parts[n][0].removeprefix("用户")) is not None
    part, joint = parts[n][0], parts[n - 1][1].strip()
    brief = joint.startswith(".") and len(part.split()) < 3 and not re.search(r"\d", part)
    if not has_verb(part) and (brief or _ADVERBIAL.match(part)):
        return True
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
