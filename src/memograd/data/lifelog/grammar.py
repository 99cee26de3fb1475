"""Filling forms: who speaks about whom, pronouns, brackets, articles, and the look of a sentence.

Invariant: no bracket and no slot is left in a finished text. Pure functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BRACKETS = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")
_THIRD = {
    ("en", "f"): ("she", "her", "her", "herself"),
    ("en", "m"): ("he", "his", "him", "himself"),
    ("zh", "f"): ("她", "她的", "她", "她自己"),
    ("zh", "m"): ("他", "他的", "他", "他自己"),
    ("zh", "pet"): ("它", "它的", "它", "它自己"),
}
_FIRST = {"en": ("I", "my", "me", "myself"), "zh": ("我", "我的", "我", "我自己")}


@dataclass(frozen=True, slots=True)
class Naming:
    """How a clause names the one whom it is about: `I`, `Ann`, `my sister Mary`, or only `she`."""

    first_person: bool
    slots: dict[str, str]


def first_person(language: str) -> Naming:
    """The speaker, in the speaker's own words."""
    subject, possessive, other, self = _FIRST[language]
    return Naming(True, _slots(subject, possessive, other, subject, possessive, other, self))


def pronoun(language: str, sex: str) -> Naming:
    """Somebody who was named just before."""
    subject, possessive, other, self = _THIRD[language, sex]
    return Naming(False, _slots(subject, possessive, other, subject, possessive, other, self))


def by_name(language: str, name: str, sex: str) -> Naming:
    """Somebody by name; later in the clause, by the pronoun."""
    subject, possessive, other, self = _THIRD[language, sex]
    owner = f"{name}的" if language == "zh" else f"{name}'" if name[-1] == "s" else f"{name}'s"
    return Naming(False, _slots(name, owner, name, subject, possessive, other, self))


def _slots(
    who: str, whose: str, whom: str, he: str, his: str, him: str, self: str
) -> dict[str, str]:
    return {
        **{"who": who, "whose": whose, "whom": whom},
        **{"he": he, "his": his, "him": him, "self": self},
    }


def fill(form: str, naming: Naming, slots: dict[str, str]) -> str:
    """The clause of a form."""
    chosen = _BRACKETS.sub(lambda match: match[1 if naming.first_person else 2], form)
    if "{a_" in chosen:
        slots = with_articles(slots)
    return chosen.format_map(naming.slots | slots)


def with_articles(slots: dict[str, str]) -> dict[str, str]:
    """The slots, and `a_v` for each `v`, with the English article."""
    return slots | {
        f"a_{key}": f"{'an' if _sounds_like_a_vowel(value) else 'a'} {value}"
        for key, value in slots.items()
    }


def _sounds_like_a_vowel(word: str) -> bool:
    return word[:1].lower() in "aeio" or word.startswith(("X-ray", "umbrella"))


def sentence(text: str) -> str:
    """The text with a capital letter at its beginning and after each full stop. English only."""
    return re.sub(r"(^|[.?!] )([a-z])", lambda match: match[1] + match[2].upper(), text)


def lower_first(text: str, *, keep: bool) -> str:
    """The text to follow a comma; `keep` where it begins with a name."""
    return text if keep else text[:1].lower() + text[1:]
