"""One raw turn of a conversation: who said what, when.

Everything above this room (memories, rollouts, data sets) speaks of turns through `RawTurn`, and
sees them as text through `RawTurn.render`. Invariant: a rendered turn is exactly one line that
begins with its date, so no text can pass itself off as somebody else's turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from memograd.memory.records.scope import Scope

# Spelled out because `strftime("%B")` follows the machine's language.
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip

# Roles whose words are neither the user's nor the assistant's.
NOT_PEOPLE = frozenset({"tool", "function", "system", "developer", "ipython", "environment"})


def format_date(day: date) -> str:
    """The date as people write it in the conversations: `7 May 2023`."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


@dataclass(frozen=True)
class RawTurn:
    """What one speaker said, as it was said.

    id: unique within its conversation, such as `D1:3`. time: when the session took place, None
    where unknown. session: number of the sitting it belongs to. caption: description of a photo
    shared with it. role: `user`, `assistant`, `tool` and the like, None where only the speaker is
    known. images: references to the pictures shared with it, as `picture_reference` makes them.
    expires_at: from when on it is hidden, in UTC. metadata: JSON values of the application's own
    that came with it. scope: whose memory heard it, where one did. call: a hash of all that the
    named call said that brought it (`write/calls.py`). None of these is a part of what was said.
    """

    id: str
    speaker: str
    text: str
    time: datetime | None
    session: int
    caption: str | None = None
    role: str | None = None
    images: tuple[str, ...] = ()
    expires_at: datetime | None = None
    # Not told by `plain`, so that what older runs were measured on is still the same.
    metadata: Mapping[str, Any] = field(
        default_factory=dict, compare=False, repr=False, metadata={"plain": False}
    )
    scope: Scope | None = field(default=None, compare=False, repr=False)
    call: str | None = field(default=None, compare=False, repr=False, metadata={"plain": False})

    @property
    def said_as(self) -> str:
        """The role, by the speaker's name where none was given; people are `user`."""
        role = (self.role or self.speaker).casefold()
        if role in ("assistant", "ai", "model", "bot"):
            return "assistant"
        return role if role in NOT_PEOPLE else "user"

    def index_text(self) -> str:
        """What is embedded: `Caroline: text [7 May 2023]`, the caption only where nothing was said.

        Chosen on LoCoMo's conversation 26 by evidence recall@10 (`docs/log.md`): the date behind
        the text and no caption 0.49, as rendered 0.44.
        """
        dated = f" [{format_date(self.time)}]" if self.time else ""
        said = self.text.strip() or self.caption or ("picture" if self.images else "")
        return f"{self.speaker}: {said}{dated}"

    def render(self) -> str:
        """The one line that a prompt shows: `[7 May 2023] Caroline: text`."""
        dated = f"[{format_date(self.time)}] " if self.time else ""
        photo = f" (shares a photo: {self.caption})" if self.caption else ""
        if not photo and self.images:
            places = ", ".join(one for one in self.images if "://" in one)
            photo = f" (shares a photo: {places})" if places else " (shares a photo)"
        # Line breaks inside a text would let it forge the dated line of another speaker.
        return " ".join(f"{dated}{self.speaker}: {self.text}{photo}".splitlines())

    def to_json(self) -> dict[str, Any]:
        """JSON values only; what is not known is left out."""
        values: dict[str, Any] = {
            "id": self.id,
            "speaker": self.speaker,
            "text": self.text,
            "session": self.session,
        }
        optional = {
            "time": self.time.isoformat() if self.time else None,
            "caption": self.caption,
            "role": self.role,
            "images": list(self.images) or None,
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
            "metadata": dict(self.metadata) or None,
            "call": self.call,
        }
        return values | {key: value for key, value in optional.items() if value is not None}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RawTurn:
        """The turn that `to_json` wrote."""
        time, expires_at = values.get("time"), values.get("expires_at")
        return cls(
            id=values["id"],
            speaker=values["speaker"],
            text=values["text"],
            time=datetime.fromisoformat(time) if time else None,
            session=values["session"],
            caption=values.get("caption"),
            role=values.get("role"),
            images=tuple(values.get("images", ())),
            expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
            metadata=values.get("metadata", {}),
            call=values.get("call"),
        )
