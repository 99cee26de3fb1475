"""What is left of an item when some of its parts are forgotten.

    User goes to Slimming World in Rotherham, Thursdays, with their Janice.     "Slimming World"
    ->  nothing: where and with whom says nothing without it

    User is earning 18 lakhs at Infosys.     "my salary figure. The company name is fine."
    ->  User is at Infosys.

Invariants: what is left of an item is made of its own words; what is said to stay stays; a part
that goes on about one that is gone, or says nothing without it, goes with it. Pure functions, but
for the model that says whether a part remarks on another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.past import (
    goes_on,
    is_readable,
    left_of,
    parts_of,
    present,
    stands_alone,
    with_subject,
    words_of,
)
from memograd.memory.manager.protocol import Change
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.forget import asked_for
from memograd.memory.reader.heads import has_verb
from memograd.memory.reader.person_chinese import KIN
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.operations import Decision, MemoryOp, reason
from memograd.memory.statements.value_types import NUMERALS

if TYPE_CHECKING:
    from memograd.memory.relations import RelationModel

THE_PAST: Final = -1  # the place of what an item says was so before
GOES_WITH: Final = 0.4
"""How likely a part remarks on the one before it, or tells more of it, that it goes with it."""
ALL_OF_IT: Final = re.compile(
    r"\b(?:everything|all|any|anything|nothing|whatever|whole|lot|every)\b|[都全]|所有|一切|任何|统统"
    r"|的事|[那这]些",
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
_OF_KIN_ZH: Final = re.compile(rf"(?:用户(?:说：)?(?:的)?)?[俺咱我]?(?P<who>{KIN})")
_OF_NAME_ZH: Final = re.compile(r"(?:叫|是)(?P<who>[\u4e00-\u9fff]{2,4})$")  # 前任叫许嘉，还欠我钱
_OF_KIN: Final = re.compile(r"(?:User said: |About )?User's (?P<who>[a-z]+)(?= (?-i:[A-Z])|'s|:| )")
_OF_PERSON: Final = re.compile(
    r"(?:User said: )?(?:User's (?:[a-z-]+ ){1,2})?(?P<who>(?!User\b)[A-Z][\w’-]+)\b(?! and\b)"
)
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
    r"\b(?:salary|pay|wages?|income|earn\w*|figure|amount|sum|price|rent|how much|money)\b"
    r"|工资|工資|月薪|年薪|薪水|收入|多少钱|多少錢|数字|數字|金额|金額|房租|价格",
    re.IGNORECASE,
)
_AMOUNT: Final = re.compile(
    r"(?: (?:earning|earns?|making|makes?|paid|getting|gets?"
    r"|on|for|at|paying|pays?))? (?:about |around |roughly )?(?:[£€$₹¥R] ?)?\d[\d,.]*(?: \d{3})*"
    r"(?: ?(?:k|lakhs?|lpa|crores?|grand|thousand|million|rupees|dollars|euros|pounds|quid|bucks|rs"
    r"|inr|rand|naira))?\b(?: (?:per|an?|each|every) \w+)?"
    rf"|(?:月薪|年薪|工资|工資|薪水|收入|到手|房租|一个月|每月|每个月)[^，,。]{{0,4}}?[\d{NUMERALS}][\d{NUMERALS}万萬千,.]*"
    r"(?:元|块|塊|k|K|w|W)?(?:钱|錢)?",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(r"(?:\S+ )?\S*\d\S*(?: \S+)?")
_SECRET: Final = re.compile(
    r"\bpass(?:word|code|phrase)?\b(?! (?:me|the|on|out|by))|\bpin\b|密码|口令", re.I
)


def without_parts(
    heard: Heard,
    item: MemoryItem,
    meant: set[int],
    kept: set[int],
    goes_with: Callable[[str, str], bool],
    *,
    rest_stays: bool,
) -> Change:
    """The item without the parts that are meant and what only goes on about them, but for what is
    to stay; forgotten where nothing of it is left to read. What it tells of the past goes with any
    of them.

    goes_with: whether one part says nothing without the one before it. rest_stays: whether the
    request says that something else is to stay."""
    if meant == {THE_PAST}:
        return _rewritten(heard, item, present(item.text))
    if rest_stays or not ALL_OF_IT.search(heard.own):
        left = _without_amount(heard.own, present(item.text))
        if left is not None:
            return _rewritten(heard, item, left)
    parts = parts_of(present(item.text))
    if not rest_stays and of_whom_all_goes(heard.own, item.text):
        return forgets(heard, item)
    if not _OF_NAME.search(heard.own) or _ALL_ABOUT.search(heard.own):  # "my ex's name"
        meant = meant | {n - 1 for n in meant - kept if _is_name_of_last(n, parts)} - kept
        if any(_CALLED.search(parts[n][0]) for n in meant - kept):
            # "Not a word about Brendan": who he is goes, and so does what "he" does.
            meant = meant | {n for n, (part, _) in enumerate(parts) if _PRONOUN.match(part)} - kept
    stay = [n for n in range(len(parts)) if n not in meant]
    stay = [n for n in stay if n in kept or not _hangs_on_what_goes(n, parts, stay)]
    for n in list(stay):  # in order: what hangs on a torn one is torn too
        if n not in kept and _is_torn(
            n, item.text, parts, stay, all_of=heard.own if ALL_OF_IT.search(heard.own) else ""
        ):
            stay.remove(n)
    said = [with_subject(item.text, part) for part, _ in parts]
    left_over: list[int] = []
    for n in stay:
        behind_gone = n > 0 and n - 1 not in left_over
        if behind_gone and _is_of_owner(item.text, parts[n][0]):
            # 女儿在二小上学，她怕狗: what else is told of her is no remark on her school.
            behind_gone = ALL_OF_IT.search(heard.own) is not None
        if n in kept or not (behind_gone and goes_with(said[n], said[n - 1])):
            left_over.append(n)
    stay = left_over
    if not any(n in kept or is_readable(item.text, parts[n][0]) for n in stay):
        return forgets(heard, item)
    left = left_of(item.text, parts, stay)
    if _SECRET.search(left):
        return forgets(heard, item)  # the very thing that was to go
    return _rewritten(heard, item, left)


def _without_amount(own: str, text: str) -> str | None:
    """The item without the one sum that it tells, where a request means a sum: "remove my salary
    figure" of "earns 18 lakhs at Infosys"."""
    if not _OF_AMOUNT.search(asked_for(own)) or len(_AMOUNT.findall(text)) != 1:
        return None
    left = re.sub(r"\s+", " ", _AMOUNT.sub(" ", text)).replace(" ,", ",").replace(" .", ".")
    left = re.sub(r"(?<=[\u4e00-\u9fff，]) | (?=[\u4e00-\u9fff，])|^，|，(?=[，。])", "", left)
    left = re.sub(r"^User (?=(?:at|with|in) )", "User is ", left.replace("：，", "："))
    if re.match(r"User (?:for|on|of|per|a|an|the)\b", left):
        return None  # "User for a flat in Leeds"
    if _OF_AMOUNT.search(left) or re.search(r"\d|\bow(?:e|es|ed|ing)\b|[欠借]", left):
        return None  # the sum is all that it tells, or something is left of it
    return left if words_of(left) - words_of(f"User said. {asked_for(own)}") else None


