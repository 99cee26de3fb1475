"""Who "I" and "you" are, written out: `I've moved with my dog` -> `Caroline has moved with...`.

Invariant: after resolving, no first person is left outside quotation marks. Pure functions.

English verbs as far as a change of person needs them: `I live` becomes `Caroline lives`.

Invariant: a past form, a modal and a form that already agrees stay as they are. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.reader.setting import OTHER, SPEAKER, outside_quotes, put_names, without_marks

_PAST_WORDS = """
    was were had did went came got made took gave saw knew thought felt found told said kept
    left met ran sat stood spoke spent taught understood won wrote ate drank drove flew forgot
    grew heard held hung hid led lent lost meant paid rode rose sang sold sent shook shot showed
    slept swam swore threw woke wore began bought brought broke built burnt caught chose dealt
    dreamt drew fell fed fought froze became bent bit blew bound bred clung crept dug fled flung
    forgave ground laid leapt learnt lit overcame proved rang sank sought shone shrank spelt
    spilt spun spoilt sprang stole stuck stung struck swept swung tore wept withdrew wound came
    overheard rebuilt redid undertook woke wed adopted ended
"""
_PAST: Final = frozenset(_PAST_WORDS.split())
# The same in the present and the past: what is meant cannot be told, so they stay.
_SAME_WORDS = """
    put cut hit set let quit cost hurt shut bet read spread burst cast
"""
_SAME: Final = frozenset(_SAME_WORDS.split())
_MODAL_WORDS = """
    will would can could shall should may might must ought cannot can't couldn't won't wouldn't
    shouldn't mustn't needn't didn't hadn't wasn't weren't 'll 'd used
"""
_MODAL: Final = frozenset(_MODAL_WORDS.split())
_IRREGULAR: Final = {
    "am": "is", "are": "is", "'m": "is", "'re": "is", "'ve": "has", "have": "has", "do": "does",
    "don't": "doesn't", "haven't": "hasn't", "aren't": "isn't", "ain't": "ain't", "go": "goes",
    "aint": "ain't", "been": "has been",
    "has": "has", "wanna": "wants to", "gotta": "has to", "were": "was", "weren't": "wasn't",
}  # fmt: skip
_BASE_IN_ED_WORDS = """
    need feed speed bleed breed proceed succeed exceed embed heed hundred sacred
    naked wicked weed seed
"""
_BASE_IN_ED: Final = frozenset(_BASE_IN_ED_WORDS.split())
_ADVERBS_WORDS = """
    really just also always never still usually often sometimes actually even only currently
    recently now already finally kinda totally mostly rarely seldom basically honestly truly
    absolutely definitely probably maybe both all generally normally occasionally ever once soon
    deeply highly completely simply mainly particularly especially regularly officially super
    genuinely greatly fully previously originally frequently firmly strongly personally
    first finally literally typically hardly barely so very not no longer rather quite almost
"""
ADVERBS: Final = frozenset(_ADVERBS_WORDS.split())


def is_past(verb: str) -> bool:
    """Whether the word is a past form (`went`, `moved`); `read` and `put` are not told apart."""
    verb = verb.casefold()
    return verb in _PAST or (verb.endswith("ed") and verb not in _BASE_IN_ED and len(verb) > 3)


def third_person(verb: str) -> str:
    """The form that goes with a name: `live` becomes `lives`, `went` stays."""
    low = verb.casefold().replace("’", "'")
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if low in _MODAL or low in _SAME or is_past(low) or not low.isalpha():
        return verb
    if low.endswith("s") and not low.endswith(("ss", "us", "is", "as")):
        return verb  # "I says to him"
    if low.endswith(("s", "x", "z", "ch", "sh")):
        return f"{verb}es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


_QUOTED: Final = re.compile(r"\"[^\"]*\"|“[^”]*”")
FIRST_PERSON: Final = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours|ourselves)\b", re.I)
_WOULD_BE_HAD: Final = re.compile(
    r"^(?:\w+ly |never |always |already |just )?(?:been|gone|done|seen|had|better|\w{2,}ed|taken"
    r"|given|known|written|met|made|heard|forgotten|become)\b"
)
_JOINED: Final = re.compile(
    r"^((?:(?:[Mm]y|[Oo]ur|[Tt]he) (?:\w+ )?(?:wife|husband|partner|mom|mum|mother|dad|father"
    r"|parents|sisters?|brothers?|sons?|daughters?|kids|children|family|friends?|girlfriend"
    r"|boyfriend|fianc\w+"
    r"|cousins?|aunt|uncle|grand\w+|boss|team|coworkers?|colleagues?|roommates?|neighbou?rs?|dogs?"
    r"|cats?)(?: [A-Z]\w+)?|(?!I\b)[A-Z]\w+(?: [A-Z]\w+)?)) and I\b(?!')"
)
# "We" is whoever speaks and whoever listens where it is the two who talk.
_BOTH_OF_US: Final = re.compile(
    r"\bwe(?= (?:both|(?:have )?(?:last |just )?(?:talked|talk|chatted|chat|spoke|caught up))\b)",
    re.IGNORECASE,
)
# A second verb of the same subject: "I live in Boston and work at Google".
_SECOND_VERB: Final = re.compile(
    r"(\b(?:and|but|or) (?:\w+ly |also |really |still |just )?)"
    r"(live|work|love|like|want|need|hope|have|think|feel|play|enjoy|hate|know|am|go|take|run|read"
    r"|eat|drink|use|write|speak|teach|study|plan|try|make|get|keep|help|look|sleep|care|sell|grow"
    r"|volunteer|coach)\b"
    # Many are nouns too ("self-acceptance and love theme"): what follows shows a verb.
    r"(?= (?:to|in|at|on|after|an?|the|my|our|it|them|him|her|with|for|as|that|so|very|\w+ing)\b)"
)


def resolve_person(text: str, speaker: str, other: str | None) -> str:
    """The sentence without first person; `you` too where `other` says who is addressed."""
    text = without_marks(text.replace("’", "'"))
    text = _TITLED.sub(r'\1"\2"', _without_calls(text))
    said = outside_quotes(text, _QUOTED, lambda one: _resolve(one, other is not None))
    return put_names(_lightened(said), speaker, other)


def _without_calls(text: str) -> str:
    """The text without "God help me" and "did I tell you", unless that is all of it."""
    shorter = _CALLS.sub(lambda one: "," * one[0].endswith(","), text).lstrip(" ,")
    return shorter if len(re.findall(r"\w{2,}", shorter)) > 1 or '"' in text else text


def _lightened(text: str) -> str:
    """The speaker's possessive only where the name has not been said: `Ann loves their dog`."""
    first = text.find(SPEAKER)
    head, tail = text[: first + 3], text[first + 3 :]
    outside_quotes = r"(?=[^\"]*(?:\"[^\"]*\"[^\"]*)*$)"
    return head + re.sub(rf"{SPEAKER}'s(?=\s){outside_quotes}", "their", tail)


