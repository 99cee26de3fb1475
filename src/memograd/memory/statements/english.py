"""English statements of the typical forms: `Alice lives in Boston`, `Alice's dog is called Rex`.

A sentence is first laid bare (dates, words like "now" and "really", the negation), then the forms
are tried in order, the special before the general. Every form has a row in
`tests/memory/test_statements.py`. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.statements.statement import Statement

ENDED: Final = re.compile(r"\b(no longer|any ?more|any longer|not .* any ?more)\b", re.IGNORECASE)
_NOT: Final = re.compile(
    r"\b(?:does|do|did|is|are|was|were|has|have|can|could|will)(?: not|n't)\b|\bnever\b|\bcannot\b",
    re.IGNORECASE,
)
_LIGHT: Final = re.compile(
    r"\b(?:now|currently|actually|really|just|recently|also|still|always|already|finally|nowadays"
    r"|these days|instead|truly|absolutely|very much|no longer|any ?more|any longer|as of now"
    r"|at the moment|totally|definitely|officially|then)\b",
    re.IGNORECASE,
)
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
)
_DATE = re.compile(
    rf"[\s,]*\b(?:on|in|since|around) (?:the week (?:of|before|after) )?(?:\w+day )?"
    rf"(?:\d{{1,2}} )?(?:{_MONTH} )?\d{{4}}$|^(?:on|in) (?:\d{{1,2}} )?(?:{_MONTH} )?\d{{4}}, ",
    re.IGNORECASE,
)
_ATTRIBUTES: Final = {
    "phone number": "phone", "phone": "phone", "mobile number": "phone", "cell": "phone",
    "telephone number": "phone", "number": "phone", "mobile": "phone",
    "email": "email", "e-mail": "email", "email address": "email",
    "address": "address", "home address": "address", "birthday": "birthday",
    "date of birth": "birthday", "job": "job", "occupation": "job", "profession": "job",
    "job title": "job", "employer": "employer", "workplace": "employer", "company": "employer",
    "age": "age", "name": "name", "full name": "name", "hometown": "hometown",
    "home town": "hometown", "height": "height", "weight": "weight", "gender": "gender",
    "home": "residence", "city": "residence", "marital status": "marital status",
    "relationship status": "marital status", "diet": "diet", "education": "education",
}  # fmt: skip
_PROFESSIONS = """
    engineer, developer, programmer, teacher, nurse, doctor, lawyer, writer, author, designer,
    artist, chef, cook, student, manager, director, scientist, analyst, accountant, architect,
    dentist, pilot, driver, farmer, firefighter, police officer, journalist, librarian,
    musician, painter, pharmacist, photographer, physicist, plumber, professor, psychologist,
    counselor, therapist, researcher, salesperson, secretary, singer, soldier, surgeon,
    translator, veterinarian, vet, waiter, waitress, actor, actress, baker, barista, barber,
    carpenter, cashier, consultant, dancer, editor, electrician, freelancer, gardener,
    hairdresser, judge, mechanic, model, officer, optician, paramedic, producer, realtor,
    reporter, tailor, trainer, tutor, zookeeper, florist, founder, ceo, cto, intern, clerk,
    coach, guide, banker, broker, assistant, technician, specialist, administrator, biologist,
    chemist, midwife, welder, butcher, locksmith, bookbinder, paralegal, surveyor, conductor,
    ranger, host, carer, nanny, maid, attendant, hygienist, advisor, adviser, worker,
    receptionist, bartender, economist, geologist, historian, beekeeper, bookseller, curator,
    jeweler, glassblower, potter
