"""English verbs as far as a change of person needs them: `I live` becomes `Caroline lives`.

Invariant: a past form, a modal and a form that already agrees stay as they are
(`tests/memory/test_reader_person.py`). Pure functions.
"""

from __future__ import annotations

from typing import Final

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
    "don't": "doesn't", "haven't": "hasn't", "aren't": "isn't", "ain't": "isn't", "go": "goes",
    "wanna": "wants to", "gotta": "has to", "were": "was", "weren't": "wasn't",
}  # fmt: skip
_BASE_IN_ED_WORDS = """
    need feed speed bleed breed proceed succeed exceed embed heed
"""
_BASE_IN_ED: Final = frozenset(_BASE_IN_ED_WORDS.split())
_ADVERBS_WORDS = """
    really just also always never still usually often sometimes actually even only currently
    recently now already finally kinda totally mostly rarely seldom basically honestly truly
    absolutely definitely probably maybe both all generally normally occasionally ever once soon
    deeply highly completely simply mainly particularly especially regularly officially super
    genuinely greatly fully previously originally frequently firmly strongly personally
    first finally literally typically hardly barely so very not
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
    if low.endswith(("s", "x", "z", "ch", "sh")):
        return f"{verb}es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"
