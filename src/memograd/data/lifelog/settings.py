"""How long a generated life log is, and how hard.

Invariant: settings that cannot make a log are BadInput naming the setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from memograd.errors import BadInput

SHARES = ("small_talk", "changes", "hearsay", "repeats", "forgets")
LARGEST_CAST = 10


@dataclass(frozen=True, slots=True)
class LifelogSettings:
    """What a life log is made of.

    language: `en` or `zh`. split: `train` or `test`; wordings, names and values of one are not in
    the other, and some attributes exist only in `test`. sessions, statements_per_session: how much
    is told. The shares are parts of all statements: small_talk is worth nothing; changes are new
    values, corrections, refinements and ends; hearsay is wrong; repeats say again what is known;
    forgets ask to forget. What is left is new. people: how many others (pets too) the user has.
    questions: about how many are asked for each statement of a session, and half of all those once
    more at the end; a policy that learns from questions learns more from many.
    """

    language: Literal["en", "zh"] = "en"
    split: Literal["train", "test"] = "train"
    sessions: int = 12
    statements_per_session: int = 12
    small_talk: float = 0.26
    changes: float = 0.24
    hearsay: float = 0.05
    repeats: float = 0.08
    forgets: float = 0.03
    people: int = 6
    questions: float = 0.34

    def __post_init__(self) -> None:
        for name, known in (("language", ("en", "zh")), ("split", ("train", "test"))):
            if getattr(self, name) not in known:
                raise BadInput(
                    f"The setting {name} is {getattr(self, name)!r}: it must be"
                    f" {known[0]} or {known[1]}."
                )
        for name, least, most in (
            ("sessions", 2, 60),
            ("statements_per_session", 4, 40),
            ("people", 2, LARGEST_CAST),
        ):
            if not least <= getattr(self, name) <= most:
                raise BadInput(
                    f"The setting {name} is {getattr(self, name)}: it must be from {least} to"
                    f" {most}."
                )
        if not 0 < self.questions <= 3:
            raise BadInput(f"The setting questions is {self.questions}: it must be above 0, to 3.")
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise BadInput(
                    f"The setting {name} is {getattr(self, name)}: a share is from 0 to 1."
                )
        if (total := sum(getattr(self, name) for name in SHARES)) > 0.9:
            raise BadInput(
                f"The shares {', '.join(SHARES)} add up to {total:.2f}: leave at least 0.1 for"
                " what is new."
            )

    def with_pairs(self, pairs: Sequence[str]) -> LifelogSettings:
        """These settings with `key=value` pairs put over them."""
        kinds = {field.name: type(getattr(self, field.name)) for field in fields(self)}
        values: dict[str, Any] = {}
        for pair in pairs:
            key, equals, text = pair.partition("=")
            if not equals or key not in kinds:
                raise BadInput(
                    f"{pair!r} is no setting of a life log: write KEY=VALUE with one of"
                    f" {', '.join(kinds)}."
                )
            try:
                values[key] = kinds[key](text)
            except ValueError:
                raise BadInput(f"{key} must be a number, not {text!r}.") from None
        return replace(self, **values)