"""
PROFESSION_WORDS: Final = tuple(" ".join(name.split()) for name in _PROFESSIONS.split(","))
PROFESSIONS: Final = rf"(?:{'|'.join(PROFESSION_WORDS)})"
_SUBJECT = r"(?P<s>[\w'’ .-]{1,60}?)"
_VALUE = r"(?P<v>.+)"
_FORMS: Final[tuple[tuple[str, str, bool], ...]] = tuple(
    (slot, rf"^{_SUBJECT} {form}$", positive)
    for slot, form, positive in (
        ("allergy", rf"(?:is|are|am) allergic to {_VALUE}", True),
        ("allergy", rf"(?:has|have) (?:an|a severe|a) allergy to {_VALUE}", True),
        ("allergy", r"(?:has|have) an? (?P<v>[\w -]+) allergy", True),
        ("name", rf"(?:is|are|was) (?:called|named) {_VALUE}", True),
        ("called", rf"(?:wants|prefers|likes) to be called {_VALUE}", True),
        ("age", r"(?:is|turned|turns|has turned) (?P<v>\d{1,3})(?: years? old)?", True),
        ("age", r"(?:is|are) (?P<v>\w+(?:-\w+)?) years? old", True),
        ("birthday", rf"(?:was|were) born on {_VALUE}", True),
        (
            "marital status",
            r"(?:is|got|are|has been|have been) (?:happily |newly )?"
            r"(?P<v>married|single|divorced|engaged|widowed|separated)(?: (?:to|for|with) .+)?",
            True,
        ),
        ("diet", r"(?:is|became|went|has become) (?:an? )?(?:strict )?"
                 r"(?P<v>vegan|vegetarian|pescatarian)", True),
        ("job", r"(?:works|work|worked|is working|has worked|began working|started working|started)"
                rf" as (?:an? |the )?{_VALUE}", True),
        ("job", rf"(?:got|was|has been|is) promoted to {_VALUE}", True),
        (
            "job",
            r"(?:is|became|has become|was hired as|started as) (?:an? |the )?"
            rf"(?P<v>(?:[\w-]+ ){{0,3}}{PROFESSIONS}(?: (?:at|in|for) .+)?)",
            True,
        ),
        ("employer", r"(?:works|work|is working|has worked|started working|began working"
                     rf"|started|began) (?:at|for) {_VALUE}", True),
        ("employer", rf"(?:got|has|started|took|found) a(?: new)? job (?:at|with) {_VALUE}", True),
        ("residence", r"(?:lives|live|lived|resides|is living|has lived|is based|are based"
                      r"|has been living|stays|settled|is settled|settled down) (?:in|at|on) "
                      r"(?P<v>.+)", True),
        ("residence", r"(?:has |have |had |is |are )?(?:moved|moving|moves|relocated|relocating"
                      r"|moved back|moved away|moved house)"
                      r"(?: back| house| away| over)?(?: from .+?)? to (?P<v>.+)", True),
        ("hometown", rf"(?:is|are|comes|come|hails|grew up) (?:originally )?(?:from|in) {_VALUE}",
         True),
        ("likes", r"(?:likes|like|liked|loves|love|loved|enjoys|enjoy|adores|adore|is fond of"
                  r"|is into|is a (?:big |huge )?fan of|is keen on|is passionate about) (?P<v>.+)",
         True),
        ("likes", r"(?:hates|hate|hated|dislikes|dislike|disliked|can't stand|cannot stand"
                  r"|detests|loathes) (?P<v>.+)", False),
        ("plays", r"(?:is learning to play|is learning|started playing|began playing"
                  r"|started learning|learns) the (?P<v>.+)", True),
        ("hobby", r"(?:has been|is|spends) (?:spending )?their (?:evenings|weekends|free time)"
                  r" (?:on|with) (?P<v>.+)", True),
        ("hobby", rf"(?:took up|has taken up) {_VALUE}", True),
        ("employer", r"(?:quit|left|lost|resigned from|gave up) (?:their|his|her) (?:old )?job"
                     r" (?:at|with) (?P<v>.+)", False),
        ("partner", r"(?:broke up with|split up with|separated from|split from) (?P<v>.+)", False),
        ("habit", r"(?:has )?(?:quit|given up|gave up|stopped) "
                  r"(?P<v>(?!on\b|their\b)\w+(?:ing\b.*)?)", False),
        ("habit", r"(?:started|took up|picked up|resumed) (?P<v>\w+ing)", True),
        ("habit", r"(?P<v>smokes|vapes|gambles)", True),
        ("plan", r"(?:has )?cancell?ed (?:their |the |his |her |a )?(?P<v>.+)", False),
        ("plan", r"(?:is planning|plans|booked|has booked) (?:their |the |his |her |an? )"
                 r"(?P<v>.+)", True),
        ("partner", rf"(?:is|started|began|has been) dating {_VALUE}", True),
        ("prefers", rf"(?:prefers|prefer|preferred) {_VALUE}", True),
        ("visited", r"(?:has |have )?(?:visited|been to|went to|travell?ed to|flew to"
                    r"|took a trip to) (?P<v>.+)", True),
        ("has", r"(?:has|have|owns|own|got|has got|have got|adopted|bought|keeps) "
                r"(?P<v>(?:an?|one|two|three|four|five|six|\d+|some|no) .+)", True),
        ("drives", rf"(?:drives|drive) {_VALUE}", True),
        ("plays", rf"(?:plays|play) {_VALUE}", True),
        ("speaks", rf"(?:speaks|speak) {_VALUE}", True),
        ("studies", rf"(?:studies|study|is studying|majors in) {_VALUE}", True),
        ("uses", rf"(?:uses|use) {_VALUE}", True),
        ("drinks", rf"(?:drinks|drink) {_VALUE}", True),
        ("eats", rf"(?:eats|eat) {_VALUE}", True),
    )
)  # fmt: skip
_COMPILED: Final = tuple(
    (slot, re.compile(pattern, re.IGNORECASE), positive) for slot, pattern, positive in _FORMS
)
_FAVOURITE = re.compile(
    r"^(?P<s>.+?)'s? (?:(?:all-time|new|current) )?(?:favou?rite|fave) (?P<n>[\w -]+?) "
    r"(?:is|are|was|became|has become) (?P<v>.+)$",
    re.IGNORECASE,
)
_FAVOURITE_TURNED = re.compile(
    r"^(?P<v>.+?) (?:is|are) (?P<s>.+?)'s? (?:favou?rite|fave) (?P<n>[\w -]+)$", re.IGNORECASE
)
_ATTRIBUTE = re.compile(
    r"^(?P<s>[\w .-]+?(?:'s [\w .-]+?)?)'s? (?:new |current )?(?P<n>[\w-]+(?: [\w-]+){0,2}?) "
    r"(?:is called|is named|is|are|was|changed to|has changed to|became|switched to) "
    r"(?:on (?=.*\d))?(?P<v>.+)$",
    re.IGNORECASE,
)
_CALLED = re.compile(r"^(?P<s>.+'s .+?) (?:is|are|was) (?:called|named) (?P<v>.+)$", re.IGNORECASE)
_NOT_SUBJECTS_WORDS = """
    it that this there they he she you we i those these what which who and but if when