def goes_with(model: RelationModel, part: str, gone: str) -> bool:
    """Whether a part remarks on another or tells more of it: "I'm ashamed", 园里没人晓得."""
    from memograd.memory.relations import RELATIONS

    [row] = model.relate(part, (), [gone])
    more = float(row[RELATIONS.index("comment")] + row[RELATIONS.index("detail")])
    return more >= GOES_WITH


def of_whom_all_goes(own: str, text: str) -> bool:
    """Whether an item tells of somebody by name of whom a request wants all gone: "Remove Damian.
    Every trace."."""
    person, kin = _OF_PERSON.match(text), _OF_KIN.match(text)
    if ALL_OF_IT.search(own) is None:
        return False
    if kin and re.search(
        rf"\b(?:about|of|on|mention) (?:my|our) {kin['who']}\b(?!['’]s)", own, re.I
    ):
        return True  # "Delete everything you have about my cousin"
    if person is None:
        return False
    asked = (
        r"\b(?:about|of|mention|forget|remove|delete|erase|wipe|drop|scrub)(?: \w+){0,2}?"
        rf" {re.escape(person['who'])}\b(?!['’]s)"  # "Damian's job" is not all of him
    )
    return re.search(asked, own) is not None


def _is_of_owner(text: str, part: str) -> bool:
    """Whether a part tells something of the one that the item begins with."""
    return _PRONOUN.match(part) is not None and stands_alone(text, part)


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
    all_of: str,
) -> bool:
    """Whether a part behind one that goes says nothing without it: ", she owes me forty dollars";
    ", keeps me right"; ", and mornings only"; ", with our Janice"; ". Pokies mostly"; ，从一百六
    十八斤开始的.

    all_of: the request where it means all of something, else empty."""
    if not n or n - 1 in stay:
        return False
    if _PRONOUN.match(parts[n][0]) and not stands_alone(text, parts[n][0]):
        return True
    if is_chinese(text):
        first = parts[0][0] if 0 not in stay else ""
        theirs = [one["who"] for one in (_OF_KIN_ZH.match(first), _OF_NAME_ZH.search(first)) if one]
        if any(who in all_of for who in theirs) and not _SUBJECT_ZH.match(parts[n][0]):
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
        if n not in stay and _VALUE.fullmatch(parts[n][0]):
            return False  # "5ft4, 82 kilos, doing a walk": a value has nothing behind it
        if n not in stay:
            return True
    return False


def forgets(heard: Heard, item: MemoryItem) -> Change:
    decision = Decision(MemoryOp.delete(item.id), reason("forget", item.text, quoted=True))
    return Change(decision, heard.as_fact, hide=True)
