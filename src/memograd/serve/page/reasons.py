"""Why an operation was done, in the language of the page.

A reason is kept in the language of what it is about, so a Chinese reader of English memories would
meet English in every history. The sentences of the memory itself stand in both languages in
`REASONS`, those that other parts put together in the catalogue under `reason.`; each is known again
by its words, in either language, and said in the page's. Invariants: what it quotes (a memory, an
id, a number) stays as it stands; a reason that nobody knows, as a chat model's own, is shown as it
was written.
"""

from __future__ import annotations

import re
from functools import cache
from string import Formatter
from typing import Final, NamedTuple

from memograd.memory.records.operations import REASONS
from memograd.serve.page.texts import LANGUAGES, catalogue, pattern

REASON: Final = "reason."
_COLONS: Final = {"en": ": ", "zh": "："}
_DEFERRED: Final = "reason.deferred"
"""What stands behind another reason."""


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
    for known in _sentences():
        found = known.written.fullmatch(sentence)
        if found is not None:
            return known.said[language].format(**found.groupdict())
    return sentence


@cache
def _behind() -> list[_Known]:
    return [_Known(re.compile(f"{one.written.pattern}$", re.S), one.said) for one in _of(_DEFERRED)]


@cache
def _sentences() -> list[_Known]:
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
