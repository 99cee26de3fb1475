"""How the page says things: its sentences, in every language, and how values are written.

`texts.toml` has one line a sentence: `"memory.search" = { en = "Search", zh = "搜索" }`. Invariant:
a key that is missing in a language is an error when the catalogue is read, never an empty label.

What the memory and the server refuse they say in English. Those sentences stand in the catalogue
too, under `told.`, and are known again by their words (`recognised`); one that is not there is
shown as it is, and named as English.

Why an operation was done is kept in the language of what it is about, so a Chinese reader of
English memories would meet English in every history. The sentences of the memory itself stand in
both languages in `REASONS`, those that other parts put together in the catalogue under `reason.`;
each is known again in either language and said in the page's (`in_language`). What it quotes (a
memory, an id, a number) stays as it stands, and a reason that nobody knows, as a chat model's own,
is shown as it was written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from itertools import islice
from string import Formatter
from typing import Final, Literal, NamedTuple

from memograd.errors import MemogradError
from memograd.memory.records.operations import REASONS

# A Latin word, a space, or a single character of any other script: what a difference is made of.
_PIECE: Final = re.compile(r"[A-Za-z0-9À-ɏ']+|\s+|.", re.S)
_LEAST_COMMON: Final = 0.75
_MOST_COMPARED: Final = 400
"""Pieces of a text. To compare takes up to the cube of them, and a text may be megabytes."""
Change = Literal["same", "gone", "new"]


LANGUAGES: Final[Mapping[str, str]] = {"en": "English", "zh": "中文"}
"""Codes with the name that each language has for itself; the first is the default."""

Texts = Mapping[str, str]
TOLD: Final = "told."
REASON: Final = "reason."
_COLONS: Final = {"en": ": ", "zh": "："}
_DEFERRED: Final = "reason.deferred"
"""What stands behind another reason."""


@cache
def catalogue() -> Mapping[str, Texts]:
    """Texts by key, by language. Raises MemogradError for a text that a language lacks."""
    source = files("memograd.serve.page").joinpath("texts.toml").read_text(encoding="utf-8")
    by_key: dict[str, dict[str, str]] = tomllib.loads(source)
    for key, said in by_key.items():
        missing = [code for code in LANGUAGES if not said.get(code)]
        if missing or set(said) - set(LANGUAGES):
            raise MemogradError(f"The page's text {key!r} needs exactly {', '.join(LANGUAGES)}.")
    return {code: {key: said[code] for key, said in by_key.items()} for code in LANGUAGES}


def say(language: str, key: str, /, **values: object) -> str:
    """The text of a key, with its `{names}` filled in. Raises KeyError for an unknown key."""
    text = catalogue()[language][key]
    return text.format(**values) if values else text


def recognised(sentence: str) -> tuple[str, Mapping[str, str]]:
    """Which text under `told.` an English sentence is, and what stands in its `{names}`."""
    for key, pattern in _sentences():
        found = pattern.fullmatch(sentence)
        if found is not None:
            return key, found.groupdict()
    raise AssertionError("the last of them is any sentence")


@cache
def _sentences() -> list[tuple[str, re.Pattern[str]]]:
    english = catalogue()["en"]
    return [
        (key.removeprefix(TOLD), re.compile("".join(pattern(english[key])), re.S))
        for key in english
        if key.startswith(TOLD)
    ]


def pattern(text: str) -> Iterator[str]:
    """The parts of a regular expression that knows a text, whatever stands in its `{names}`."""
    for literal, name, _, _ in Formatter().parse(text):
        yield re.escape(literal)
        if name is not None:
            yield f"(?P<{name}>.*?)"


class _Known(NamedTuple):
    """A sentence in one language, with the same one in all."""

    written: re.Pattern[str]
    said: dict[str, str]


def in_language(language: str, sentence: str) -> str:
    """The reason as this language says it."""
    for known in _behind():
        found = known.written.search(sentence)
        if found is not None:
            before = in_language(language, sentence[: found.start()])
            return before + known.said[language].format(**found.groupdict())
    for known in _reasons():
        found = known.written.fullmatch(sentence)
        if found is not None:
            return known.said[language].format(**found.groupdict())
    return sentence


@cache
def _behind() -> list[_Known]:
    return [_Known(re.compile(f"{one.written.pattern}$", re.S), one.said) for one in _of(_DEFERRED)]


@cache
def _reasons() -> list[_Known]:
    keys = [key for key in catalogue()["en"] if key.startswith(REASON) and key != _DEFERRED]
    known = [one for key in keys for one in _of(key)]
    for both in REASONS.values():
        said = dict(zip(LANGUAGES, both, strict=True))
        quoting = {code: f"{text}{_COLONS[code]}{{quoted}}" for code, text in said.items()}
        known += _each(said)
        known += _each(quoting)
    return known


def _of(key: str) -> list[_Known]:
    return _each({code: catalogue()[code][key] for code in LANGUAGES})


def _each(said: dict[str, str]) -> list[_Known]:
    """The sentence as each language writes it that names all that the others name."""
    named = {code: {one[1] for one in Formatter().parse(said[code]) if one[1]} for code in said}
    return [
        _Known(re.compile("".join(pattern(text)), re.S), said)
        for code, text in said.items()
        if all(named[code] >= other for other in named.values())
    ]


def preferred(asked: str | None, remembered: str | None, accepted: str) -> str:
    """The language of a request: asked for in its address, remembered by the cookie, or the first
    of the browser's (`Accept-Language`, by its q values) that the page speaks."""
    for code in (asked, remembered):
        if code is not None and code in LANGUAGES:
            return code
    for code in _by_preference(accepted):
        if code in LANGUAGES:
            return code
    return next(iter(LANGUAGES))