_INVERTED: Final = re.compile(
    r"\b(am|was|have|do|did|can|could|should|would|will|may|must) I\b(?!-)", re.IGNORECASE
)


# "Mine sit in clay", "doctor said mine's 11": a subject, so a word that is no verb ends it.
_OWN_ONE: Final = re.compile(
    r"(?<!\bof )(?<!\bnot )(?<!\b(?:is|be) )(?<!['’]s )(?<!\b(?:was|are) )\b(?:mine|ours)\b"
    r"(?:(?P<is>['’]s)\b|(?= (?!(?:and|or|but|too|now|so|for|in|at|on|with|from|to|as|also"
    r"|either|because)\b)[a-z]))",
    re.IGNORECASE,
)
# Calls in passing, in which nobody is meant: "yes God help me, from September".
_CALLS: Final = re.compile(
    r",? ?\b(?:(?:god|lord|heaven|jesus) (?:help|forgive|save|bless)|forgive|excuse|pardon"
    r"|bear with|believe|trust|mind|search|dear|silly|lucky|poor)"
    r" me\b(?! (?:for|of|on|when|if|to)\b),?"
    r"|,? ?\bdid i (?:tell|mention(?: it)?(?: to)?|say(?: that)?|not (?:tell|say|mention))"
    r"(?: (?:you|it|that|this|already))*(?=[,.!?]|$),?",
    re.IGNORECASE,
)
# "Until the Libera me" is a title.
_TITLED: Final = re.compile(r"\b(the |The )((?:[A-Z][a-z]+ )+me)(?=[,.;!?]|$| (?:and|by|in)\b)")


def _agreed(auxiliary: str) -> str:
    """Do in "What do I get him": "What does User get him", the verb behind stays."""
    agreed = third_person(auxiliary.casefold())
    return agreed.capitalize() if auxiliary[0].isupper() else agreed


# "Everyone tells me I want too much" is about one person, and so is "I, I want".
_TOLD_ME: Final = re.compile(
    r"\b(?P<told>(?:tell|remind|text|warn|inform|promise|assure|show|convince|persuade|teach)"
    r"(?:s|es|ed|ing)?|told|taught) me (?=i\b)",
    re.IGNORECASE,
)
_AGAIN: Final = re.compile(r"\b(i|we)(?:,? |\.\.+ ?|… ?| ?[-–—] ?)(?=\1\b)", re.IGNORECASE)
_ME_I: Final = re.compile(r"\bme (?=I\b|i(?:'m|'ve|'d|'ll)? )")


