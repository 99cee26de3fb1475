"""How a language tells things: its tables of forms, frames and names, and how a form is filled.

A *form* is a clause with slots: `{who} [live|lives] in {v}`. What stands in brackets is said in the
first person, or in the third: `[live|lives]`. Slots: `{who}`, `{whose}` (I, my / Ann, Ann's),
`{he}`, `{his}`, `{him}` (a pronoun), `{v}` the value, `{old}` the value before, `{k}` the key,
`{d}` the detail, `{when}` a day; `{a_v}` has an article. A *frame* is a sentence around `{clause}`.
What each language says stands in `english.toml` and `chinese.toml`, in this shape; there
`pool = "cities"` names a list under `[pools]`, and `keys.of` with `keys.each` gives several keys
the same values.
Filling says who speaks about whom: pronouns, brackets, articles, the look of a sentence.

Invariants: no form and no frame of one split is in the other; a table has no key that is not read;
no bracket and no slot is left in a finished text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, Generic, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter

SplitName = Literal["train", "test"]
Texts = tuple[str, ...]
T = TypeVar("T")


class _Table:
    """Read from a file, in which a key that nobody reads is a slip of the pen."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Parts(_Table, Generic[T]):
    """What belongs to training, and what to the test."""

    train: tuple[T, ...] = ()
    test: tuple[T, ...] = ()

    def of(self, split: SplitName) -> tuple[T, ...]:
        """The part of that split."""
        return self.train if split == "train" else self.test

    def __bool__(self) -> bool:
        return bool(self.train or self.test)


Forms = Parts[str]
NOTHING = Forms()


def held_apart(pool: Texts, split: SplitName) -> Texts:
    """The values of a pool that belong to a split: every third one is kept for the test."""
    return tuple(value for place, value in enumerate(pool) if (place % 3 == 2) == (split == "test"))


@dataclass(frozen=True, slots=True)
class FormWording(_Table):
    """How one kind is told and asked for.

    pool: its values; where it has keys, the values of each. details: what a refinement adds, told
    with `more`; events tell `{d}` at once. change: the value is another now. end: it is over.
    ask, ask_more, ask_when, ask_before: questions for the value, the detail, the day, the value
    before. topic: what it is called by those who ask to forget it.
    """

    tell: Forms
    ask: Forms
    pool: Texts = ()
    keys: dict[str, Texts] = field(default_factory=dict)
    details: Texts = ()
    change: Forms = NOTHING
    end: Forms = NOTHING
    more: Forms = NOTHING
    ask_more: Forms = NOTHING
    ask_when: Forms = NOTHING
    ask_before: Forms = NOTHING
    topic: Forms = NOTHING
    noun: Forms = NOTHING


@dataclass(frozen=True, slots=True)
class Role(_Table):
    """What somebody is to the user.

    group: as the owners of a `Kind`. sex: `f`, `m`, or either. surname: the name begins with the
    user's own family name, a single sign, as in Chinese.
    """

    name: str
    group: str
    sex: str = ""
    surname: bool = False


@dataclass(frozen=True, slots=True)
class Said(_Table):
    """What somebody says, and how a reader writes it down.

    pool: what `{v}` may be. either: an assistant could say it as well as its user.
    """

    said: str
    text: str
    pool: Texts = ()
    either: bool = False


@dataclass(frozen=True, slots=True)
class Trifle(_Table):
    """A clause that is true and not worth keeping. pool: what `{v}` may be."""

    form: str
    pool: Texts = ()


@dataclass(frozen=True, slots=True)
class Frames(_Table):
    """Sentences around a clause: `said` in the speaker's words, `text` as a reader writes it.

    A `text` that names `{speaker}` speaks of the speaker as he or she. hidden: chatter that goes
    before a fact. gossip: who spreads hearsay. introduced: who somebody is to the user. ask_both:
    one question for two facts. ask_first: which of two events came first.
    """

    said: Forms
    text: Forms
    hidden: Forms
    again: Forms
    corrected: Parts[Said]
    hearsay: Parts[Said]
    gossip: Forms
    forget_topic: Parts[Said]
    forget_clause: Parts[Said]
    introduced: Forms
    ask_name: Forms
    ask_both: Forms
    ask_first: Forms


@dataclass(frozen=True, slots=True)
class Language(_Table):
    """All tables of one language.

    unknown: the answer where nothing is known. comma: joins lists; stop: ends a sentence; space:
    between sentences and words.
    """

    code: str
    unknown: str
    assistant: str
    comma: str
    stop: str
    space: str
    women: Forms
    men: Forms
    pets: Forms
    roles: tuple[Role, ...]
    kinds: dict[str, FormWording]
    frames: Frames
    small_talk: Parts[Said]
    trifles: Parts[Trifle]


_FILES: Final = {"en": "english.toml", "zh": "chinese.toml"}


@cache
def language_tables(code: str) -> Language:
    """The tables of a language, `en` or `zh`."""
    source = files("memograd.data.lifelog").joinpath(_FILES[code]).read_text(encoding="utf-8")
    said = tomllib.loads(source)
    tables = _with_pools(said, said.pop("pools"))
    return TypeAdapter(Language).validate_python({"code": code, **tables})


def _with_pools(table: Any, pools: Mapping[str, list[str]]) -> Any:
    """The table, with the values of a pool in place of its name."""
    if isinstance(table, list):
        return [_with_pools(one, pools) for one in table]
    if not isinstance(table, dict):
        return table
    found = {key: _with_pools(value, pools) for key, value in table.items()}
    for key in {"pool", "details", "each"} & found.keys():
        if isinstance(found[key], str):
            found[key] = pools[found[key]]
    return dict.fromkeys(found["of"], found["each"]) if "of" in found else found


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


def lower_first(text: str) -> str:
    """The text to follow a comma."""
    return text[:1].lower() + text[1:]
