"""The catalogue of texts: everything the page says, in every language, from one file.

`texts.toml` has one line a text: `"memory.search" = { en = "Search", zh = "搜索" }`. Invariant: a
key that is missing in a language is an error when the catalogue is read, never an empty label.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from memograd.errors import MemogradError

LANGUAGES: Final[Mapping[str, str]] = {"en": "English", "zh": "中文"}
"""Codes with the name that each language has for itself; the first is the default."""

Texts = Mapping[str, str]


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