def _resolve(text: str, addressed: bool) -> str:
    text = _AGAIN.sub("", text)
    text = _ME_I.sub("me, ", _TOLD_ME.sub(r"\g<told> me that ", text))
    text = _INVERTED.sub(lambda found: f"{_agreed(found[1])} {SPEAKER}", text)
    text = re.sub(r"\bI'm gonna\b", "I am going to", text, flags=re.I)
    # "My wife and I live": a plural subject, whose verb stays as it is.
    text = _JOINED.sub(rf"\g<1> and {SPEAKER}", text)
    text = _subject(text, "I", SPEAKER, singular=True)
    if addressed:
        text = _BOTH_OF_US.sub(f"{SPEAKER} and {OTHER}", text)
    text = _subject(text, "we", f"{SPEAKER} and others", singular=False)
    text = _OWN_ONE.sub(lambda one: f"{SPEAKER}'s own" + " is" * bool(one["is"]), text)
    for word, replacement in (
        ("my", f"{SPEAKER}'s"),
        ("mine", f"{SPEAKER}'s"),
        ("myself", "themself"),
        ("ourselves", "themselves"),
        ("me", SPEAKER),
        ("our", f"{SPEAKER}'s"),
        ("ours", f"{SPEAKER}'s"),
        ("us", f"{SPEAKER} and others"),
    ):
        flags = 0 if word == "us" else re.IGNORECASE  # the US is a country
        text = re.sub(rf"(?<![-.@/])\b{word}\b(?!\.\w|@|-)", replacement, text, flags=flags)
    return _second(text) if addressed else text


_ADVERBS: Final = (
    r"(?:\s+(?:(?!(?:apply|fly|rely|reply|supply|multiply|family)\b)\w+ly|"
    + "|".join(sorted(ADVERBS))
    + r")\b)*"
)
_AUXILIARIES: Final = frozenset(["has", "does", "is", "doesn't", "isn't", "hasn't"])


def _subject(text: str, word: str, name: str, *, singular: bool) -> str:
    """The word as a subject, with the verb behind it brought into agreement."""
    case = re.NOFLAG if word == "I" else re.IGNORECASE
    if word == "I":
        text = re.sub(r"(?<![\w.@'-])i(?=[ '])", "I", text)
    for short, long in (
        ("'m", " is"),
        ("'re", " are"),
        ("'ve", " has" if singular else " have"),
        ("'ll", " will"),
    ):
        text = re.sub(rf"\b{word}{short}(?!\w)", name + long, text, flags=case)

    def had_or_would(found: re.Match[str]) -> str:
        return name + (" had" if _WOULD_BE_HAD.match(text[found.end() :].lstrip()) else " would")

    text = re.sub(rf"\b{word}'d\b", had_or_would, text, flags=case)

    def agree(found: re.Match[str]) -> str:
        verb = found["verb"]
        if verb in ("are", "aren't") and text[: found.start()].endswith("and "):
            return found[0].replace(word, name, 1)  # "Boerie and I are watching"
        if not singular or verb.casefold() in ADVERBS:
            return f"{name}{found['adverbs']}{found['gap']}{verb}{found['rest']}"
        agreed, rest = third_person(verb), found["rest"]
        if agreed != verb and agreed not in _AUXILIARIES:
            rest = _SECOND_VERB.sub(lambda m: f"{m[1]}{third_person(m[2])}", rest)
        return f"{name}{found['adverbs']}{found['gap']}{agreed}{rest}"

    pattern = rf"\b{word}\b(?P<adverbs>{_ADVERBS})(?P<gap>\s+)(?P<verb>[A-Za-z']+)"
    text = re.sub(rf"{pattern}(?P<rest>(?:(?!\b{word}\b)[^,.;!?])*)", agree, text, flags=case)
    return re.sub(rf"\b{word}\b(?!'|-\d)", name, text, flags=case)  # I-80 is a road


# What may follow "you" where it is no subject.
_NO_VERBS_WORDS = """
    and or to for in on at with by as from about because when if so too a an the this that all
    guys both than but of there here again more now then while who two three lot folks
"""
_NO_VERBS: Final = frozenset(_NO_VERBS_WORDS.split())


_YOU_SUBJECT: Final = re.compile(
    r"(?P<before>^|[,;:.!?–—-] ?|\b(?:that|when|if|because|what|how|where|why|and|but|since|than"
    r"|know|think|hope|sure|glad|before|after|while|until|once|though|which|whenever|whatever) )"
    r"you (?P<adverb>(?:(?:ever|never|always|really|just|also|still|already) )?)(?P<verb>[a-z']+)",
    re.IGNORECASE,
)


def _second(text: str) -> str:
    for word, replacement in (
        ("you're", f"{OTHER} is"), ("you've", f"{OTHER} has"), ("you'll", f"{OTHER} will"),
        ("you'd", f"{OTHER} would"), ("yourself", "themself"), ("yours", f"{OTHER}'s"),
        ("your", f"{OTHER}'s"),
    ):  # fmt: skip
        text = re.sub(rf"\b{word}\b", replacement, text, flags=re.IGNORECASE)
    # Only where "you" begins a clause is it a subject: "if you go", but "let you down".
    text = _YOU_SUBJECT.sub(
        lambda m: (
            f"{m['before']}{OTHER} {m['adverb']}"
            + (m["verb"] if m["verb"] in _NO_VERBS else third_person(m["verb"]))
        ),
        text,
    )
    return re.sub(r"\byou\b", OTHER, text, flags=re.IGNORECASE)
