"""Whose memory it is: the scope of an item, and the owner that walls it off from all others.

A scope names a user, an agent, a run, or several of them. Its *owner* is the first that is named,
in that order: everything of one owner is folded, searched and purged together, and nothing of one
owner is ever seen by a query that names another. Invariant: two scopes have the same owner only if
the same kind of id holds the same text.
"""

from __future__ import annotations

from dataclasses import dataclass

from memograd.errors import BadInput

SCOPE_FIELDS = ("user_id", "agent_id", "run_id")


@dataclass(frozen=True, slots=True)
class Scope:
    """The ids under which something is remembered; at least one is given.

    Raises BadInput when none is, or when one is not a text with a visible character in valid
    Unicode.
    """

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None

    def __post_init__(self) -> None:
        for field, value in self.ids().items():
            check_id(field, value)
        if not self.ids():
            raise BadInput(
                "A memory needs an owner: give at least one of user_id, agent_id and run_id."
            )

    def ids(self) -> dict[str, str]:
        """The ids that are given, by field name."""
        named = {}  # written out: every item of every answer is asked for it
        if self.user_id is not None:
            named["user_id"] = self.user_id
        if self.agent_id is not None:
            named["agent_id"] = self.agent_id
        if self.run_id is not None:
            named["run_id"] = self.run_id
        return named

    @property
    def owner(self) -> str:
        """`user:alice`, else `agent:planner`, else `run:42`."""
        field, value = next(iter(self.ids().items()))
        return f"{field.removesuffix('_id')}:{value}"


def check_id(field: str, value: object) -> None:
    """Raise BadInput unless `value` can be the id `field` (`user_id`, say)."""
    if not isinstance(value, str):
        raise BadInput(f"{field} must be a text, not {value!r}.")
    if not value.strip():
        raise BadInput(f"{field} must not be empty: name whose memory is meant.")
    if "\0" in value:
        raise BadInput(f"{field} {value[:40]!r} holds a NUL character: leave it out.")
    check_unicode(value, field)


def check_unicode(text: str, what: str) -> None:
    """Raise BadInput unless `text` can be written as UTF-8 (`what` names it in the message)."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput(
            f"The text {text[:40]!r} in {what} is not valid Unicode (half a surrogate pair): repair"
            " it where it was read."
        ) from None