"""
_NOT_SUBJECTS = frozenset(_NOT_SUBJECTS_WORDS.split())


# A change told as one: what is given up and what takes its place.
_SWITCHED: Final = tuple(
    (slot, re.compile(rf"^{_SUBJECT} {form}$", re.IGNORECASE))
    for slot, form in (
        ("hobby", r"(?:switched|changed) hobbies[.!:;,] .+? (?:started|took up|began) (?P<v>.+)"),
        ("hobby", r"(?:got|grew) tired of their old hobby and (?:took up|started|began) (?P<v>.+)"),
        ("plays", r"(?:switched|changed) instruments[.!:;,] .+? (?:had their first|started playing"
                  r"|took up|plays) (?:the )?(?P<v>.+?)(?: lessons?\b.*)?"),
        ("plays", r"(?:gave|sold|put) their old instrument(?: away)? and (?:started|began|took up)"
                  r"(?: playing)? (?:the )?(?P<v>.+)"),
        ("drives", r"(?:traded in|sold|swapped) their (?P<o>.+?) (?:for|and bought) (?P<v>.+)"),
        ("*", r"(?:switched|changed) from (?P<o>.+?) to (?P<v>.+)"),
        ("*", r"replaced (?:their )?(?P<o>.+?) (?:with|by) (?P<v>.+)"),
    )
)  # fmt: skip
_RENAMED: Final = re.compile(
    rf"^{_SUBJECT} renamed (?:their|his|her) (?P<n>\w+) (?:to )?(?P<v>.+)$", re.IGNORECASE
)
_NEW_FAVOURITE: Final = re.compile(
    rf"^{_SUBJECT} (?:has|found|got|have) a new (?:favou?rite|fave) (?P<n>[\w -]+)[.!:;,] "
    r".+? (?:tried|had|discovered|is) (?P<v>.+)$",
    re.IGNORECASE,
)
_MOVED_DATE: Final = re.compile(
    r"^(?:the )?(?P<s>(?:[\w']+ ){0,4}?(?:meeting|appointment|deadline|party|flight|trip|wedding"
    r"|interview|exam|call|lesson|class|dinner|lunch|concert|conference|event|game|match|visit"
    r"|reservation|booking|delivery|release|launch)(?: (?:with|of|for) [\w' ]+?)?)"
    r"(?:'s date)? (?:has been |was |is |got |has |had )?(?:been )?"
    r"(?P<verb>moved|postponed|rescheduled|shifted|pushed back|pushed|brought forward|delayed"
    r"|changed|on|at) (?P<to>(?:to|until|till) )?(?P<v>.+)$",
    re.IGNORECASE,
)

# Where the value ends and the sentence goes on: "a midwife and the days fly by". A comma before one
# capitalised word at the end belongs to the value: "Boston, Massachusetts".
_GOES_ON: Final = re.compile(
    r"[.!?;] |, (?!(?:[A-Z][\w.]*)(?: [A-Z]\w*)?$)| [-–—] "
    r"| (?:but|so|because|since|while|'cause|where) "
    r"| and (?=(?:the|it|they|he|she|can|can't|is|are|has|loves|likes|enjoys|works|lives|\w+"
    r" (?:is|are|can|can't|has|loves|likes))\b)"
)
# What may follow the value in the same clause and says something of its own.
_ADJUNCTS: Final = {
    slot: re.compile(rf" (?:{words}) ")
    for slot, words in {
        "residence": "with|near|next to|for|after|as|and|at",
        "employer": "as|with|in|on|and",
        "job": "at|in|for|with|and",
        "hobby": "with|and|at",
        "plays": "with|and|at|in",
    }.items()
}
_WHEN: Final = (
    rf"\d|{_MONTH}|(?:next |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|tonight|noon"
    r"|(?:next|this) (?:week|month|weekend|year)|the \d"
)
_CLAUSE: Final = re.compile(r"(?:[,;] | [-–—] |[.!] )(?:and |but |so )?(?=[A-Z])")


def parse_english(text: str) -> Statement | None:
    """The statement of one English sentence, None where no form fits.

    Of several clauses the first that fits a form is taken.
    """
    whole = _parse(text)
    if whole is not None:
        return whole
    clauses = _CLAUSE.split(text)
    return next((found for c in clauses[1:] if (found := _parse(c))), None)


def _parse(text: str) -> Statement | None:
    ended = bool(ENDED.search(text))
    bare, negated = _lay_bare(text)
    found = _match(bare)
    if found is None:
        return None
    subject, slot, value, positive, instead_of = found
    subject, (value, rest) = subject.strip(" ,"), _cut(slot, value)
    if not subject or not value or subject.split()[0].casefold() in _NOT_SUBJECTS:
        return None
    if re.match(r"[A-Za-z]{3,}ing ", subject) and f"{subject}'s" in bare:
        return None  # "Losing Ann's job was hard" says nothing of a job
    if value.casefold().startswith("no ") and slot == "has":
        negated, value = True, value[3:]
    return Statement(subject, slot, value, positive != (negated or ended), ended, rest, instead_of)


def _cut(slot: str, value: str) -> tuple[str, str]:
    """The value itself, and what the sentence goes on to say."""
    ends = [end.start() for end in _GOES_ON.finditer(value)]
    if adjunct := _ADJUNCTS.get(slot):
        ends += [end.start() for end in adjunct.finditer(value)]
    end = min(ends, default=len(value))
    return _DATE.sub("", value[:end].strip(" ,.!;")).strip(" ,.!;"), value[end:].strip(" ,.!;")


def _lay_bare(text: str) -> tuple[str, bool]:
    """The sentence without dates, light adverbs and negation, and whether it was negated."""
    bare = _DATE.sub("", text.strip().rstrip(".!;").strip())
    negation = _NOT.search(bare)
    if negation:
        # "does not like" becomes "likes", "is not married" becomes "is married".
        auxiliary = negation.group().split()[0].casefold().removesuffix("n't")
        keep = auxiliary if auxiliary in ("is", "are", "was", "were", "has", "have") else ""
        bare = f"{bare[: negation.start()]}{keep}{bare[negation.end() :]}"
    bare = " ".join(_LIGHT.sub(" ", bare).split())
    return re.sub(r"\s+([,.;])", r"\1", bare).strip(" ,"), negation is not None


def _match(bare: str) -> tuple[str, str, str, bool, str] | None:
    """Subject, slot, value, whether positive, and what the value replaces."""
    for slot, pattern in _SWITCHED:
        if found := pattern.match(bare):
            return found["s"], slot, found["v"], True, found.groupdict().get("o") or "*"
    if found := _NEW_FAVOURITE.match(bare):
        return found["s"], f"favourite {found['n'].casefold()}", found["v"], True, ""
    if (found := _MOVED_DATE.match(bare)) and _is_day(found):
        return found["s"], "date", found["v"], True, ""
    for pattern in (_FAVOURITE, _FAVOURITE_TURNED):
        if found := pattern.match(bare):
            noun = found["n"].strip().casefold()
            return found["s"], f"favourite {noun}", found["v"], True, ""
    if found := _RENAMED.match(bare):
        return f"{found['s']}'s {found['n']}", "name", found["v"], True, ""
    if found := _CALLED.match(bare):
        owner, _, noun = found["s"].rpartition("'s ")
        return f"{owner}'s {noun}", "name", found["v"], True, ""
    if found := _ATTRIBUTE.match(bare):
        noun = found["n"].casefold()
        if noun in _ATTRIBUTES:
            return found["s"], _ATTRIBUTES[noun], found["v"], True, ""
    for slot, form, positive in _COMPILED:
        if hit := form.match(bare):
            return hit["s"], slot, hit["v"], positive, ""
    if found and not _is_description(found["v"]):
        return found["s"], f"attribute:{found['n'].casefold()}", found["v"], True, ""
    return None


def _is_day(found: re.Match[str]) -> bool:
    """Whether it names a day or an hour: `on Friday`, `to 12 June`; `on my mind` does not."""
    said = found["verb"].casefold() in {"on", "at"} or found["to"] is not None
    return said and re.match(rf"(?:on |at )?(?:{_WHEN})\b", found["v"], re.IGNORECASE) is not None


def _is_description(value: str) -> bool:
    """`so excited`, `doing well`: how something is, which is no value of a property."""
    first = value.split()[0].casefold()
    return first in {"so", "very", "really", "too", "not", "like", "going", "there", "here"} or (
        first.endswith("ing") and len(value.split()) > 1
    )