def _by_preference(accepted: str) -> list[str]:
    weighed = []
    for entry in accepted.split(","):
        tag, _, rest = entry.strip().partition(";")
        try:
            weight = float(rest.strip().removeprefix("q=")) if rest else 1.0
        except ValueError:
            weight = 0.0
        weighed.append((-weight, tag.partition("-")[0].lower()))
    return [code for _, code in sorted(weighed, key=lambda pair: pair[0])]


def day(value: str | datetime | None) -> str:
    """`2024-05-07`, or nothing."""
    return "" if value is None else _moment(value).strftime("%Y-%m-%d")


def moment(value: str | datetime | None) -> str:
    """`2024-05-07 18:30`, in UTC, or nothing."""
    return "" if value is None else _moment(value).astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def second(seconds: float) -> str:
    """`2024-05-07 18:30:05`, in UTC, of seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many digits behind the point; a dash for none."""
    return "–" if value is None else f"{value:,.{digits}f}"


def difference(before: str | None, after: str | None) -> Iterator[tuple[Change, str]]:
    """The pieces of two texts, as what is the same, gone or new, in reading order.

    Texts that have little in common are told one after the other, and so are very long ones.
    """
    old, new = _pieces(before), _pieces(after)
    if before == after or old is None or new is None:
        yield from _one_after_the_other(before, after)
        return
    matched = SequenceMatcher(None, old, new, autojunk=False)
    if before and after and matched.ratio() < _LEAST_COMMON:
        yield from _one_after_the_other(before, after)
        return
    for tag, old_from, old_to, new_from, new_to in matched.get_opcodes():
        if tag == "equal":
            yield "same", "".join(old[old_from:old_to])
            continue
        if old_to > old_from:
            yield "gone", "".join(old[old_from:old_to])
        if new_to > new_from:
            yield "new", "".join(new[new_from:new_to])


def _pieces(text: str | None) -> list[str] | None:
    """None where there are too many."""
    found = [one.group() for one in islice(_PIECE.finditer(text or ""), _MOST_COMPARED + 1)]
    return found if len(found) <= _MOST_COMPARED else None


def _one_after_the_other(before: str | None, after: str | None) -> Iterator[tuple[Change, str]]:
    if before == after:
        yield "same", after or ""
        return
    if before:
        yield "gone", before
    if before and after:
        yield "same", " "
    if after:
        yield "new", after


def _moment(value: str | datetime) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
