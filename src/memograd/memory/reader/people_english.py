"""Who an English text speaks of: relations, titles, callings, names, animals.

    my good friend Selorm, Dr Oyelaran, the health visitor, a kitten, Garth called

A name is told from a place or a thing by what stands around it; where nothing tells, it only
stands in the way of others. Invariant: what is found stands in the text. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from memograd.memory.reader.people import Person, Sex, one_each

_IN_LAW = r"[- ]in[- ]law"
_HER: Final = (
    rf"mother{_IN_LAW}|sister{_IN_LAW}|daughter{_IN_LAW}|wife|mum|mom|mam|mama|mother|sister"
    r"|daughter|girlfriend|aunt|auntie|aunty|gran|granny|nan|nana|grandma|grandmother|niece"
    r"|granddaughter|girl|ex-wife|landlady|stepmum|stepmother|stepdaughter"
)
_HIM: Final = (
    rf"father{_IN_LAW}|brother{_IN_LAW}|son{_IN_LAW}|husband|dad|papa|father|brother|son"
    r"|boyfriend|uncle|grandad|granddad|grandpa|grandfather|nephew|grandson|boy|lad|ex-husband"
    r"|landlord|stepdad|stepfather|stepson|old man"
)
_EITHER: Final = (
    r"partner|friend|mate|boss|manager|colleague|coworker|co-worker|roommate|flatmate|housemate"
    r"|teammate|neighbour|neighbor|cousin|baby|kid|child|fiancée|fiancé|fiance|fiancee|ex|teacher"
    r"|tutor|coach|therapist|doctor|dentist|mentor|supervisor|assistant|client|student|eldest"
    r"|oldest|youngest|twin"
)
_HIRED: Final = (
    r"doctor|physio(?:therapist)?|surgeon|nurse|neurologist|dentist|vet|optician|therapist|tutor"
    r"|teacher|boss|manager|landlord|plumber|electrician|conductor|mechanic|builder|agent|lawyer"
    r"|solicitor|midwife|health visitor|consultant|coach|postman|foreman|trainer|driver"
    r"|cleaner|nanny|babysitter|childminder|gardener|carer|hairdresser|barber|osteopath"
    r"|chiropractor|counsell?or|dietitian|pharmacist|accountant|realtor|pastor|priest|vicar|rabbi"
    r"|imam|psychiatrist|pa?ediatrician|specialist|roofer|painter|decorator|au pair"
)
_PET: Final = (
    r"dog|cat|horse|pony|hamster|rabbit|bunny|puppy|pup|kitten|parrot|budgie|tortoise|lizard|snake"
    r"|goldfish|goat|cow|hen|ferret|guinea pig"
)
_NAME: Final = r"[A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]+(?:-[A-Z][a-z]+)?"
_TITLE: Final = (
    r"(?:(?P<her{n}>Mrs|Ms|Miss|Aunt(?:ie|y)?)|(?P<him{n}>Mr|Uncle|Sir)|Dr|Prof|Professor|Coach"
    r"|Nurse)\.?"
)
_CALLED: Final = (
    r"(?:,? (?:called|named|name of)|(?:['’]s| is| was) (?:called|named)|,)?"
    rf" (?-i:(?P<name>{_NAME}))"
)
_PERSON: Final = re.compile(
    r"\b(?P<whose>my|our) (?:[a-z]+ ){0,2}?"
    rf"(?:(?P<her>{_HER})|(?P<him>{_HIM})|(?P<either>{_EITHER})|(?P<it>{_PET}))(?![\w-])"
    rf"(?:(?:,|,? (?:called|named)|['’]s called| is called)?"
    rf" (?-i:(?P<name>(?:{_TITLE.format(n=1)} )?{_NAME}(?: {_NAME})?)))?",
    re.IGNORECASE,
)
# "His daughter Philippa", "Garth's boy Colt": somebody else's, so that the name says who.
_OTHERS: Final = re.compile(
    rf"\b(?:his|her|their|{_NAME}['’]s|a|an|the) (?:[a-z]+ ){{0,2}}?"
    rf"(?:(?P<her>{_HER}|woman|lady)|(?P<him>{_HIM}|man|guy|fella|bloke)|(?P<either>{_EITHER})"
    rf"|{_HIRED}|(?P<it>{_PET})){_CALLED}",
    re.IGNORECASE,
)
_TITLED: Final = re.compile(rf"\b(?P<name>{_TITLE.format(n='')} {_NAME})")
_CALLING: Final = re.compile(
    rf"\b(?P<name>(?:the|a|an|that|this|some|one) (?:(?!my|our)[a-z]+ ){{0,2}}?(?:{_HIRED}|friend"
    r"|mate|colleague|neighbou?r|(?P<her>landlady|girl|woman|lady)|(?P<him>boy|man|guy|fella|bloke"
    rf"|lad)|(?P<it>{_PET})))(?![\w-])(?!['’]s [a-z]+(?:['’]s)? )(?! (?:called|named)\b)",
    re.IGNORECASE,
)
# "Doctor said", "Health visitor came": people leave out the article.
_BARE_CALLING: Final = re.compile(
    rf"(?:^|[.!?]\s+)(?P<name>{_HIRED}|doc)(?=['’]s\b| (?:says?|said|is|was|came|rang|called|told"
    r"|wants?|thinks?|gave|put|signed|has|had)\b)",
    re.IGNORECASE,
)
_KIN_HER: Final = "mum|mom|mam|mama|mummy|mother|nan|nana|gran|granny|grandma"
_KIN_HIM: Final = "dad|papa|daddy|father|grandad|granddad|grandpa|gramps"
BARE_KIN: Final = f"{_KIN_HER}|{_KIN_HIM}"
"""Relations that people name without "my"."""
# "Mum's hip op is on Monday": whoever says so means their own.
_BARE_KIN: Final = re.compile(
    rf"(?:(?:^|[.!?;:,]\s+|\b(?:and|but|so|because|cos|that|says?|said|with|told|asked)\s+)"
    rf"(?:(?P<her>{_KIN_HER})|(?P<him>{_KIN_HIM}))"
    r"(?=['’]s\b| (?!(?:and|jokes?|of|to|bread)\b)(?-i:[a-z])))",
    re.IGNORECASE,
)
# A name that is no place: "met Anna", but not "in Omaha" or "the Alpicool".
_NAMED: Final = re.compile(rf"(?<=[a-zà-ÿ,(] ){_NAME}(?: {_NAME})*(?=[\s,.!?;:'’)]|$)")
_NO_PERSON: Final = re.compile(
    r"(?:\b(?:in|at|from|to|the|a|an|on|of|near|like|for|since|by|this|next|last|every|via|into|me"
    r"|us|my|our|around|through|until|till|eats?|drinks?|drives?|wears?|uses?|plays?|reads?|buys?"
    r"|watch(?:es)?|cooks?|takes?)|[.!?:]) $",
    re.IGNORECASE,
)
_SOMEBODY: Final = re.compile(
    r"\b(?:and|with|met|saw|see|told|tell|asked|ask|called|named|married|marry|love|miss|visit"
    r"|visited|helped|help|phoned|rang|texted|friend|colleague|says|said|thanks|hired|invited"
    r"|hugged|kissed|meet|making|made|letting|let|feeding|feed|walking|walk"
    r"|because|but|so|that|when|if|as|between|than),? $"
)
_DOING: Final = (
    r"says?|said|told|tells|called|rang|phoned|texted|wants?|wanted|got|gets|had|has|took|takes"
    r"|lives?|lived|works?|worked|likes?|liked|loves?|loved|hates?|hated|thinks?|thought|reckons?"
    r"|bought|buys|quit|left|died|passed|failed"
    r"|retired|married|expecting|pregnant|gave|gives|asked|asks|made|makes|lost|won|put|threw|teaches|taught|studies|owes|plays|played|plans|hauled|brought"
    r"|proposed|slept|sent|wrote|cooked|joined|mentioned|helped|showed|invited|cried|laughed|wept"
    r"|smiled|hugged|ate|drank|sang|drives|drove|knows|knew|needs|found|met|visited|forgot|promised"
    r"|offered|offers|decided|agreed|refused|dreamt|dreamed|sold|hired"
    r"|painted|built|fixed|picked|drew|swears|reminded|warned|suggested|complained|paid|borrowed"
    r"|flew|graduated|applied|qualified|insists|insisted|walked|walks|hugs|kissed"
)
# "Op went great": things do it too.
_MOVING: Final = (
    r"came|come|comes|went|goes|moved|started|starts|broke|ran|runs|fell|turned|turns|landed"
    r"|returned|returns|finished|did|does|doesn['’]?t|didn['’]?t|won['’]?t|can['’]?t"
)
# Whoever does this is a person or an animal: "Garth called", "Declan's packed in the boats".
_DOES: Final = re.compile(
    r"(?:(?:^|[.!?;:,(]|\b(?:and|but|so|cos|because|that|said|says))\s*(?<![\w])|^)"
    rf"(?P<name>{_NAME})"
    r"(?=(?:['’]s (?:\w+ed|\w+ing|got|gone|not|been|a|an|my|our|off|put|in|\d+)\b"
    rf"|['’]ll\b| (?:(?:just|also|only|finally|never|always|has|had|is|was) )?"
    rf"(?:(?:{_DOING})|(?P<moving>{_MOVING}))\b))"
)
# "Ste at the garage said"
_FROM: Final = re.compile(
    rf"(?:^|[.!?;:,]\s+)(?P<name>{_NAME}) (?:from|at|in|who|next door|upstairs|downstairs|across)\b"
    rf"[^.,!?;:]{{0,30}}? (?:{_DOING})\b"
)
# "Klara's van broke": she has one.
_OWNS: Final = re.compile(
    rf"(?:^|[.!?;:,]\s+)(?P<name>{_NAME})['’]s [a-z]+(?: [a-z]+)?(?:['’]s\b| )"
)
_NO_NAME_WORDS: Final = """
    i we he she it they you this that there the a an my our his her their its and but or
    so if when while after before because since also then now just not no yes yeah still
    already never finally what who where how why which some somebody someone everyone
    nobody monday tuesday wednesday thursday friday saturday sunday january february march
    april may june july august september october november december work school god doctor
    everything nothing something anyway today tomorrow yesterday tonight life money time
    traffic weather truck car house christmas easter hes shes
    women men mother father dad mum mom nan gran people kids boss doc coach landlord valentine
    teacher physio nurse vet dentist happy thanks
    english spanish french german italian portuguese chinese japanese korean polish dutch arabic
    british american irish scottish welsh indian
"""
_NO_NAMES: Final = frozenset(_NO_NAME_WORDS.split())
_PLACES: Final = """
    day island street road school university park hill airport station hospital bank house lake
    river beach bridge club bay town city church square
"""
_PLACE_WORDS: Final = frozenset(_PLACES.split())

_LEAD: Final = (
    r"(?:(?:apparently|then|now|today|tonight|also|still|maybe|meanwhile|at first|so far"
    r"|these days|in the end|because|since then|plus|afterwards|(?:it )?turns out|sadly|luckily"
    r"|obviously|honestly|once|yesterday|last (?:week|night|month|year)|this (?:week|morning|month)"
    r"|i (?:think|guess|hope|reckon|know|believe)),? (?:that )?)?"
)
_POINTED: Final = re.compile(
    rf"{_LEAD}(?:(?P<her>she|her)|(?P<him>he|his))(?=['’ ])(?! or\b)"
    r"|(?:(?:i|we)(?:['’]\w+)?(?: (?!(?:my|our|the|a|an|your|that|if|when|and|or|but)\b)"
    r"(?-i:[a-z'’]+)){1,4}|took|told|gave|met|saw|asked|sent|drove|brought|made|named|called"
    r"|texted|visited|helped) (?:(?P<her2>her)|(?P<him2>him|his))\b(?! or\b)",
    re.IGNORECASE,
)
_PRONOUN: Final = re.compile(
    r"\b(?:(?P<her>she|her|hers)|(?P<him>he|him|his))\b(?! or\b)", re.IGNORECASE
)


def pointed(sentence: str) -> Sex | None:
    """Which pronoun the sentence has that nobody in it can be; None where it has none."""
    found = _POINTED.match(sentence.lstrip())
    if found is None:
        return None
    return "her" if found["her"] or found["her2"] else "him"


def pronouns(text: str) -> Iterator[tuple[int, Sex]]:
    """Place and sex of each pronoun."""
    for one in _PRONOUN.finditer(text):
        yield one.start(), "her" if one["her"] else "him"


def people(text: str) -> list[Person]:
    """The people and animals that are spoken of, each once however they are worded."""
    found: list[Person] = []
    for pattern in (_PERSON, _OTHERS, _TITLED):
        found += [_person(one, whole=pattern is _PERSON) for one in pattern.finditer(text)]
    found += [
        replace(_person(one, whole=False), said=f"my {_kin(one)}", name=_kin(one).casefold())
        for one in _BARE_KIN.finditer(text)
    ]
    callings = [_person(one, whole=False) for one in _CALLING.finditer(text)]
    callings += [
        replace(_person(one, whole=False), said=f"the {one['name'].lower()}")
        for one in _BARE_CALLING.finditer(text)
    ]
    if not any(_TITLED.fullmatch(one.name) for one in found):
        found += callings  # "We saw the neurologist. Dr Abernethy." is one person
    for pattern in (_DOES, _OWNS, _FROM):
        for one in pattern.finditer(text):
            if one["name"].casefold() not in _NO_NAMES:
                sure = "-" in one["name"] or not one.groupdict().get("moving")  # Yi-Ting
                found.append(replace(_person(one, whole=False), at=one.start("name"), sure=sure))
    for one in _NAMED.finditer(text):
        words = one[0].casefold().split()
        before = text[: one.start()]
        if _PLACE_WORDS & {*words} or words[0] in _NO_NAMES or _NO_PERSON.search(before):
            continue
        person = Person(one[0], one[0], one.start(), one.end())
        owns = text[one.end() :].startswith(("'s ", "’s "))
        found.append(replace(person, sure=owns or _SOMEBODY.search(before) is not None))
    return _joined(one_each(sorted(found, key=lambda one: not one.sure)), text)


_CALLED_SO: Final = re.compile(r"(?:,|['’]s| is)? (?:called|named)(?= [A-Z])")


def _person(one: re.Match[str], *, whole: bool) -> Person:
    parts = one.groupdict()
    name = parts.get("name") or one[0]
    her = bool(parts.get("her") or parts.get("her1"))
    him = bool(parts.get("him") or parts.get("him1"))
    said = _CALLED_SO.sub("", one[0]) if whole else name
    return Person(said, name, one.start(), one.end(), her or not him, him or not her)


def _kin(one: re.Match[str]) -> str:
    return str(one["her"] or one["him"]).casefold()


# "My riding partner is my friend Selorm", "Dan's my brother in law": one and the same.
_IS: Final = re.compile(r"(?:['’]s| is| was)(?: called| named)? ")
_IS_NAMED: Final = re.compile(rf"{_IS.pattern}|, | \(")


def _joined(people: list[Person], text: str) -> list[Person]:
    """The people, two of whom one is said to be the other as one."""
    kept: list[Person] = []
    for one in people:
        last = kept[-1] if kept else None
        names = [other for other in (last, one) if other and _is_name(other)]
        adds = len(names) == 1 or one.said.startswith(("a ", "an "))  # "Selorm, a dentist"
        joint = _IS_NAMED if adds else _IS
        fits = last and ((last.her and one.her) or (last.him and one.him))
        if last and fits and len(names) < 2 and joint.fullmatch(text[last.end : one.at]):
            other = last if one in names else one
            kept[-1] = Person(
                f"{other.said} {names[0].name}" if names else (last if adds else one).said,
                f"{last.name} {one.name}", last.at, one.end,
                last.her and one.her, last.him and one.him,
            )  # fmt: skip
        else:
            kept.append(one)
    return kept


def _is_name(one: Person) -> bool:
    return one.said == one.name and one.said[:1].isupper() and one.said[:3] not in ("My ", "Our")
